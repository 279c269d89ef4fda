// Folded texts: without case, kinds of spaces and of quotation marks; the twin of heedful.text.folding. Tables come as data.

/**
 * @typedef {{ replaced: Record<string, string>, cased: Record<string, string> }} FoldingFacts Characters by what replaces
 *   them, and by their folded case.
 */

/** White space, as Python has it. */
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/**
 * Make a function that folds texts.
 * @param {FoldingFacts} facts
 * @returns {(text: string) => string}
 */
export function folder({ replaced, cased }) {
  const [plain, lower] = [replaced, cased].map((table) => new Map(Object.entries(table)));
  const by = (/** @type {Map<string, string>} */ table, /** @type {string} */ text) => Array.from(text, (character) => table.get(character) ?? character).join('');
  return (text) => by(lower, by(plain, by(plain, text).normalize('NFKC'))).normalize('NFKC').split(SPACE).filter(Boolean).join(' ');
}
