// Models that answer questions about facts: one of their labels, or a span of the facts; the twin of heedful.predictors.answerer.
import { ModelError } from './errors.js';
import { folder } from './folding.js';
import { checkedOptions } from './options.js';
import { Tokenizer } from './tokenizers.js';
import { EOS } from './vocabulary.js';
import { isBlank, splitWords } from './whitespace.js';

/**
 * @typedef {{ facts: readonly string[], question: string }} Story
 *
 * @typedef {object} Span Place of an answer in the facts.
 * @property {string} passage the facts with a space between them, normalized
 * @property {number} start code units of the passage
 * @property {number} end
 * @property {[number, number][]} tokens code units of each token that the model read
 * @property {number[]} attention of the question to each token
 * @property {number[]} starts probability that the answer starts at a token
 * @property {number[]} ends
 *
 * @typedef {object} Answer
 * @property {string} answer
 * @property {number} probability
 * @property {[string, number][]} probabilities the most probable first; of spans at most five
 * @property {number[][] | null} weights [step][fact], of spans those of start and end
 * @property {boolean} wasCut
 * @property {Span | null} span null from a model that chooses a label
 */

const MOST_SPANS = 5;
/** Blocks of Hangul, as of heedful.text.scripts. */
const HANGUL = '\\u1100-\\u11ff\\u3131-\\u318f\\ua960-\\ua97f\\uac00-\\ud7ff';
const spaced = (/** @type {string} */ text) => splitWords(text).join(' ');
const first = (/** @type {string} */ text, /** @type {number} */ most) => Array.from(text.slice(0, 2 * most)).slice(0, most).join('');

export class AnswerModel {
  /** @param {import('./labels.js').LabelFacts} facts @param {import('./labels.js').LabelGraphs} graphs */
  constructor(facts, graphs) {
    this.facts = facts;
    this.graphs = graphs;
    this.tokenizer = new Tokenizer(facts.tokenizer, facts.folding ? folder(facts.folding) : undefined);
    const blocks = facts.unspaced.map(([low, high]) => `\\u{${low.toString(16)}}-\\u{${high.toString(16)}}`).join('');
    /** Characters that make words: letters with their marks, and digits. Words of scripts without spaces have no edges, and those of Korean end in particles. */
    this.kinds = ['\\p{L}\\p{M}', '\\p{N}'].map((kind) => new RegExp(`^(?![${blocks}${HANGUL}])[${kind}]`, 'u'));
  }

  get name() {
    return this.facts.name;
  }

  /**
   * Answer questions.
   * @param {readonly Story[]} stories
   * @param {{ signal?: AbortSignal }} [options]
   * @returns {Promise<Answer[]>} one for each question, in order
   */
  async answer(stories, options = {}) {
    const { signal } = checkedOptions(options, 'answer');
    if (!Array.isArray(stories)) throw new ModelError('usage', 'answer: expected a list of stories; put a single one into a list');
    const answers = [];
    for (const story of stories) {
      signal?.throwIfAborted();
      if (typeof story?.question !== 'string' || !Array.isArray(story.facts) || !story.facts.every((/** @type {unknown} */ fact) => typeof fact === 'string')) throw new ModelError('usage', 'answer: expected { facts: [texts], question: text }');
      answers.push(await (this.facts.labels.length ? this.label(story) : this.find(story)));
    }
    return answers;
  }

  /** @param {Story} story @returns {Promise<Answer>} */
  async label({ facts, question }) {
    const half = Math.floor(this.facts.max_tokens / 2);
    // The question, then the facts, the newest first, so that a limit of length cuts the oldest.
    const texts = [question, ...[...facts].reverse()].map((text) => (isBlank(text) ? [] : this.tokenizer.encode(clean(first(text, 16 * half)))));
    let size = 0;
    const read = [];
    for (const ids of texts) {
      const own = ids.slice(0, Math.max(0, half - 1));
      if (read.length && size + own.length + 1 > this.facts.max_tokens) break;
      size += own.length + 1;
      read.push(own);
    }
    const [asked, ...known] = read, width = Math.max(1, ...known.map((ids) => ids.length)), rows = Math.max(1, known.length);
    const padded = new Array(rows * width).fill(0);
    known.forEach((ids, row) => ids.forEach((id, column) => { padded[row * width + column] = id; }));
    const { logProbs, weights } = await this.graphs.feed({
      question: [asked.length ? asked : [0], [1, Math.max(1, asked.length)]], facts: [padded, [1, rows, width]], num_facts: [[known.length], [1]],
    });
    const scores = Array.from(logProbs, Number), { labels } = this.facts;
    const order = labels.map((_, index) => index).sort((one, other) => scores[other] - scores[one] || one - other);
    const probabilities = order.map((index) => /** @type {[string, number]} */ ([labels[index], Math.exp(scores[index])]));
    const byFact = weights && rowsOf(weights, rows).map((row) => facts.map((_, index) => (facts.length - 1 - index < known.length ? row[facts.length - 1 - index] : 0)));
    return { answer: probabilities[0][0], probability: probabilities[0][1], probabilities, weights: byFact, wasCut: texts.some((ids) => ids.length >= half) || read.length < texts.length, span: null };
  }

