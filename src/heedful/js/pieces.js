// Subword pieces: the most probable segmentation of a text under a unigram model, as SentencePiece finds it.
// Kudo 2018, arXiv:1804.10959. Sums are rounded to float32 in the same order, so that ties fall alike.
import { UNK } from './vocabulary.js';

// What an unknown character costs beside the least probable piece, and what a longer text saves, as in SentencePiece.
const UNKNOWN_COST = 10;
const utf8 = new TextEncoder();

/**
 * The most probable segmentation.
 * @param {string[]} characters of the text, with marks in place of its spaces
 * @param {{ ids: Map<string, number>, facts: { scores?: number[] }, longest: number, lowest: number }} model
 * @returns {[number, number, number][]} first character of each piece, the one behind it, and its id; UNK of a character that
 *   no piece holds
 */
export function path(characters, { ids, facts, longest, lowest }) {
  const scores = /** @type {number[]} */ (facts.scores), size = characters.length;
  const unknownScore = Math.fround(lowest - UNKNOWN_COST);
  const best = new Float32Array(size + 1), starts = new Int32Array(size + 1).fill(-1), ends = new Int32Array(size + 1);
  const propose = (/** @type {number} */ start, /** @type {number} */ end, /** @type {number} */ id, /** @type {number} */ score) => {
    const sum = Math.fround(score + best[start]);
    if (starts[end] >= 0 && !(sum > best[end])) return;
    best[end] = sum;
    starts[end] = start;
    ends[end] = id;
  };
  for (let start = 0; start < size; start++) {
    let piece = '', isKnown = false;
    for (let end = start + 1; end <= Math.min(size, start + longest); end++) {
      piece += characters[end - 1];
      const id = ids.get(piece);
      if (id === undefined) continue;
      isKnown ||= end === start + 1;
      propose(start, end, id, scores[id]);
    }
    if (!isKnown) propose(start, start + 1, UNK, unknownScore);
  }
  /** @type {[number, number, number][]} */
  const reversed = [];
  for (let end = size; end > 0; end = starts[end]) reversed.push([starts[end], end, ends[end]]);
  return reversed.reverse();
}

/**
 * Ids of the pieces of a text.
 * @param {string[]} characters of the text, with marks in place of its spaces
 * @param {import('./tokenizers.js').Tokenizer} tokenizer
 * @returns {number[]} ids; a character that no piece holds is its bytes
 */
export function segment(characters, tokenizer) {
  const { bytes } = tokenizer.facts;
  /** @type {number[]} */
  const found = [];
  for (const [start, , id] of path(characters, tokenizer)) {
    if (id !== UNK) found.push(id);
    else if (bytes) found.push(...Array.from(utf8.encode(characters[start]), (byte) => bytes[byte]));
    else if (found[found.length - 1] !== UNK) found.push(UNK); // neighbouring unknown characters are one token
  }
  return found;
}
