// Classifiers: labels, probabilities, weights of tokens and vectors of texts; the twin of heedful.predictors.classifier.
import { Sentences } from './documents.js';
import { ModelError } from './errors.js';
import { folder } from './folding.js';
import { NgramModel } from './ngrams.js';
import { checkedOptions } from './options.js';
import { Tokenizer } from './tokenizers.js';
import { EOS } from './vocabulary.js';

/**
 * @typedef {object} LabelFacts Description of a model with labels, the file model.json of its archive.
 * @property {string} task
 * @property {string} name
 * @property {[string, string]} languages
 * @property {number} max_tokens
 * @property {import('./tokenizers.js').TokenizerFacts} tokenizer
 * @property {string[]} labels
 * @property {'one' | 'several' | 'ordered' | 'number'} label_kind
 * @property {string} separator
 * @property {import('./documents.js').SentenceRules | null} rules of sentences, where the model reads documents
 * @property {[number, number][]} unspaced code points of scripts without spaces
 * @property {(import('./ngrams.js').NgramFacts & { share: number }) | null} ngrams
 * @property {number[] | null} shifts
 * @property {boolean} has_impossible whether facts may not answer a question
 * @property {number} [no_answer_shift] nats added to the log odds that they do not
 * @property {import('./folding.js').FoldingFacts | null} folding
 *
 * @typedef {object} Classification
 * @property {string} text
 * @property {string} label several are joined by the model's separator
 * @property {string[]} labels
 * @property {number} probability of the label; of several, that exactly these are right
 * @property {[string, number][]} probabilities of all labels, the most probable first
 * @property {string[]} pieces tokens of the text, with EOS at the end of each sentence
 * @property {number[] | null} attention weight of each token
 * @property {boolean} wasCut
 */

export class ClassificationModel {
  /** @param {LabelFacts} facts @param {LabelGraphs} graphs @param {Uint8Array | undefined} ngrams */
  constructor(facts, graphs, ngrams) {
    this.facts = facts;
    this.graphs = graphs;
    const fold = facts.folding ? folder(facts.folding) : (/** @type {string} */ text) => text;
    this.tokenizer = new Tokenizer(facts.tokenizer, fold);
    this.sentences = facts.rules && new Sentences(facts.rules);
    this.ngrams = facts.ngrams && ngrams ? new NgramModel(ngrams, facts.ngrams, fold) : null;
  }

  get name() {
    return this.facts.name;
  }

  /**
   * Classify texts.
   * @param {readonly string[]} texts
   * @param {{ signal?: AbortSignal }} [options]
   * @returns {Promise<Classification[]>} one for each text, in order
   */
  async classify(texts, options = {}) {
    const { signal } = checkedOptions(options, 'classify'), results = [];
    for (const text of checked(texts, 'classify')) {
      signal?.throwIfAborted();
      results.push(await this.classifyOne(text));
    }
    return results;
  }

  /**
   * Encode texts as vectors.
   * @param {readonly string[]} texts
   * @param {{ signal?: AbortSignal }} [options]
   * @returns {Promise<Float32Array[]>} input of the model's label layer
   */
  async encode(texts, options = {}) {
    const { signal } = checkedOptions(options, 'encode'), vectors = [];
    for (const text of checked(texts, 'encode')) {
      signal?.throwIfAborted();
      vectors.push((await this.graphs.run(this.ids(text).ids)).vector);
    }
    return vectors;
  }

  /** @param {string} text @returns {{ ids: number[], wasCut: boolean }} */
  ids(text) {
    return this.tokenizer.encodeSource(text, this.facts.max_tokens, this.sentences ?? undefined);
  }

