// Translation model: tokenizers, engine and search behind one call; the twin of heedful.predictors.translator.
import { searchAll } from './batch.js';
import { ModelError } from './errors.js';
import { folder } from './folding.js';
import { openTokenizer } from './marian.js';
import { searchOf, shown } from './options.js';
import { Passages } from './passages.js';
import { joined } from './segments.js';
import { EOS, UNK } from './vocabulary.js';
import { isBlank } from './whitespace.js';

/**
 * @typedef {object} ModelFacts Description of a model, the file model.json of its archive.
 * @property {number} format
 * @property {string} task
 * @property {string} name
 * @property {string} kind
 * @property {[string, string]} languages
 * @property {number} max_tokens most tokens of a source or an output
 * @property {import('./search.js').SearchConfig} search
 * @property {import('./segments.js').SegmentFacts} segments
 * @property {import('./tokenizers.js').TokenizerFacts | import('./marian.js').MarianFacts} source_tokenizer
 * @property {import('./tokenizers.js').TokenizerFacts | import('./marian.js').MarianFacts | null} target_tokenizer null = that of the source
 * @property {import('./folding.js').FoldingFacts | null} [folding] where texts are folded
 *
 * @typedef {{ text: string, logProb: number, score: number }} Alternative
 * @typedef {object} Translation
 * @property {string} source
 * @property {string} text
 * @property {number} logProb
 * @property {number} score
 * @property {Alternative[]} alternatives all outputs, best first, the best one included
 * @property {boolean} wasCut whether the source exceeded the model's limit
 * @property {string[]} sourcePieces tokens of the source, EOS included; empty without attention
 * @property {string[]} targetPieces
 * @property {number[][] | null} attention [target piece][source piece] weights
 */

/** Milliseconds of work after which a page may draw, and a worker reads its messages. */
const SLICE = 12;

export class TranslationModel {
  /** @param {ModelFacts} facts @param {import('./engine.js').Engine} engine @param {Map<string, Uint8Array>} files tables of words, where the model has them */
  constructor(facts, engine, files) {
    if (!facts.segments) throw new ModelError('kind', 'made by an older heedful; export the model again');
    this.facts = facts;
    this.engine = engine;
    const fold = facts.folding ? folder(facts.folding) : undefined;
    this.sourceTokenizer = openTokenizer(facts.source_tokenizer, fold);
    this.targetTokenizer = facts.target_tokenizer ? openTokenizer(facts.target_tokenizer, fold) : this.sourceTokenizer;
    this.pause = pauses();
    this.passages = new Passages(this, files);
  }

  /** Name of the model. */
  get name() {
    return this.facts.name;
  }

  /** Codes of the source and the target language; empty where they are unknown. */
  get languages() {
    return this.facts.languages;
  }

  /**
   * Translate texts, each as a whole, as Python does with `segments=None`.
   * @param {readonly string[]} texts a blank one gives an empty text
   * @param {import('./options.js').SearchOptions} [options]
   * @returns {Promise<Translation[]>} one for each text, in order
   */
  async translate(texts, options = {}) {
    if (typeof texts === 'string' || !Array.isArray(texts)) throw new ModelError('usage', 'translate: expected a list of texts; put a single one into a list');
    const config = searchOf(this.facts.search, options, 'translate', ['prefix']), prefix = this.prefixOf(options.prefix), { attention = false, signal } = options;
    for (const text of texts) if (typeof text !== 'string') throw new ModelError('usage', `translate: expected texts, got ${text === null ? 'null' : typeof text}`);
    if ((attention || options.search?.beta) && !this.engine.hasWeights) throw new ModelError('usage', `translate: ${attention ? 'this model gives no attention' : 'search.beta needs attention, and this model gives none'}`);
    const sources = texts.map((text) => this.sourceTokenizer.encodeSource(text, this.facts.max_tokens)), full = [...texts.keys()].filter((index) => sources[index].ids.length > 1);
    const found = await searchAll(this.engine, full.map((index) => sources[index].ids), config, { maxLength: this.facts.max_tokens, needWeights: attention, signal, pause: this.pause, prefix });
    /** @type {Map<number, import('./search.js').Hypothesis[]>} */
    const outputs = new Map(full.map((index, number) => [index, found[number]]));
    return texts.map((source, index) => this.translation(source, sources[index], outputs.get(index) ?? [], attention));
  }

  /** Tokens of a prefix. @param {unknown} text */
  prefixOf(text = '') {
    if (typeof text !== 'string') throw new ModelError('usage', `translate: prefix is ${shown(text)}; expected a text`);
    const tokens = isBlank(text) ? [] : this.targetTokenizer.encode(text);
    if (tokens.includes(UNK)) throw new ModelError('usage', `translate: prefix ${shown(text)}: the model's vocabulary has no token for part of it; write it in other words, or leave it out`);
    if (tokens.length >= this.facts.max_tokens) throw new ModelError('usage', `translate: prefix has ${tokens.length} tokens, an output at most ${this.facts.max_tokens}`);
    return tokens;
  }

  /**
   * Translate a text of any number of lines and sentences, one by one; what stands between them stays, and within them what no
   * translation changes, such as addresses and numbers.
   * @param {string} text
   * @param {import('./options.js').SearchOptions} [options]
   * @returns {Promise<{ source: string, text: string, segments: import('./passages.js').SegmentTranslation[] }>}
   */
  async translateText(text, options = {}) {
    if (typeof text !== 'string') throw new ModelError('usage', 'translateText: expected a text');
    const parts = this.passages.segmenter.split(text), segments = await this.passages.translate(parts.segments, options);
    return { source: text, text: joined(parts, segments.map((one) => one.text)), segments };
  }

  /**
   * @param {string} source @param {{ ids: number[], wasCut: boolean }} encoded
   * @param {import('./search.js').Hypothesis[]} hypotheses none for a blank source
   * @param {boolean} attention
   * @returns {Translation}
   */
  translation(source, { ids, wasCut }, hypotheses, attention) {
    const [first] = hypotheses, hasAttention = attention && Boolean(first);
    const alternatives = first ? hypotheses.map(({ ids: output, logProb, score }) => ({ text: this.targetTokenizer.decode(output), logProb, score })) : [{ text: '', logProb: 0, score: 0 }];
    return {
      source, ...alternatives[0], alternatives, wasCut,
      sourcePieces: hasAttention ? this.sourceTokenizer.pieces(ids) : [],
      targetPieces: hasAttention ? this.targetTokenizer.pieces(ended(first)) : [],
      attention: first?.weights ? first.weights.map((row) => Array.from(row)) : null,
    };
  }

  /** Free the memory of the runtime. */
  release() {
    return this.engine.release();
  }
}

/** Tokens of a hypothesis, with EOS where the model ended it. */
export const ended = (/** @type {import('./search.js').Hypothesis} */ { ids, reason }) => (reason === 'eos' ? [...ids, EOS] : ids);

/** Pauses of a search that lets a page draw between its steps, or a worker hear that it is to end. */
export function pauses() {
  let last = 0;
  const isWatched = typeof document !== 'undefined' || 'WorkerGlobalScope' in globalThis;
  return () => {
    const now = performance.now();
    if (!isWatched || now - last < SLICE) return undefined;
    return /** @type {Promise<void>} */ (new Promise((go) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { last = performance.now(); port1.close(); go(); };
      port2.postMessage(null);
    }));
  };
}
