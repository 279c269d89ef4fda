// Layout at the ends of a segment: brackets and quotes around it, emoticons, and rows of marks, and commas; the twin of
// heedful.text.segment_edges.
import { SPACE } from './whitespace.js';

const MARK = `[^\\p{L}\\p{N}_${SPACE}]`;
// A word is looked for where one may begin, so that no mark is read again and again.
const WORD = `(?<![^${SPACE}])`;
/** Words of marks alone, and rows of the same mark; from the end on also marks that end clauses, but none that end sentences. */
const BEGINNING = new RegExp(`^(?:[${SPACE}]+|${WORD}${MARK}{2,}(?=[${SPACE}])|(${MARK})\\1\\1+)*`, 'u');
const ENDING = new RegExp(`^(?:${WORD}(?![,;:–—]*[.!?…]+[${SPACE}])${MARK}{2,}(?=[${SPACE}])|[${SPACE},;:–—]+|(?![.!?…])(${MARK})\\1\\1+)*`, 'u');
/** @type {Record<string, string>} */
const CLOSING = { '(': ')', '[': ']', '„': '“”', '“': '”', '«': '»', '»': '«', '‹': '›', '›': '‹' };
/** @type {Record<string, string>} */
const OPENING = { ')': '(', ']': '[', '“': '„', '”': '„“', '»': '«', '«': '»', '›': '‹', '‹': '›' };
/** Mark that stands before a text and behind it. */
const AROUND = /^(["'*_~])\1*/;
/** Brackets and rows around each other that are put aside. */
const MOST_LAYERS = 4;

const reversed = (/** @type {string} */ text) => Array.from(text).reverse().join('');

/**
 * Find the part of a segment without the layout at its ends.
 * @param {string} text in which spans that stay as they are have no marks
 * @returns {[number, number]} of the whole text where nothing but marks is left
 */
export function withoutEdges(text) {
  let start = 0, end = text.length;
  for (let layer = 0; layer < MOST_LAYERS; layer++) {
    const part = text.slice(start, end), [first, last] = withoutBrackets(part, ...withoutRows(part));
    if (first === 0 && last === part.length) break;
    [start, end] = [start + first, start + last];
  }
  return /[\p{L}\p{N}]/u.test(text.slice(start, end)) ? [start, end] : [0, text.length];
}

/** @param {string} text @returns {[number, number]} */
function withoutRows(text) {
  const sizes = [[BEGINNING, text], [ENDING, reversed(text)]].map(([pattern, part]) => (/** @type {RegExp} */ (pattern).exec(/** @type {string} */ (part))?.[0] ?? '').length);
  const start = sizes[0], end = text.length - sizes[1];
  return start < end ? [start, end] : [0, text.length];
}

/** @param {string} text @param {number} start @param {number} end @returns {[number, number]} */
function withoutBrackets(text, start, end) {
  if (start < end && '.!?'.includes(text[end - 1])) { // it may stand behind the bracket
    const [first, last] = insideBrackets(text, start, end - 1);
    if (last < end - 1) return [first, last];
  }
  return insideBrackets(text, start, end);
}

/** @param {string} text @param {number} start @param {number} end @returns {[number, number]} */
function insideBrackets(text, start, end) {
  const part = text.slice(start, end), [around = '', mark = ''] = AROUND.exec(part) ?? [], size = around.length;
  if (size && part.length > 2 * size && part.endsWith(around) && !part.slice(size, -size).includes(mark)) return [start + size, end - size];
  if (part.split('"').length === 2) return [start + Number(part.startsWith('"')), end - Number(part.endsWith('"'))];
  const partner = partnerOf(part, CLOSING);
  if (partner && partner === part.length - 1) return [start + 1, end - 1];
  return [start + Number(partner === null), end - Number(partnerOf(reversed(part), OPENING) === null)];
}

/** Place of the partner of the bracket at the beginning of a text; null = it has none, 0 = there is no bracket. @param {string} text @param {Record<string, string>} partners */
function partnerOf(text, partners) {
  const [bracket] = text, partner = partners[bracket];
  if (!partner) return 0;
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    depth += Number(text[index] === bracket) - Number(partner.includes(text[index]));
    if (!depth) return index;
  }
  return null;
}
