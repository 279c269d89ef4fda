// Links between words of a source and of its translation, by attention and a lexicon; the twin of heedful.text.attention_links.
import { SPACE, strip } from './whitespace.js';

/**
 * @typedef {{ source: [number, number], target: [number, number], weight: number }} Link Places of two words, and the share of the
 *   attention of the latter.
 * @typedef {{ sourcePieces: readonly string[], targetPieces: readonly string[], attention: readonly (readonly number[])[] }} Read Tokens
 *   of a source and of its translation, and the attention between them.
 */

const WORD = new RegExp(`[\\p{L}\\p{N}]+(?:['’][\\p{L}\\p{N}]+)*|[^${SPACE}]`, 'gu'), ASCII = /^[\0-\x7f]+$/, PLAIN = /^[\p{L}\p{N}]+$/u;
/** Exponent of the attention where a lexicon speaks too, and the least that attention and associations count for. */
const WEIGHT_POWER = 0.5, LEAST_WEIGHT = 0.01, LEAST_ASSOCIATION = 0.02;
/** Smallest share of a word's attention that makes a link. */
const LEAST = 0.02;
/** Factors of the weight between equal words, and between a word and a punctuation mark. */
const SAME = 5, UNLIKE = 0.1;
/** Characters beyond its size in which a token is looked for. */
const MOST_AROUND = 16;

/**
 * Words of a text: runs of letters and digits, other characters, and those of scripts without spaces.
 * @param {string} text @param {import('./scripts.js').Scripts} scripts
 * @returns {[number, number][]}
 */
export function words(text, scripts) {
  /** @type {[number, number][]} */
  const spans = [];
  for (const { 0: run, index } of text.matchAll(WORD)) {
    let first = index, place = index;
    for (const character of ASCII.test(run) ? '' : run) {
      if (scripts.isUnspaced(character)) {
        if (first < place) spans.push([first, place]);
        spans.push([place, place + character.length]);
        first = place + character.length;
      }
      place += character.length;
    }
    if (first < index + run.length) spans.push([first, index + run.length]);
  }
  return spans;
}

/** Associations of words in lower case, learned from the training pairs of a model. */
export class Lexicon {
  /** @param {Uint8Array} bytes a header, then lines of a source word and target words with their associations */
  constructor(bytes) {
    this.lines = new Map(new TextDecoder().decode(bytes).split('\n').slice(1).map((line) => { const end = line.indexOf('\t'); return [line.slice(0, end), line.slice(end + 1)]; }));
  }

  /** Target word that a source word is associated with the most; empty where there is none. @param {string} word */
  best(word) {
    return [...this.of(word)].reduce((best, one) => (one[1] > best[1] ? one : best), ['', 0])[0];
  }

  /** Associations of a source word. @param {string} word @returns {Map<string, number>} */
  of(word) {
    const cells = this.lines.get(word)?.split('\t') ?? [];
    return new Map(cells.flatMap((cell, index) => (index % 2 ? [] : [[cell, Number(cells[index + 1])]])));
  }
}

/**
 * Link the words of a translation to those of its source.
 * @param {string} source @param {string} target
 * @param {Read | null} read null = by the lexicon alone
 * @param {Lexicon | null} lexicon @param {import('./scripts.js').Scripts} scripts
 * @returns {Link[]} none without attention and a lexicon
 */
export function linksOf(source, target, read, lexicon, scripts) {
  const sourceWords = words(source, scripts), targetWords = words(target, scripts);
  if (!sourceWords.length || !targetWords.length || (!read && !lexicon)) return [];
  const lower = (/** @type {string} */ text, /** @type {[number, number][]} */ spans) => spans.map(([start, end]) => text.slice(start, end).toLowerCase());
  const left = lower(source, sourceWords), right = lower(target, targetWords);
  let scores = read ? byWord(source, target, sourceWords, targetWords, read) : right.map(() => left.map(() => 0));
  if (lexicon) {
    const known = left.map((word) => lexicon.of(word));
    scores = each(scores, (score, row, column) => Math.max(score, LEAST_WEIGHT) ** WEIGHT_POWER * ((known[column].get(right[row]) ?? 0) + LEAST_ASSOCIATION));
  }
  // Words and punctuation marks rarely translate each other, equal words do.
  scores = each(scores, (score, row, column) => score * (PLAIN.test(right[row]) === PLAIN.test(left[column]) ? 1 : UNLIKE) * (right[row] === left[column] ? SAME : 1));
  const rows = scores.map(sum), columns = left.map((_, column) => sum(scores.map((row) => row[column])));
  scores = each(scores, (score, row, column) => (score / Math.max(rows[row], 1e-12)) * (score / Math.max(columns[column], 1e-12)));
  const totals = scores.map(sum);
  scores = each(scores, (score, row) => score / Math.max(totals[row], 1e-12));
  return scores.flatMap((row, index) => row.flatMap((weight, column) => (weight >= LEAST ? [{ source: sourceWords[column], target: targetWords[index], weight }] : [])));
}

/** Weights of words: averaged over the tokens of a target word, and summed over those of a source word. */
function byWord(/** @type {string} */ source, /** @type {string} */ target, /** @type {[number, number][]} */ sourceWords, /** @type {[number, number][]} */ targetWords, /** @type {Read} */ { sourcePieces, targetPieces, attention }) {
  const rows = wordsOfTokens(target, targetPieces, targetWords).slice(0, attention.length), columns = wordsOfTokens(source, sourcePieces, sourceWords);
  const scores = targetWords.map(() => sourceWords.map(() => 0)), counts = targetWords.map(() => 0);
  rows.forEach((word, token) => {
    if (word < 0) return;
    counts[word] += 1;
    attention[token].forEach((weight, column) => { if (columns[column] >= 0) scores[word][columns[column]] += weight; });
  });
  return each(scores, (score, row) => score / Math.max(counts[row], 1));
}

/** Index of the word in which each token begins; -1 for tokens that stand in no text. @param {string} text @param {readonly string[]} tokens @param {[number, number][]} spans of words */
function wordsOfTokens(text, tokens, spans) {
  let offset = 0, word = 0;
  return tokens.map((token) => {
    const surface = strip(token.replaceAll('\u2581', ' '));
    const place = surface ? text.slice(offset, offset + surface.length + MOST_AROUND).indexOf(surface) : -1;
    if (place < 0) return -1;
    const start = offset + place;
    offset = start + surface.length;
    while (word + 1 < spans.length && spans[word][1] <= start) word += 1;
    return word;
  });
}

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, one) => total + one, 0);

const each = (/** @type {number[][]} */ table, /** @type {(value: number, row: number, column: number) => number} */ change) => table.map((row, index) => row.map((value, column) => change(value, index, column)));
