// Sentences of a text; the twin of heedful.text.sentences, whose patterns and words come as data.
import { isSpace, SPACE, splitWords, strip } from './whitespace.js';

/**
 * @typedef {Record<string, [string, string]>} Patterns Source and flags of regular expressions.
 * @typedef {object} SentenceRules
 * @property {Patterns} patterns
 * @property {Record<string, string[]>} words
 * @property {Record<string, string>} opening opening mark of each closing one
 * @property {Record<'word' | 'digits' | 'quote', number>} most characters that are looked at
 */

const LETTER = /^\p{L}/u, UPPER = /^\p{Uppercase}/u, LOWER = /^\p{Lowercase}/u, DIGITS = /^\p{Nd}+$/u;
const OPENERS = /^[ \t\u00a0"'“‘([—–]+/, BEFORE_WORD = /^["'“‘([«„]+/;
const FIRST_WORD = new RegExp(`^[\\p{L}\\p{Nl}\\p{No}]+(?=[${SPACE}'’])`, 'u');

export class Sentences {
  /** @param {SentenceRules} rules */
  constructor({ patterns, words, opening, most }) {
    const compiled = (/** @type {(source: string) => string} */ change, more = '') => Object.fromEntries(Object.entries(patterns).map(([name, [source, flags]]) => [name, new RegExp(change(source), flags + more)]));
    this.patterns = compiled((source) => source);
    this.all = compiled((source) => source, 'g');
    this.starts = compiled((source) => `^(?:${source})`);
    this.wholes = compiled((source) => `^(?:${source})$`);
    this.words = Object.fromEntries(Object.entries(words).map(([name, list]) => [name, new Set(list)]));
    this.streets = words.streets;
    this.opening = opening;
    this.most = most;
  }

  /**
   * Split a document.
   * @param {string} text
   * @returns {string[]} its sentences without the space around them
   */
  split(text) {
    const plain = text.replace(this.all.html_break, '\n');
    return Array.from(this.spans(plain), ([start, end]) => strip(plain.slice(start, end))).filter(Boolean);
  }

  /** Spans of the sentences of a text, which cover it. @param {string} text @returns {Generator<[number, number]>} */
  *spans(text) {
    let start = 0;
    for (const end of text.matchAll(this.all.ends)) {
      if (!this.endsSentence(text, end, start)) continue;
      yield [start, end.index + end[0].length];
      start = end.index + end[0].length;
    }
    yield [start, text.length];
  }

  /** Whether a pattern is found at the beginning of a text. @param {string} name @param {string} text */
  begins(name, text) {
    return this.starts[name].test(text);
  }

  /** Whether a pattern is the whole of a text. @param {string} name @param {string} text */
  is(name, text) {
    return this.wholes[name].test(text);
  }

  /** @param {string} text @param {RegExpMatchArray} end @param {number} start */
  endsSentence(text, end, start) {
    if (end[0].startsWith('\n')) return true;
    const stop = /** @type {number} */ (end.index) + end[0].length;
    let following = Array.from(text.slice(stop, stop + 120)).slice(0, 60).join('');
    const begun = Array.from(text.slice(Math.max(start, /** @type {number} */ (end.index) - 2 * this.most.word), end.index)).slice(-this.most.word).join('');
    const mark = end.groups?.mark;
    if (mark === undefined) return !(this.goesOnUnspaced(text, end, start, following) || repeats(begun, end, following));
    following = following.replace(OPENERS, '');
    if (LOWER.test(following) || this.goesOnWithoutCase(text, end, start, following) || repeats(begun, end, following)) return false;
    return mark !== '.' || !this.isAbbreviated(begun, following);
  }

  /** @param {string} begun @param {string} following */
  isAbbreviated(begun, following) {
    if (!begun || isSpace(/** @type {string} */ (begun.at(-1)))) return false;
    const word = /** @type {string} */ (splitWords(begun).at(-1)).replace(BEFORE_WORD, '');
    const before = begun.slice(0, begun.length - word.length);
    if (DIGITS.test(word)) {
      const isOrdinal = this.patterns.ordinals.test(before) || this.begins('after_ordinals', following);
      return Array.from(word).length <= this.most.digits && (!strip(before) || isOrdinal);
    }
    const first = FIRST_WORD.exec(following);
    if (first && this.words.starters.has(first[0].toLowerCase()) && !this.patterns.before_names.test(begun)) return false;
    if (word === 'I') return false;
    const last = /** @type {string} */ (word.toLowerCase().split(/\.-|['’]/).at(-1));
    return this.words.abbreviations.has(last) || this.streets.some((ending) => last.endsWith(ending)) || this.is('initials', word)
      || (this.words.numbered.has(last) && this.begins('roman', following)) || (this.is('doubled', word) && this.begins('doubled', following));
  }

  /** The sentence up to the quote or bracket that is closed after its end mark. @param {string} text @param {RegExpMatchArray} end @param {number} start */
  opened(text, end, start) {
    const mark = this.opening[/** @type {string} */ (Array.from(end[0]).at(-1))];
    if (mark === undefined) return null;
    const index = /** @type {number} */ (end.index), least = Math.max(start, index - this.most.quote);
    const beginning = index > least ? text.slice(least, index).lastIndexOf(mark) : -1;
    return beginning < 0 ? null : strip(text.slice(Math.max(start, least + beginning - 2), least + beginning));
  }

  /** @param {string} text @param {RegExpMatchArray} end @param {number} start @param {string} following */
  goesOnUnspaced(text, end, start, following) {
    const closing = /** @type {string} */ (Array.from(end[0]).at(-1));
    if ('》〉'.includes(closing)) return true;
    if ('）)'.includes(closing)) return Boolean(this.opened(text, end, start));
    if (!'”’」』"\''.includes(closing)) return false;
    const isSaid = this.opened(text, end, start) === '' && this.begins('said', following);
    return isSaid || (following !== '' && '，、；：,;:'.includes(following[0])) || this.begins('japanese_particles', following);
  }

  /** Whether a quote or bracket is part of its sentence, in scripts whose letters tell no beginning. @param {string} text @param {RegExpMatchArray} end @param {number} start @param {string} following */
  goesOnWithoutCase(text, end, start, following) {
    if (!LETTER.test(following) || UPPER.test(following)) return false;
    const before = this.opened(text, end, start);
    if (before === null) return false;
    if (!before) return !')]'.includes(/** @type {string} */ (end[0].at(-1))) && this.begins('said', following);
    return !':،,：'.includes(/** @type {string} */ (before.at(-1)));
  }
}

/** Whether dots stand between the same word twice, as in "I... I know". @param {string} begun @param {RegExpMatchArray} end @param {string} following */
function repeats(begun, end, following) {
  if (!(end[0].startsWith('…') || end[0].startsWith('..'))) return false;
  if (end.groups?.mark === undefined) return LETTER.test(Array.from(begun).at(-1) ?? '') && Array.from(begun).at(-1) === Array.from(following)[0];
  const words = splitWords(begun), others = splitWords(following);
  return Boolean(words.length && others.length) && /** @type {string} */ (words.at(-1)).toLowerCase() === others[0].replace(/,+$/, '').toLowerCase();
}
