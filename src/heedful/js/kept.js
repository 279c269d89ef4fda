// Kept spans of a text, which no translation changes, such as addresses and numbers; the twin of heedful.text.kept and
// heedful.text.kept_places, whose rules come as data.
import { words } from './links.js';
import { isBlank, isSpace, SPACE, splitWords, stripEnd, stripStart } from './whitespace.js';

/**
 * @typedef {{ start: number, end: number, kind: string }} Kept Span of a text, in code units.
 * @typedef {object} KeptFacts
 * @property {Record<string, [string, string]>} rules source and flags of the pattern of each kind of span, the first precedes
 * @property {string[]} known scripts that the model knows
 *
 * @typedef {{ text: string, spans: string[], places: number[], start: number }} Lifted Text without its kept spans, how much of it stood before each, and where it began.
 */

const LETTER = /\p{L}/u, ASCII = /^[\0-\x7f]*$/;
const WORD = '[\\p{L}\\p{M}\\p{Nl}\\p{No}\\u200c\\u200d]+', FOREIGN = new RegExp(`${WORD}(?:[${SPACE}'’-]+${WORD})*`, 'gu');
/** Character that belongs to the letter before it, as vowel signs of Indic scripts do. */
const MARK = /^[\p{M}\u200c\u200d]$/u;
const BRACKETS = ['()', '[]', '（）', '「」', '“”', '""', '«»', '<>'], OPENING = '([{"\'“„«（「', ENDS = '.,;:!?…)]}"\'”»。，；：！？）」';
const SPACE_BEFORE_MARK = /(?<! ) +(?=[.,;:!?…)\]}。，；：！？）」])/g;
const TAG = /^<\/?[^<>%?!][^<>]*>$/;
const OPENING_TAG = /^<[^/!?%][^>]*(?<!\/)>$/;
/** Beginning of spans that touch the word before them. */
const CLOSING = /^(?:<\/|[™®])/;
/** Weight of the links of the word behind a span against those of the word before it. */
const FOLLOWING = 0.5;

/** Word of more letters or hyphens than any in common use, or of one letter again and again. */
const LONG = /(?<![A-Za-zª-ʯͰ-ۿ_\p{Nd}])(?:[A-Za-zª-ʯͰ-ۿ_\p{Nd}]{41,}|(?=[A-Za-z+/]{0,60}\p{Nd})[A-Za-z\p{Nd}+/]{41,}={0,2}|(?:[A-Za-zª-ʯͰ-ۿ_\p{Nd}]{1,40}-){12,}[A-Za-zª-ʯͰ-ۿ_\p{Nd}]*|([A-Za-zª-ʯͰ-ۿ])\1{7,})(?![A-Za-zª-ʯͰ-ۿ_\p{Nd}])/gu;
/** Span that may stand within a word. */
const WITHIN_WORD = /^(?:<(?!br\b)[^<>]*>|&shy;|\p{Nd}+)$/u, LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
/** Short word in capitals, and a letter that is none. */
const CAPITALS = /(?<![\p{L}\p{N}_'’-])[A-ZÀ-ÖØ-Þ]{2,6}(?![\p{L}\p{N}_'’-])/gu, SMALL = /[a-zß-öø-ÿ]/, VOWEL = /[AEIOUYÀ-ÆÈ-ÏÒ-ÖØ-Ý]/;

export class KeptRules {
  /** @param {KeptFacts} facts @param {import('./scripts.js').Scripts} scripts @param {(word: string) => boolean} [lacks] whether no source of the model has a word */
  constructor({ rules, known }, scripts, lacks = () => false) {
    this.lacks = lacks;
    this.rules = Object.entries(rules).map(([kind, [source, flags]]) => ({ kind, pattern: new RegExp(source, `${flags}g`) }));
    this.known = new Set(['', ...known]);
    this.scripts = scripts;
  }

