// Degenerate outputs: loops, outputs far longer than their sources, and nothing at all; the twin of heedful.text.degenerate.
import { splitWords } from './whitespace.js';

/** Number of words or letters of a part that comes again, at most, and how often one of several words, or a single word, stands in a row in a loop. */
const LONGEST_PART = 12, REPETITIONS = 3, REPETITIONS_OF_WORDS = 4;
/** Letters in a row that repeat others in a loop within a word. */
const FEWEST_LETTERS = 18;
/** Letters of an output for each letter of its source; letters from WIDE on stand for several of others. */
const MOST_GROWTH = 5, WIDE = '\u2e80';
const PARTS = Array.from({ length: LONGEST_PART }, (_, index) => index + 1);
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Bopomofo}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}]/u, MARKS = '.,;:!?"\'()';
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
  return hasLoop(output) && !(hasRepetitions(source) || hasLoop(source)) ? 'loop' : '';
}

function hasLoop(/** @type {string} */ text) {
  const words = splitIntoWords(text);
  if (words.length - new Set(words).size >= REPETITIONS_OF_WORDS - 1 && (longestRun(words, 1) >= REPETITIONS_OF_WORDS - 1 || hasRepeatedPart(words, PARTS.slice(1)))) return true;
  const letters = Array.from(text);
  return PARTS.some((part) => longestRun(letters, part) >= Math.max(FEWEST_LETTERS, 3 * part));
}

/** Whether a source repeats itself: a word or a letter of a script without spaces three times, a part twice. @param {string} text */
function hasRepetitions(text) {
  const spaced = Array.from(text, (letter) => (UNSPACED.test(letter) ? ` ${letter} ` : letter)).join('').toLowerCase();
  const words = splitWords(spaced).map((word) => Array.from(word).filter((letter) => PLAIN.test(letter)).join('')).filter(Boolean);
  return hasRepeatedPart(words, [1]) || PARTS.slice(1).some((part) => longestRun(words, part) >= part);
}

/** Words without the marks around them. @param {string} text */
const splitIntoWords = (text) => splitWords(text).map((word) => withoutMarks(word).toLowerCase());

function withoutMarks(/** @type {string} */ word) {
  let start = 0, end = word.length;
  while (start < end && MARKS.includes(word[start])) start += 1;
  while (end > start && MARKS.includes(word[end - 1])) end -= 1;
  return word.slice(start, end);
}

/** @param {string[]} words @param {number[]} parts sizes */
const hasRepeatedPart = (words, parts) => parts.some((part) => longestRun(words, part) >= (REPETITIONS - 1) * part);

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
