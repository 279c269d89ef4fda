// Whitespace as strings of Python have it: with the separators U+001C to U+001F and U+0085, and without U+FEFF.

/** Members of a class of characters. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const ONE = new RegExp(`^[${SPACE}]$`), SOME = new RegExp(`[${SPACE}]+`), START = new RegExp(`^[${SPACE}]+`), ALL = new RegExp(`^[${SPACE}]*$`);

/** Whether a character is a space; false for none. */
export const isSpace = (/** @type {string} */ character) => ONE.test(character);

export const isBlank = (/** @type {string} */ text) => ALL.test(text);

export const stripStart = (/** @type {string} */ text) => text.replace(START, '');

/** @param {string} text @param {(character: string) => boolean} [isDropped] */
export function stripEnd(text, isDropped = isSpace) {
  let end = text.length;
  while (end && isDropped(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

export const strip = (/** @type {string} */ text) => stripEnd(stripStart(text));

export const splitWords = (/** @type {string} */ text) => text.split(SOME).filter(Boolean);
