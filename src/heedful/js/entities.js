// HTML entities in plain text, which some training pairs have from web pages; the twin of heedful.text.entities.

const ENTITY = /&(?:amp|lt|gt|quot|apos|#39)(?:;|(?![A-Za-z0-9]))/g;
/** @type {Record<string, string>} */
const CHARACTERS = { '&amp': '&', '&lt': '<', '&gt': '>', '&quot': '"', '&apos': "'", '&#39': "'" };

/**
 * Decode the entities of an output whose source has none.
 * @param {string} source @param {string} output
 * @returns {{ text: string, indices: number[] }} the output as plain text, and in it the index of each character of the output, and of its end
 */
export function decodedEntities(source, output) {
  const indices = Array.from({ length: output.length + 1 }, (_, index) => index);
  if (source.search(ENTITY) >= 0) return { text: output, indices };
  let dropped = 0;
  const text = output.replace(ENTITY, (entity, /** @type {number} */ start) => {
    for (let index = start; index < output.length + 1; index++) indices[index] = index < start + entity.length ? start - dropped : index - dropped - entity.length + 1;
    dropped += entity.length - 1;
    return CHARACTERS[entity.replace(';', '')];
  });
  return { text, indices };
}
