// Tokenizers of Marian models: pieces of a SentencePiece model, and a vocabulary that numbers them; the twin of
// heedful.text.marian. Texts are normalized as SentencePiece does it, by the table of the model.
import { bytesOf } from './archive.js';
import { path } from './pieces.js';
import { decodeBytes, Tokenizer } from './tokenizers.js';
import { BOS, EOS, PAD, UNK } from './vocabulary.js';
import { strip } from './whitespace.js';

const MARK = '\u2581', SPACE = 0x20, FIRST = 4; // numbers below FIRST are not those of pieces
const utf8 = new TextEncoder(), text = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * @typedef {object} MarianFacts
 * @property {'marian'} units
 * @property {'NFC' | 'NFKC' | 'none' | 'folded'} normalization before that of the pieces
 * @property {string[]} tokens text of each id
 * @property {[string, number][]} pieces of the model, and the log probability of each
 * @property {string[]} control pieces that are no text
 * @property {string} unknown piece that stands for what is unknown
 * @property {boolean} has_bytes whether an unknown character is its bytes
 * @property {boolean} has_prefix whether a text begins with a space
 * @property {boolean} merges_spaces
 * @property {string} charsmap in base64
 */

/** @param {import('./tokenizers.js').TokenizerFacts | MarianFacts} facts @param {(text: string) => string} [fold] */
export function openTokenizer(facts, fold) {
  return facts.units === 'marian' ? new MarianTokenizer(facts, fold) : new Tokenizer(facts, fold);
}

export class MarianTokenizer extends Tokenizer {
  /** @param {MarianFacts} facts @param {(text: string) => string} [fold] */
  constructor(facts, fold) {
    super({ ...facts, units: 'pieces', scores: facts.tokens.map(() => 0) }, fold);
    this.marian = facts;
    const scores = [...new Array(FIRST).fill(0), ...facts.pieces.map(([, score]) => score)];
    this.unigram = {
      ids: new Map(facts.pieces.map(([piece], index) => [piece, index + FIRST])), facts: { scores },
      longest: Math.max(0, ...facts.pieces.map(([piece]) => [...piece].length)), lowest: Math.min(...scores.slice(FIRST)),
    };
    this.control = new Set(facts.control);
    this.map = facts.charsmap ? new CharacterMap(bytesOf(facts.charsmap)) : null;
  }

  /** @param {string} source */
  encode(source) {
    const normal = this.normalize(source), end = normal.startsWith('>>') && normal.includes('<<') ? normal.indexOf('<<') + 2 : 0;
    return [...(end ? [normal.slice(0, end)] : []), ...this.segments(normal.slice(end))].map((piece) => this.ids.get(piece) ?? UNK);
  }

  /** Texts of the pieces of a text; neighbouring unknown characters are one. @param {string} normal @returns {string[]} */
  segments(normal) {
    const characters = [...this.marked(normal)];
    /** @type {string[]} */
    const pieces = [];
    let wasUnknown = false;
    for (const [start, end, id] of path(characters, this.unigram)) {
      const piece = characters.slice(start, end).join(''), isUnknown = id === UNK;
      if (isUnknown && this.marian.has_bytes) pieces.push(...Array.from(utf8.encode(piece), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`));
      else if (isUnknown && wasUnknown) pieces[pieces.length - 1] += piece;
      else pieces.push(piece);
      wasUnknown = isUnknown;
    }
    return pieces;
  }

  /** A text as the pieces are cut from it, with marks in place of spaces. @param {string} normal */
  marked(normal) {
    const { has_prefix: hasPrefix, merges_spaces: merges } = this.marian, source = utf8.encode(normal);
    let result = '', isAfterSpace = merges, hasBegun = false;
    for (let place = 0; place < source.length;) {
      const [piece, size] = this.map?.at(source, place) ?? character(source, place);
      place += size;
      if (merges && !hasBegun && piece === ' ') continue;
      if (!hasBegun && hasPrefix) result += MARK;
      hasBegun = true;
      const kept = isAfterSpace ? piece.replace(/^ +/, '') : piece;
      if (!kept) continue;
      result += kept.replaceAll(' ', MARK);
      isAfterSpace = merges && kept.endsWith(' ');
    }
    return merges ? result.replace(/\u2581+$/, '') : result;
  }

  /** @param {readonly number[]} ids */
  decode(ids) {
    /** @type {number[]} */
    const bytes = [];
    let result = '';
    const flush = () => { result += decodeBytes(bytes.splice(0)); };
    for (const id of ids) {
      if (id === PAD || id === BOS || id === EOS) continue;
      const piece = this.facts.tokens[id], byte = this.marian.has_bytes ? /^<0x([0-9A-F]{2})>$/.exec(piece) : null;
      if (byte) { bytes.push(parseInt(byte[1], 16)); continue; }
      flush();
      if (piece === this.marian.unknown) result += ' \u2047 ';
      else if (!this.control.has(piece)) result += piece;
    }
    flush();
    return strip(result.replaceAll(MARK, ' '));
  }
}

/** A character that nothing replaces, and its number of bytes. @param {Uint8Array} source @param {number} place @returns {[string, number]} */
function character(source, place) {
  const first = source[place], size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return [first === SPACE ? ' ' : text.decode(source.subarray(place, place + size)), size];
}

// Table of replaced characters of a SentencePiece model: the size of a trie, its units (darts-clone), and texts that end in NUL.
class CharacterMap {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size / 4 }, (_, index) => view.getUint32(4 + 4 * index, true));
    this.texts = bytes.subarray(4 + size);
  }

  /** Replacement of the longest known beginning at a place, and its number of bytes; null where none is known. @param {Uint8Array} source @param {number} place @returns {[string, number] | null} */
  at(source, place) {
    let node = offsetOf(this.units[0]), value = -1, size = 0;
    for (let end = place; end < source.length; end++) {
      node ^= source[end];
      const unit = this.units[node];
      if (((unit & 0x800000ff) >>> 0) !== source[end]) break;
      node ^= offsetOf(unit);
      if ((unit >>> 8) & 1) [value, size] = [this.units[node] & 0x7fffffff, end + 1 - place];
    }
    return value < 0 ? null : [text.decode(this.texts.subarray(value, this.texts.indexOf(0, value))), size];
  }
}

const offsetOf = (/** @type {number} */ unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
