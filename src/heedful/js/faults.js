// Degenerate outputs: loops, outputs far longer than their sources, and nothing at all; the twin of heedful.text.degenerate.
import { splitWords } from './whitespace.js';

/** Number of words or letters of a part that comes again, at most, and how often a part of words stands in a row in a loop. */
const LONGEST_PART = 12, REPETITIONS = 4;
/** Letters in a row that repeat others in a loop within a word. */
const FEWEST_LETTERS = 18;
/** Letters of an output for each letter of its source; letters from WIDE on stand for several of others. */
const MOST_GROWTH = 5, WIDE = '\u2e80';
const LETTER = /\p{L}/u, SIGN = /[\p{L}\p{N}]/u, PLAIN = /^[\p{L}\p{N}\p{M}]+$/u;

/**
 * Find the fault of an output.
 * @param {string} source @param {string} output
 * @returns {'loop' | 'length' | 'empty' | ''} what comes again in the source too is no fault
 */
export function faultOf(source, output) {
  if (!SIGN.test(output)) return LETTER.test(source) ? 'empty' : '';
  const size = Array.from(source).reduce((sum, letter) => sum + (letter >= WIDE ? 3 : 1), 0);
  if (Array.from(output).length > MOST_GROWTH * size + 40) return 'length';
  return hasLoop(output) && !hasLoop(source) ? 'loop' : '';
}

function hasLoop(/** @type {string} */ text) {
  const words = splitWords(text).map((word) => word.replace(/^[.,;:!?"'()]+|[.,;:!?"'()]+$/g, '').toLowerCase());
  const parts = Array.from({ length: LONGEST_PART }, (_, index) => index + 1);
  if (words.length - new Set(words).size >= REPETITIONS - 1 && parts.some((part) => longestRun(words, part) >= (REPETITIONS - 1) * part)) return true;
  const letters = Array.from(text);
  return parts.some((part) => longestRun(letters, part) >= Math.max(FEWEST_LETTERS, 3 * part));
}

/** Largest number of consecutive words or letters that equal the one at a distance before them. @param {string[]} items @param {number} distance */
function longestRun(items, distance) {
  let longest = 0, run = 0;
  for (let index = distance; index < items.length; index++) {
    const one = items[index], isSame = one === items[index - distance];
    if (!isSame) run = 0; else if (PLAIN.test(one)) run += 1; else if (one !== ' ') run = 0;
    longest = Math.max(longest, run);
  }
  return longest;
}