  /** @param {Story} story @returns {Promise<Answer>} */
  async find({ facts, question }) {
    const { max_tokens: limit } = this.facts, most = 16 * limit;
    const [asked, ...statements] = [question, ...facts].map((text) => this.tokenizer.normalize(clean(spaced(text)))).map((text, index) => (index ? spaced(text) : text));
    const passage = statements.join(' '), beginning = first(passage, most);
    const questionIds = asked ? this.tokenizer.encode(first(asked, most)) : [], cut = questionIds.slice(0, Math.max(0, Math.floor(limit / 2) - 1));
    const ids = passage ? this.tokenizer.encode(beginning) : [], room = Math.max(0, limit - cut.length - 2);
    const tokens = (passage ? this.tokenizer.ranges(beginning) : []).slice(0, room), read = [...ids.slice(0, room), EOS];
    const { logProbs, weights } = await this.graphs.feed({
      question: [[...cut, EOS], [1, cut.length + 1]], question_lengths: [[cut.length + 1], [1]], passage: [read, [1, read.length]], passage_lengths: [[read.length], [1]],
    });
    const both = rowsOf(logProbs, read.length), [starts, ends] = both.map((row) => row.slice(0, -1)); // the last position is EOS
    // Where the passage may not answer the question, both ends are at EOS then.
    const own = this.facts.has_impossible ? Math.exp(both[0][read.length - 1] + both[1][read.length - 1]) : 0;
    const shift = Math.exp(this.facts.no_answer_shift ?? 0), scale = 1 / (1 + own * (shift - 1));
    const known = bestSpans(starts, ends).map(({ start, end, score }) => ({ ...this.wholeWords(passage, trimmed(passage, tokens[start][0], tokens[end][1])), probability: scale * Math.exp(score) }));
    const none = { start: 0, end: 0, probability: own * shift * scale };
    const spans = this.facts.has_impossible ? [...known, none].sort((one, other) => other.probability - one.probability).slice(0, MOST_SPANS) : known;
    const best = spans[0] ?? none, text = passage.slice(best.start, best.end);
    /** @type {Map<string, number>} */
    const shares = new Map();
    for (const one of spans.length ? spans : [best]) if (!shares.has(passage.slice(one.start, one.end))) shares.set(passage.slice(one.start, one.end), one.probability);
    const edges = statements.reduce((list, fact) => [...list, list[list.length - 1] + fact.length + 1], [0]), rows = [starts, ends].map((row) => row.map(Math.exp));
    const owner = tokens.map(([start]) => edges.slice(1, -1).filter((edge) => edge - 1 <= start).length);
    return {
      answer: text, probability: /** @type {number} */ (shares.get(text)), probabilities: [...shares],
      weights: rows.map((row) => statements.map((_, fact) => row.reduce((sum, weight, index) => sum + (owner[index] === fact ? weight : 0), 0))),
      wasCut: cut.length < questionIds.length || room < ids.length || Math.max(Array.from(passage).length, Array.from(asked).length) > most,
      span: { passage, start: best.start, end: best.end, tokens, attention: weights ? rowsOf(weights, read.length)[0].slice(0, -1) : tokens.map(() => 0), starts: rows[0], ends: rows[1] },
    };
  }

  /** A span with the rest of the words at its edges. @param {string} text @param {{ start: number, end: number }} span */
  wholeWords(text, { start, end }) {
    if (start === end) return { start, end };
    const at = (/** @type {number} */ place) => this.kinds.findIndex((kind) => kind.test(String.fromCodePoint(text.codePointAt(place) ?? 0)));
    // The first code unit of the character before a place.
    const before = (/** @type {number} */ place) => place - (/[\udc00-\udfff]/.test(text[place - 1]) && place > 1 ? 2 : 1);
    // Within a word, or within a number such as "1,947.5".
    const isMark = (/** @type {number} */ place) => WITHIN_NUMBERS.includes(text[place]), isDigit = (/** @type {number} */ place) => at(place) === 1;
    const isWithin = (/** @type {number} */ place) => {
      const last = before(place);
      if (at(place) >= 0 && at(last) === at(place)) return true;
      return (isMark(place) && isDigit(last) && isDigit(place + 1)) || (isMark(last) && last > 0 && isDigit(place) && isDigit(before(last)));
    };
    while (start > 0 && isWithin(start)) start = before(start);
    while (end < text.length && isWithin(end)) end += String.fromCodePoint(text.codePointAt(end) ?? 0).length;
    return { start, end };
  }

  /** Free the memory of the runtime. */
  release() {
    return this.graphs.release();
  }
}

/** Marks that do not end a number if a digit follows. */
const WITHIN_NUMBERS = ".,:'’";

const clean = (/** @type {string} */ text) => text.toWellFormed().replaceAll('\0', '\ufffd');

/** @param {Float32Array} values @param {number} size */
function rowsOf(values, size) {
  return Array.from({ length: values.length / size }, (_, row) => Array.from(values.subarray(row * size, (row + 1) * size)));
}

/** The most probable pairs of a start and an end behind it; of equal ones the earlier. @param {number[]} starts @param {number[]} ends */
function bestSpans(starts, ends) {
  /** @type {{ start: number, end: number, score: number }[]} */
  const best = [];
  starts.forEach((one, start) => {
    for (let end = start; end < ends.length; end++) {
      const score = one + ends[end];
      if (best.length === MOST_SPANS && !(score > best[MOST_SPANS - 1].score)) continue;
      const place = best.findIndex((other) => score > other.score);
      best.splice(place < 0 ? best.length : place, 0, { start, end, score });
      if (best.length > MOST_SPANS) best.pop();
    }
  });
  return best;
}

/** A span without the white space around it. @param {string} text @param {number} start @param {number} end */
function trimmed(text, start, end) {
  const span = text.slice(start, end), inner = splitWords(span);
  if (!inner.length) return { start: end, end };
  const head = span.indexOf(inner[0]);
  return { start: start + head, end: start + span.lastIndexOf(/** @type {string} */ (inner.at(-1))) + /** @type {string} */ (inner.at(-1)).length };
}