  /** @param {string} text @returns {Promise<Classification>} */
  async classifyOne(text) {
    const { labels, label_kind: kind, ngrams, shifts, separator } = this.facts, { ids, wasCut } = this.ids(text);
    const { logProbs, weights } = await this.graphs.run(ids);
    let scores = Array.from(logProbs, Number);
    if (this.ngrams && ngrams) scores = mixture(kind, scores, normalized(kind, this.ngrams.scores(text)), ngrams.share);
    if (shifts) scores = normalized(kind, scores.map((score, index) => score + shifts[index]));
    if (scores.some(Number.isNaN)) throw new ModelError('nonfinite', 'a log probability is NaN: the weights are broken');
    const chosen = decide(kind, scores, labels), shares = scores.map(Math.exp);
    const order = labels.map((_, index) => index).sort((one, other) => scores[other] - scores[one] || one - other);
    return {
      text, label: chosen.join(separator), labels: chosen, probability: probabilityOf(kind, scores, labels, chosen),
      probabilities: order.map((index) => [labels[index], shares[index]]), pieces: this.tokenizer.pieces(ids), attention: weights && Array.from(weights), wasCut,
    };
  }

  /** Free the memory of the runtime. */
  release() {
    return this.graphs.release();
  }
}

/** Graphs of a label model: one, or one for words and one for sentences. */
export class LabelGraphs {
  /** @param {import('./engine.js').Runtime} ort @param {import('./engine.js').Session[]} sessions */
  constructor(ort, sessions) {
    this.ort = ort;
    this.sessions = sessions;
    /** @type {Map<string, Promise<{ vector: Float32Array, weights: Float32Array | undefined }>>} */
    this.known = new Map();
  }

  /**
   * Compute the label of one text.
   * @param {readonly number[]} ids
   * @returns {Promise<{ logProbs: Float32Array, vector: Float32Array, weights: Float32Array | null }>}
   */
  async run(ids) {
    if (this.sessions.length > 1) return this.runDocument(ids);
    return this.feed({ source: [ids, [1, ids.length]], source_lengths: [[ids.length], [1]] });
  }

  /** @param {Record<string, [readonly number[], number[]]>} values integers and sizes by name */
  async feed(values) {
    const [session] = this.sessions;
    const { log_probs: logProbs, vectors, weights } = await session.run(Object.fromEntries(session.inputNames.map((name) => [name, this.integers(...values[name])])), [...session.outputNames]);
    return { logProbs: logProbs.data, vector: vectors.data, weights: weights?.data ?? null };
  }

  /** @param {readonly number[]} ids */
  async runDocument(ids) {
    const parts = cut(ids), read = [];
    for (const part of parts) read.push(await this.sentence(part));
    const size = read[0].vector.length, items = new Float32Array(size * parts.length);
    read.forEach(({ vector }, index) => items.set(vector, index * size));
    const feeds = { items: new this.ort.Tensor('float32', items, [1, parts.length, size]), lengths: this.integers([parts.length], [1]) };
    const { log_probs: logProbs, vectors, weights } = await this.sessions[1].run(feeds, [...this.sessions[1].outputNames]);
    const all = weights && read.flatMap(({ weights: own }, index) => Array.from(/** @type {Float32Array} */ (own), (weight) => weight * weights.data[index]));
    return { logProbs: logProbs.data, vector: vectors.data, weights: all ? Float32Array.from(all) : null };
  }

  /** Vector of a sentence, kept because a text without one of its words has all other sentences. @param {number[]} ids */
  sentence(ids) {
    const key = ids.join();
    let result = this.known.get(key);
    if (!result) {
      const feeds = { items: this.integers(ids, [1, ids.length]), lengths: this.integers([ids.length], [1]) };
      result = this.sessions[0].run(feeds, [...this.sessions[0].outputNames]).then(({ vectors, weights }) => ({ vector: vectors.data, weights: weights?.data }));
      if (this.known.size >= 200) this.known.clear();
      this.known.set(key, result);
    }
    return result;
  }

  /** @param {readonly number[]} values @param {number[]} dims */
  integers(values, dims) {
    return new this.ort.Tensor('int64', BigInt64Array.from(values, BigInt), dims);
  }