  /**
   * Find the spans of a text that stay as they are.
   * @param {string} text
   * @returns {Kept[]} in order, none overlapping another
   */
  find(text) {
    /** @type {Kept[]} */
    const spans = [];
    const isTaken = new Uint8Array(text.length);
    const take = (/** @type {number} */ start, /** @type {number} */ end, /** @type {string} */ kind) => {
      if (start >= end || isTaken.subarray(start, end).includes(1)) return;
      isTaken.fill(1, start, end);
      spans.push({ start, end, kind });
    };
    for (const { kind, pattern } of this.rules) for (const match of text.matchAll(pattern)) take(match.index, match.index + match[0].length, kind);
    for (const { 0: word, index } of text.matchAll(LONG)) take(index, index + word.length, 'word');
    for (const [start, end] of ASCII.test(text) ? [] : this.foreign(text)) take(start, end, 'script');
    const isMixed = SMALL.test(text);
    // Among capitals, a word that a small model has not seen is rather "JA" than "NATO".
    for (const { 0: word, index } of text.matchAll(CAPITALS)) if (this.lacks(word) && (isMixed || !VOWEL.test(word))) take(index, index + word.length, 'acronym');
    return spans.sort((one, other) => one.start - other.start);
  }

  /** Runs of words in scripts that the model does not know. @param {string} text */
  *foreign(text) {
    for (const { 0: run, index } of text.matchAll(FOREIGN)) {
      let start = -1, end = 0, place = index;
      for (const character of run) {
        const isMark = MARK.test(character), script = isMark ? '' : this.scripts.of(character);
        if (isMark && start >= 0 && end === place) {
          end += character.length;
        } else if (!this.known.has(script)) {
          if (start < 0) start = place;
          end = place + character.length;
        } else if (script && start >= 0) {
          yield [start, end];
          start = -1;
        }
        place += character.length;
      }
      if (start >= 0) yield [start, end];
    }
  }
}

/** Whether a text has letters outside its kept spans. @param {string} text @param {readonly Kept[]} kept */
export function hasWords(text, kept) {
  return outside(text, kept).some((part) => LETTER.test(part));
}

/** Parts of a text before, between and behind its kept spans. @param {string} text @param {readonly Kept[]} kept */
export function outside(text, kept) {
  return [...kept, { start: text.length }].map(({ start }, index) => text.slice(index ? kept[index - 1].end : 0, start));
}

/**
 * Take the kept spans out of a text, with the spaces and the brackets around them.
 * @param {string} text @param {readonly Kept[]} kept
 * @returns {Lifted}
 */
export function lift(text, kept) {
  const parts = /** @type {string[]} */ ([]), letters = /** @type {number[]} */ ([]), starts = [], spans = [];
  let last = 0;
  const keep = (/** @type {number} */ stop) => {
    parts.push(text.slice(last, stop));
    for (let index = last; index < stop; index++) if (!isSpace(text[index])) letters.push(index);
  };
  for (let { start, end } of kept) {
    if (start > last && BRACKETS.includes(text[start - 1] + text.slice(end, end + 1))) { start -= 1; end += 1; }
    keep(start);
    if (partsWords(text, start, end)) parts.push(' ');
    starts.push(start);
    spans.push(text.slice(start, end));
    last = end;
  }
  keep(text.length);
  const rest = splitWords(parts.join('')).join(' ').replace(SPACE_BEFORE_MARK, ''), origins = /** @type {number[]} */ ([]);
  let number = 0;
  for (let index = 0; index < rest.length; index++) origins.push(rest[index] === ' ' ? origins[index - 1] + 1 : letters[number++]);
  const places = starts.map((start) => { const place = origins.findIndex((origin) => origin >= start); return place < 0 ? origins.length : place; });
  return { text: rest, spans, places, start: origins[0] ?? text.length };
}

/** Whether a span is all that stands between two words; a tag may stand within one. @param {string} text @param {number} start @param {number} end */
function partsWords(text, start, end) {
  const isBetween = LETTER_OR_DIGIT.test(characterBefore(text, start)) && LETTER_OR_DIGIT.test(String.fromCodePoint(text.codePointAt(end) ?? 0));
  return isBetween && !WITHIN_WORD.test(text.slice(start, end));
}

/**
 * Put kept spans into the output for the text without them: beside the words that are linked with those beside them.
 * @param {Lifted} lifted @param {string} output
 * @param {readonly import('./links.js').Link[]} links none = spans go to the same share of the length
 * @param {import('./scripts.js').Scripts} scripts
 */
