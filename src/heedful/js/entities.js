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
  if (source.search(ENTITY) >= 0 || output.search(ENTITY) < 0) return { text: output, indices: Array.from({ length: output.length + 1 }, (_, index) => index) };
  /** @type {number[]} */
  const indices = [];
  let size = 0;
  const text = output.replace(ENTITY, (entity, /** @type {number} */ start) => {
    while (indices.length < start) indices.push(size++);
    for (let index = 0; index < entity.length; index++) indices.push(size);
    size += 1;
    return CHARACTERS[entity.replace(';', '')];
  });
  while (indices.length <= output.length) indices.push(size++);
  return { text, indices };
}