  async release() {
    await Promise.all(this.sessions.map((session) => session.release()));
  }
}

/** Sentences of a document, each ending in EOS. @param {readonly number[]} ids */
function cut(ids) {
  /** @type {number[][]} */
  const parts = [[]];
  ids.forEach((id, index) => {
    /** @type {number[]} */ (parts.at(-1)).push(id);
    if (id === EOS && index < ids.length - 1) parts.push([]);
  });
  return parts;
}

/** @param {readonly string[]} texts @param {string} name */
export function checked(texts, name) {
  if (typeof texts === 'string' || !Array.isArray(texts)) throw new ModelError('usage', `${name}: expected a list of texts; put a single one into a list`);
  for (const text of texts) if (typeof text !== 'string') throw new ModelError('usage', `${name}: expected texts, got ${text === null ? 'null' : typeof text}`);
  return texts;
}

// Kinds of labels, as in heedful.data.label_kinds.
const logComplement = (/** @type {number} */ score) => Math.log(Math.max(-Math.expm1(Math.min(score, 0)), Math.exp(-30)));

/** @param {string} kind @param {number[]} scores */
function normalized(kind, scores) {
  if (kind === 'several') return scores.map((score) => -(Math.max(0, -score) + Math.log1p(Math.exp(-Math.abs(score)))));
  const most = Math.max(...scores), total = Math.log(scores.reduce((sum, score) => sum + Math.exp(score - most), 0));
  return scores.map((score) => score - most - total);
}

/** @param {string} kind @param {number[]} scores @param {number[]} linear @param {number} share */
function mixture(kind, scores, linear, share) {
  const value = (/** @type {number} */ score) => (kind === 'several' ? score - logComplement(score) : score);
  return normalized(kind, scores.map((score, index) => share * value(score) + (1 - share) * value(linear[index])));
}

/** @param {string} kind @param {number[]} scores @param {string[]} labels @returns {string[]} */
function decide(kind, scores, labels) {
  const shares = scores.map(Math.exp), total = shares.reduce((sum, share) => sum + share, 0);
  if (kind === 'several') return labels.filter((_, index) => shares[index] >= 0.5).sort(byCode);
  if (kind === 'number') return [general(shares.reduce((sum, share, index) => sum + share * Number(labels[index]), 0) / total)];
  if (kind === 'ordered') {
    let sum = 0;
    const middle = shares.findIndex((share) => (sum += share) >= 0.5 * total);
    return [labels[middle < 0 ? labels.length - 1 : middle]];
  }
  return [labels[scores.indexOf(Math.max(...scores))]];
}

/** @param {string} kind @param {number[]} scores @param {string[]} labels @param {string[]} chosen */
function probabilityOf(kind, scores, labels, chosen) {
  if (kind === 'several') return Math.exp(scores.reduce((sum, score, index) => sum + (chosen.includes(labels[index]) ? score : logComplement(score)), 0));
  if (kind !== 'number') return Math.exp(scores[labels.indexOf(chosen[0])]);
  const distances = labels.map((label) => Math.abs(Number(label) - Number(chosen[0])));
  return Math.exp(scores[distances.indexOf(Math.min(...distances))]);
}

// Order of code points, as Python sorts texts.
function byCode(/** @type {string} */ one, /** @type {string} */ other) {
  const [left, right] = [one, other].map((text) => Array.from(text, (character) => /** @type {number} */ (character.codePointAt(0))));
  const index = left.findIndex((code, place) => code !== right[place]);
  return index < 0 ? left.length - right.length : left[index] - (right[index] ?? -1);
}

// A number with six digits, as Python's format "g" writes it.
function general(/** @type {number} */ value) {
  if (!value) return '0';
  const [digits, exponent] = value.toExponential(5).split('e'), power = Number(exponent);
  const stripped = (/** @type {string} */ text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  if (power < -4 || power >= 6) return `${stripped(digits)}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  return stripped(value.toFixed(5 - power));
}
