// Usual forms of words, with which text in other case or without marks is read; the twin of heedful.text.word_forms.

/** @typedef {'lower' | 'title' | 'upper' | ''} Case Unusual case of a whole text; empty = none. */

const LETTERS = '[\\p{L}\\p{Nl}\\p{No}]+', FIRST_WORD = new RegExp(`^${LETTERS}(?:['’]${LETTERS})*`, 'u');
/** Word of a text. */
export const WORD = new RegExp(`${LETTERS}(?:['’]${LETTERS})*`, 'gu');
const WHOLE = new RegExp(`^${LETTERS}(?:['’]${LETTERS})*$`, 'u');
const MARKED = /(?=[^\0-\x7f])[\p{L}\p{Nl}\p{No}]/u, UPPER = /\p{Uppercase}/u, LOWER = /\p{Lowercase}/u, TITLE = /\p{Lt}/u;
/** Letters from which on a text in upper case is no abbreviation, and words from which on one in Title Case is no name. */
const FEWEST_LETTERS = 4, FEWEST_WORDS = 3;
/** @type {Record<string, string>} */
const DIGRAPHS = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss', æ: 'ae', œ: 'oe', ø: 'oe' };
/** @type {Record<string, string>} */
const PLAIN = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ð: 'd', ı: 'i' };

const isUpper = (/** @type {string} */ text) => UPPER.test(text) && !LOWER.test(text) && !TITLE.test(text);
const isLower = (/** @type {string} */ text) => LOWER.test(text) && !UPPER.test(text) && !TITLE.test(text);
export const capital = (/** @type {string} */ word) => { const [first = ''] = word; return first.toUpperCase() + word.slice(first.length); };
const sizeOf = (/** @type {string} */ text) => Array.from(text).length;

/** Word at the beginning of a text; empty where there is none. @param {string} text */
export const firstWord = (text) => FIRST_WORD.exec(text)?.[0] ?? '';

const withLetters = (/** @type {string} */ word, /** @type {Record<string, string>} */ letters) => Array.from(word, (letter) => letters[letter] ?? letter).join('');

/** Unusual case of a text. @param {string} text without what stays as it is @returns {Case} */
export function caseOf(text) {
  if (isUpper(text)) return (text.match(/\p{L}/gu) ?? []).length >= FEWEST_LETTERS ? 'upper' : '';
  if (isLower(text)) return 'lower';
  let count = 0;
  for (const [word] of text.matchAll(WORD)) {
    const [first] = word;
    if (isLower(first)) return '';
    count += Number(isUpper(first));
  }
  return count >= FEWEST_WORDS ? 'title' : '';
}

export class WordForms {
  /** @param {Uint8Array | undefined} bytes a header, then the forms, the most frequent one first @param {import('./tokenizers.js').Tokenizer} tokenizer */
  constructor(bytes, tokenizer) {
    const [header, ...lines] = bytes ? new TextDecoder().decode(bytes).split('\n') : [''];
    this.hasCapitals = !header.endsWith('without capitals');
    this.tokenizer = tokenizer;
    /** @type {Map<string, string>} */
    this.usualForms = new Map();
    /** @type {Map<string, string>} usual forms with marks, by the spellings without them */
    this.marked = new Map();
    for (const form of lines.filter(Boolean)) if (!this.usualForms.has(form.toLowerCase())) this.usualForms.set(form.toLowerCase(), form);
    for (const [word, form] of this.usualForms) {
      if (!/[^\0-\x7f]/.test(word)) continue;
      for (const plain of [withLetters(word, DIGRAPHS), withLetters(word, PLAIN).normalize('NFD').replace(/\p{M}/gu, '')]) if (plain !== word && !this.marked.has(plain)) this.marked.set(plain, form);
    }
  }

  /** Whether no source has a word, in any case and with any marks; false for all words of an empty table. @param {string} word */
  lacks(word) {
    return this.usualForms.size > 0 && !this.usualForms.has(word.toLowerCase()) && !this.marked.has(word.toLowerCase());
  }

  /** Usual form of a word; of one that has none, the case that takes fewer tokens. @param {string} word */
  usual(word) {
    const lower = word.toLowerCase(), form = this.usualForms.get(lower) || this.marked.get(lower);
    if (form) return form;
    const upper = capital(lower), [one, other] = word === upper ? [word, lower] : [lower, upper];
    return this.tokenizer.encode(other).length < this.tokenizer.encode(one).length ? other : one;
  }

  /** A text in unusual case with the usual forms of its words, and with marks where it has none. @param {string} text without what stays as it is */
  restored(text) {
    if (!caseOf(text)) {
      const quiet = this.withoutShouting(text);
      return MARKED.test(quiet) ? quiet : quiet.replace(WORD, (word) => this.withMarks(word));
    }
    const words = text.match(WORD) ?? [], read = words.map((word) => this.usual(word));
    if (this.hasCapitals && words.length >= FEWEST_WORDS) read[0] = capital(read[0]);
    let index = 0;
    // A letter may become two characters in lower case, of which one is no letter.
    return text.replace(WORD, (word) => { const form = read[index++]; return WHOLE.test(form) ? form : word; });
  }

  /** Whether a text begins with a word in lower case, unlike the sources of the model. @param {string} text */
  beginsInLowerCase(text) {
    const word = firstWord(this.usualForms.size && this.hasCapitals ? text : '');
    return isLower(word) && sizeOf(String.fromCodePoint(word.codePointAt(0) ?? 0).toUpperCase()) === 1;
  }

  /** Text whose words in capitals have their usual forms: those of four letters, and those beside others. @param {string} text */
  withoutShouting(text) {
    const shouted = (text.match(WORD) ?? []).map((word) => Array.from(word).length > 1 && isUpper(word));
    let index = -1;
    return text.replace(WORD, (word) => {
      index += 1;
      const isBeside = shouted[index - 1] || shouted[index + 1], form = this.usualForms.get(word.toLowerCase());
      if (!shouted[index] || !form || !(isBeside || Array.from(word).length >= FEWEST_LETTERS)) return word;
      return index === 0 && this.hasCapitals ? capital(form) : form;
    });
  }

  /** The word, or the form that differs from it only in the marks of letters, with the same first letter. @param {string} word */
  withMarks(word) {
    const lower = word.toLowerCase(), form = this.marked.get(lower);
    if (form === undefined || this.usualForms.has(lower)) return word;
    const [first] = form;
    return (isUpper(word.slice(0, 1)) ? first.toUpperCase() : first.toLowerCase()) + form.slice(first.length);
  }
}
