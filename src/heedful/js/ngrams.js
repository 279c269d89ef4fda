// Linear model of n-grams beside a classifier; the twin of heedful.engines.ngram_model and heedful.text.ngrams.
import { readTensors } from './tensors.js';

/**
 * @typedef {object} NgramFacts
 * @property {{ most_words: number, least_characters: number, most_characters: number }} sizes
 * @property {[string, string]} word source and flags of the expression that finds words
 */

const START = '\x02', END = '\x03', SPACE = 32n;
const FACTOR = 0x9e3779b97f4a7c15n, CHARACTERS = 0x5851f42d4c957f2dn, MIX = 0xbf58476d1ce4e5b9n;
/** Codes of words that are kept, as most texts share their words; of long words there are too many bytes. */
const MOST_KEPT = 10_000, MOST_KEPT_BYTES = 60;
const wrap = (/** @type {bigint} */ value) => BigInt.asUintN(64, value);

export class NgramModel {
  /** @param {Uint8Array} file in the format of safetensors @param {NgramFacts} facts @param {(text: string) => string} fold */
  constructor(file, { sizes, word }, fold) {
    const { hashes, rarity, weights, bias } = readTensors(file);
    Object.assign(this, { rarity, weights, bias });
    this.hashes = new BigUint64Array(hashes.buffer, hashes.byteOffset, hashes.length);
    this.sizes = sizes;
    this.word = new RegExp(word[0], `g${word[1]}`);
    this.fold = fold;
    /** @type {Map<string, bigint>} */
    this.codes = new Map();
  }

  /**
   * Score the labels of a text.
   * @param {string} text
   * @returns {number[]} unnormalised log probabilities
   */
  scores(text) {
    const folded = this.fold(text), scores = Array.from(/** @type {any} */ (this).bias, Number);
    for (const ngrams of [this.wordNgrams(folded), this.characterNgrams(folded)]) {
      /** @type {Map<number, number>} */
      const counts = new Map();
      for (const hash of ngrams) {
        const column = find(this.hashes, hash);
        if (column >= 0) counts.set(column, (counts.get(column) ?? 0) + 1);
      }
      const { rarity, weights } = /** @type {any} */ (this);
      const values = [...counts].map(([column, count]) => [column, (1 + Math.log(count)) * rarity[column]]);
      const norm = Math.sqrt(values.reduce((sum, [, value]) => sum + value * value, 0));
      for (const [column, value] of values) scores.forEach((_, label) => { scores[label] += (value / norm) * weights[column * scores.length + label]; });
    }
    return scores;
  }

  /** @param {string} folded */
  wordNgrams(folded) {
    const words = [START, ...(folded.match(this.word) ?? []), END], codes = words.map((word) => this.code(word));
    const hashes = codes.slice(1, -1);
    let rolling = codes;
    for (let size = 2; size <= this.sizes.most_words; size++) {
      rolling = rolling.slice(0, -1).map((code, index) => wrap(code * FACTOR + codes[index + size - 1]));
      hashes.push(...rolling.map(mixed));
    }
    return hashes;
  }

  /** @param {string} folded */
  characterNgrams(folded) {
    const codes = Array.from(` ${folded} `, (character) => BigInt(/** @type {number} */ (character.codePointAt(0)))), hashes = [];
    const { least_characters: least, most_characters: most } = this.sizes;
    for (let start = 0; start < codes.length; start++) {
      let rolling = codes[start];
      // A space may be the first or the last character of an n-gram.
      for (let size = 2; size <= most && start + size <= codes.length; size++) {
        rolling = wrap(rolling * FACTOR + codes[start + size - 1]);
        if (size > 2 && codes[start + size - 2] === SPACE) break;
        if (size >= least) hashes.push(mixed(wrap(rolling + CHARACTERS)));
      }
    }
    return hashes;
  }

  /** @param {string} word */
  code(word) {
    let code = this.codes.get(word);
    if (code === undefined) {
      const bytes = new TextEncoder().encode(word);
      code = blake2b(bytes);
      // A copy is kept, because a word that was cut from a text holds the whole text in memory.
      if (bytes.length <= MOST_KEPT_BYTES && this.codes.size < MOST_KEPT) this.codes.set(new TextDecoder().decode(bytes), code);
    }
    return code;
  }
}

/** Index in an ascending array; -1 where it is not there. @param {BigUint64Array} sorted @param {bigint} value */
function find(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return sorted[low] === value ? low : -1;
}

/** @param {bigint} hash */
function mixed(hash) {
  const product = wrap((hash ^ (hash >> 29n)) * MIX);
  return product ^ (product >> 32n);
}

// BLAKE2b (RFC 7693) with a digest of 8 bytes and the personalization that heedful has for n-grams.
const INITIAL = [0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n, 0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n];
const ORDERS = ['0123456789abcdef', 'ea489fd61c02b753', 'b8c052fdae367194', '7931dcbe265a40f8', '905724afe1bc683d', '2c6a0b834d75fe19', 'c51fed4a0763928b', 'db7ec13950f4862a', '6fe9b308c2d714a5', 'a2847615fb9e3cd0']
  .map((order) => Array.from(order, (digit) => parseInt(digit, 16)));
const LANES = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
const PERSON = new Uint8Array(16);
new TextEncoder().encodeInto('heedful ngram', PERSON);

/** @param {Uint8Array} message */
export function blake2b(message) {
  const state = [...INITIAL], person = new DataView(PERSON.buffer);
  state[0] ^= 0x01010008n;
  state[6] ^= person.getBigUint64(0, true);
  state[7] ^= person.getBigUint64(8, true);
  const blocks = Math.max(1, Math.ceil(message.length / 128));
  for (let block = 0; block < blocks; block++) {
    const bytes = new Uint8Array(128), isLast = block === blocks - 1;
    bytes.set(message.subarray(block * 128, block * 128 + 128));
    const words = Array.from({ length: 16 }, (_, index) => new DataView(bytes.buffer).getBigUint64(8 * index, true));
    const count = BigInt(isLast ? message.length : (block + 1) * 128);
    const v = [...state, ...INITIAL];
    v[12] ^= count;
    if (isLast) v[14] = wrap(~v[14]);
    for (let round = 0; round < 12; round++) {
      LANES.forEach(([a, b, c, d], lane) => {
        const order = ORDERS[round % 10];
        mix(v, a, b, c, d, words[order[2 * lane]], 32n, 24n);
        mix(v, a, b, c, d, words[order[2 * lane + 1]], 16n, 63n);
      });
    }
    state.forEach((_, index) => { state[index] ^= v[index] ^ v[index + 8]; });
  }
  return state[0];
}

/** @param {bigint[]} v @param {number} a @param {number} b @param {number} c @param {number} d @param {bigint} word @param {bigint} first @param {bigint} second */
function mix(v, a, b, c, d, word, first, second) {
  v[a] = wrap(v[a] + v[b] + word);
  v[d] = rotated(v[d] ^ v[a], first);
  v[c] = wrap(v[c] + v[d]);
  v[b] = rotated(v[b] ^ v[c], second);
}

const rotated = (/** @type {bigint} */ value, /** @type {bigint} */ by) => wrap((value >> by) | (value << (64n - by)));
