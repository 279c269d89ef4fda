// Tokenizers: text to ids and back, by characters, words or subword pieces; the twin of heedful.text.tokenizer.
import { ModelError } from './errors.js';
import { foldLetters } from './letters.js';
import { segment } from './pieces.js';
import { BOS, EOS, PAD, UNK } from './vocabulary.js';
import { isBlank } from './whitespace.js';

const SPACE_MARK = '\u2581', UNKNOWN_SURFACE = ' \u2047 ';
// No piece is longer than this, so that text behind a limit of tokens need not be looked at.
const LONGEST_PIECE = 16;

/**
 * @typedef {object} TokenizerFacts Tokenizer as an export describes it.
 * @property {'characters' | 'words' | 'pieces'} units
 * @property {'NFC' | 'NFKC' | 'none' | 'folded'} normalization
 * @property {string[]} tokens text of each id; the first four are pad, unk, bos and eos
 * @property {boolean} [reads_forms] of characters, whether words with unknown letters are read in forms that are known
 * @property {number[]} [scores] of pieces, the log probability of each
 * @property {number[]} [bytes] of pieces, the ids of the 256 bytes
 */

export class Tokenizer {
  /** @param {TokenizerFacts} facts @param {(text: string) => string} [fold] of folded texts */
  constructor(facts, fold) {
    if (!['characters', 'words', 'pieces'].includes(facts.units)) throw new ModelError('kind', `a tokenizer of ${facts.units} is not known to this package`);
    if (!['NFC', 'NFKC', 'none', ...(fold ? ['folded'] : [])].includes(facts.normalization)) throw new ModelError('kind', `the normal form ${facts.normalization} is not known to this package`);
    this.facts = facts;
    this.fold = fold;
    this.units = facts.units;
    this.size = facts.tokens.length;
    const isMarked = facts.units === 'pieces';
    const special = new Set([PAD, UNK, BOS, EOS, ...(facts.bytes ?? [])]);
    /** @type {Map<string, number>} */
    this.ids = new Map(facts.tokens.flatMap((token, index) => (special.has(index) ? [] : [[token, index]])));
    this.byteOf = new Map((facts.bytes ?? []).map((id, byte) => [id, byte]));
    this.longest = isMarked ? Math.max(0, ...[...this.ids.keys()].map((piece) => [...piece].length)) : 0;
    this.lowest = isMarked ? Math.min(...[...this.ids.values()].map((id) => /** @type {number[]} */ (facts.scores)[id])) : 0;
  }

  /** @param {string} text */
  normalize(text) {
    const form = this.facts.normalization;
    const normal = form === 'none' ? text : form === 'folded' && this.fold ? this.fold(text) : text.normalize(form);
    if (this.facts.reads_forms) return foldLetters(normal, this.ids);
    return this.units === 'pieces' ? normal.replaceAll(SPACE_MARK, '\u2582') : normal;
  }

  /**
   * Ids of a text, without BOS and EOS.
   * @param {string} text
   * @returns {number[]}
   */
  encode(text) {
    const normal = this.normalize(text);
    if (this.units === 'pieces') return normal ? segment([...(SPACE_MARK + normal.replaceAll(' ', SPACE_MARK))], this) : [];
    return this.split(normal).map((token) => this.ids.get(token) ?? UNK);
  }

  /** Characters or words of a text. @param {string} normal */
  split(normal) {
    return this.units === 'characters' ? [...normal] : normal.split(' ').filter(Boolean);
  }

  /**
   * Ids of a source as the model reads it: ending in EOS, cut to a number of tokens.
   * @param {string} text
   * @param {number} most
   * @param {import('./documents.js').Sentences} [sentences] of a document, each of which ends in EOS
   * @returns {{ ids: number[], wasCut: boolean }}
   */
  encodeSource(text, most, sentences) {
    if (isBlank(text)) return { ids: [EOS], wasCut: false };
    const beginning = this.units === 'words' ? firstWords(text, 4 * most) : [...text.slice(0, 2 * LONGEST_PIECE * most)].slice(0, LONGEST_PIECE * most).join('');
    // NUL ends a string in some libraries, so the replacement character stands for it, as in Python.
    const clean = beginning.toWellFormed().replaceAll('\0', '\ufffd');
    const ids = sentences ? sentences.split(clean).flatMap((sentence) => [...this.encode(sentence), EOS]).slice(0, -1) : this.encode(clean);
    return { ids: [...ids.slice(0, most - 1), EOS], wasCut: ids.length >= most || !isBlank(text.slice(beginning.length)) };
  }

