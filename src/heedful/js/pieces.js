// Subword pieces: the most probable segmentation of a text under a unigram model, as SentencePiece finds it.
// Kudo 2018, arXiv:1804.10959. Sums are rounded to float32 in the same order, so that ties fall alike.
import { UNK } from './vocabulary.js';

// What an unknown character costs beside the least probable piece, and what a longer text saves, as in SentencePiece.
const UNKNOWN_COST = 10;
const utf8 = new TextEncoder();

/**
 * @param {string[]} characters of the text, with marks in place of its spaces
 * @param {import('./tokenizers.js').Tokenizer} tokenizer
 * @returns {number[]} ids; a character that no piece holds is its bytes
 */
export function segment(characters, { ids, facts, longest, lowest }) {
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
  /** @type {number[]} */
  const reversed = [];
  for (let end = size; end > 0; end = starts[end]) {
    if (ends[end] !== UNK) reversed.push(ends[end]);
    else if (facts.bytes) reversed.push(...[...utf8.encode(characters[end - 1])].reverse().map((byte) => /** @type {number[]} */ (facts.bytes)[byte]));
    else if (reversed[reversed.length - 1] !== UNK) reversed.push(UNK); // neighbouring unknown characters are one token
  }
  return reversed.reverse();
}