export function putBack(lifted, output, links, scripts) {
  const gaps = [0, ...words(output, scripts).map(([, end]) => end).filter((end) => isSpace(output.slice(end, end + 1)) || ENDS.includes(output.slice(end, end + 1)) || scripts.isUnspaced(characterBefore(output, end)))];
  const offsets = lifted.places.map((place) => offsetOf(lifted.text, place, output, gaps, links));
  // Tags stand in the order of the source, so that those which were well formed still are.
  const tags = [...offsets.keys()].filter((index) => TAG.test(lifted.spans[index]));
  tags.map((index) => offsets[index]).sort((one, other) => one - other).forEach((offset, rank) => { offsets[tags[rank]] = offset; });
  lifted.spans.forEach((span, index) => {
    // The space of a gap goes before an opening tag, unless another span stands behind the tag in the gap.
    const isLast = !offsets.includes(offsets[index], index + 1);
    if (OPENING_TAG.test(span) && isLast && isSpace(output.slice(offsets[index], offsets[index] + 1))) offsets[index] += 1;
  });
  let result = '', last = 0, followsOpening = false;
  for (const index of [...offsets.keys()].sort((one, other) => offsets[one] - offsets[other] || one - other)) {
    const offset = offsets[index], span = lifted.spans[index];
    const before = output.slice(last, offset).slice(-1) || result.slice(-1), after = output.slice(offset, offset + 1);
    const isOpening = OPENING_TAG.test(span), touches = followsOpening && offset === last;
    const left = before && !(isSpace(before) || OPENING.includes(before) || touches || CLOSING.test(span)) ? ' ' : '';
    const right = after && !(isOpening || isSpace(after) || ENDS.includes(after)) ? ' ' : '';
    result += `${output.slice(last, offset)}${left}${span}${right}`;
    last = offset;
    followsOpening = isOpening;
  }
  return result + output.slice(last);
}

const characterBefore = (/** @type {string} */ text, /** @type {number} */ end) => Array.from(text.slice(Math.max(0, end - 2), end)).at(-1) ?? '';

/** Place before which a span is put. @param {string} text @param {number} place @param {string} output @param {readonly number[]} gaps @param {readonly import('./links.js').Link[]} links */
function offsetOf(text, place, output, gaps, links) {
  const before = stripEnd(text.slice(0, place)), after = stripStart(text.slice(place));
  if (!before || isBlank(output)) return 0;
  if (!after) {
    const ending = stripEnd(output), isMarked = ENDS.includes(/** @type {string} */ (before.at(-1)));
    return (isMarked ? ending : stripEnd(ending, (character) => ENDS.includes(character))).length || ending.length;
  }
  const left = before.length - 1, right = text.length - after.length, expected = place * output.length / text.length;
  const strengths = new Map(gaps.map((gap) => [gap, 0]));
  for (const { source: [start, end], target, weight } of links) {
    const isLeft = start <= left && left < end, isRight = !isLeft && start <= right && right < end;
    const gap = isLeft ? target[1] : stripEnd(output.slice(0, target[0])).length, strength = strengths.get(gap);
    if ((isLeft || isRight) && strength !== undefined) strengths.set(gap, strength + (isLeft ? weight : FOLLOWING * weight));
  }
  const distance = (/** @type {number} */ gap) => Math.abs(gap - expected);
  return [...strengths].reduce((best, one) => (one[1] > best[1] || (one[1] === best[1] && distance(one[0]) < distance(best[0])) ? one : best))[0];
}

/**
 * Kept spans of a source in an output, each once.
 * @param {string} output @param {readonly { text: string, kind: string }[]} spans
 * @returns {Kept[]} in order
 */
export function spansIn(output, spans) {
  /** @type {Kept[]} */
  const places = [];
  for (const { text, kind } of [...spans].sort((one, other) => other.text.length - one.text.length)) { // "12.5" before "2"
    let start = output.indexOf(text);
    const isTaken = () => places.some((one) => one.start < start + text.length && start < one.end);
    while (start >= 0 && isTaken()) start = output.indexOf(text, start + 1);
    if (start >= 0) places.push({ start, end: start + text.length, kind });
  }
  return places.sort((one, other) => one.start - other.start);
}

/** Whether each span stands in a text as often as in a source, and no number but those of the source. @param {readonly string[]} spans @param {string} source @param {string} text */
export function standOnce(spans, source, text) {
  const numbers = numbersOf(source);
  if (numbersOf(text).some((number) => !(numbers.includes(number) && numbers.splice(numbers.indexOf(number), 1)))) return false;
  let rest = text;
  for (const span of [...spans].sort((one, other) => other.length - one.length)) {
    if (!rest.includes(span)) return false;
    rest = rest.replace(span, () => '\n');
  }
  return !spans.some((span) => rest.includes(span));
}

const numbersOf = (/** @type {string} */ text) => Array.from(text.matchAll(/\p{Nd}+(?:[.,]\p{Nd}+)*/gu), ([number]) => number);