  /**
   * Places of the tokens of a text that is normalized.
   * @param {string} normal
   * @returns {[number, number][]} code units; of tokens that are bytes of one character, only the last has some
   */
  ranges(normal) {
    let end = 0;
    if (this.units !== 'pieces') return this.split(normal).map((token) => { const start = normal.indexOf(token, end); end = start + token.length; return [start, end]; });
    // Bytes of each token; together those of a space and of the text.
    const { tokens } = this.facts, utf8 = new TextEncoder(), ends = [0];
    for (const character of normal) ends.push(...new Array(utf8.encode(character).length - 1).fill(ends.at(-1)), /** @type {number} */ (ends.at(-1)) + character.length);
    let last = 0;
    return this.encode(normal).map((id) => {
      end += this.byteOf.has(id) ? 1 : utf8.encode(tokens[id].replaceAll(SPACE_MARK, ' ')).length;
      const start = last;
      last = ends[Math.max(0, end - 1)];
      return [start, last];
    });
  }

  /**
   * Text of tokens; pad, bos and eos are left out.
   * @param {readonly number[]} ids
   */
  decode(ids) {
    const real = ids.filter((id) => ![PAD, BOS, EOS].includes(id));
    const { tokens } = this.facts;
    if (this.units !== 'pieces') return real.map((id) => tokens[id]).join(this.units === 'words' ? ' ' : '');
    let text = '';
    for (let index = 0; index < real.length;) {
      const bytes = [];
      while (index < real.length && this.byteOf.has(real[index])) bytes.push(/** @type {number} */ (this.byteOf.get(real[index++])));
      text += decodeBytes(bytes);
      if (index < real.length) text += pieceText(real[index], tokens[real[index]], index++ === 0);
    }
    return text;
  }

  /**
   * Text of each token, as heedful shows it.
   * @param {readonly number[]} ids
   */
  pieces(ids) {
    return ids.map((id) => this.facts.tokens[id]);
  }

  /**
   * Index of the space-separated word of each token.
   * @param {readonly number[]} ids without eos
   * @returns {number[]}
   */
  wordIndices(ids) {
    if (this.units === 'words') return ids.map((_, index) => index);
    const space = this.units === 'pieces' ? SPACE_MARK : ' ';
    let word = 0, hasBegun = false;
    const indices = this.pieces(ids).map((piece) => {
      if (hasBegun && piece.startsWith(space)) { word += 1; hasBegun = false; }
      hasBegun ||= piece.replaceAll(space, '') !== '';
      return word;
    });
    const last = hasBegun || word === 0 ? word : word - 1; // spaces at the end belong to the last word
    return indices.map((index) => Math.min(index, last));
  }
}

// A beginning of a text with a number of words, of which any may be long; the whole text if it has fewer.
function firstWords(/** @type {string} */ text, /** @type {number} */ most) {
  const word = /[^ ]+/g;
  for (let number = 0; number < most; number++) if (!word.test(text)) return text;
  return text.slice(0, word.lastIndex);
}

function pieceText(/** @type {number} */ id, /** @type {string} */ piece, /** @type {boolean} */ isFirst) {
  if (id === UNK) return UNKNOWN_SURFACE;
  const text = piece.replaceAll(SPACE_MARK, ' ');
  return isFirst && text.startsWith(' ') ? text.slice(1) : text;
}

// Characters of bytes; each byte that belongs to none is a replacement character.
export function decodeBytes(/** @type {number[]} */ bytes) {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let text = '';
  for (let start = 0; start < bytes.length;) {
    const first = bytes[start], size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    try {
      if (start + size > bytes.length) throw new RangeError('the character is cut');
      text += decoder.decode(Uint8Array.from(bytes.slice(start, start + size)));
      start += size;
    } catch {
      text += '\ufffd';
      start += 1;
    }
  }
  return text;
}
