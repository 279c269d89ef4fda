// Beam search over an engine, for one source; the twin of heedful.search, whose rules stand in heedful.search.beam.
// Greedy search is a beam of 1. Scores are sums in float64 of log probabilities in float32, as in Python.
import { ModelError } from './errors.js';
import { BOS, EOS, PAD, UNK } from './vocabulary.js';

/**
 * @typedef {object} SearchConfig Settings of heedful.search.config.SearchConfig, by the same names.
 * @property {number} beam
 * @property {number} nbest
 * @property {'power' | 'gnmt'} length_penalty
 * @property {number} alpha
 * @property {number} length_reward
 * @property {number} beta
 * @property {number} repetition_penalty
 * @property {number} no_repeat_ngram_size
 * @property {number} max_length_ratio
 * @property {number} max_length_offset
 * @property {number} min_length
 * @property {boolean} forbid_unknown
 * @property {'likely' | 'full' | 'certain'} stopping
 *
 * @typedef {'eos' | 'length' | 'stuck'} FinishReason
 * @typedef {'live' | 'stopped' | 'rank' | 'late_eos' | FinishReason} Fate
 *
 * @typedef {object} Hypothesis
 * @property {number[]} ids tokens, without EOS
 * @property {number} logProb sum of `tokenLogProbs`
 * @property {number} score score that ranks hypotheses
 * @property {number[]} tokenLogProbs of each token, that of EOS included
 * @property {FinishReason} reason
 * @property {Float32Array[] | null} weights attention of each token over the source; null unless requested
 *
 * @typedef {Hypothesis & { total: number, lengthScore: number }} Outcome Hypothesis with its log probability less charges, and
 *   its score before the coverage penalty.
 *
 * @typedef {object} Beginning Live hypothesis, or a candidate for one: its last token, and the one before.
 * @property {Beginning | null} before null before the first token
 * @property {number} token
 * @property {number} tokenLogProb of the model
 * @property {number} total log probability, less repetition charges
 * @property {number} length number of tokens
 * @property {number} slot index among the hypotheses of its step
 * @property {Float32Array | null} weights
 * @property {number} rank among the candidates of its step
 * @property {Fate} fate
 *
 * @typedef {object} SearchOptions
 * @property {number} maxLength most tokens of an output that the engine can generate, EOS included
 * @property {readonly number[]} [prefix] tokens that the output begins with
 * @property {boolean} [needWeights]
 * @property {AbortSignal} [signal]
 * @property {Beginning[]} [trace] filled with every candidate, in order of time
 * @property {() => Promise<void> | void} [pause] awaited before every step
 */

/** Lower bound of coverage, as in heedful.search.penalties. */
const SMALLEST_COVERAGE = 1e-10;

/**
 * Find the best outputs of a source.
 * @param {import('./engine.js').Engine} engine
 * @param {import('./engine.js').Source} source
 * @param {SearchConfig} config
 * @param {SearchOptions} options
 * @returns {Promise<Hypothesis[]>} best score first; at least 1, at most `config.nbest`
 */
export async function search(engine, source, config, options) {
  const { prefix = [], trace, signal } = options;
  const size = config.beam, needWeights = Boolean(options.needWeights) || config.beta > 0;
  const limit = Math.max(maxLength(source.length - 1, config, options.maxLength), Math.min(prefix.length + 1, options.maxLength));
  /** @type {Outcome[]} */
  const finished = [];
  /** @type {Beginning[]} */
  let live = [root()];
  let state = await engine.start(source), parents = /** @type {number[] | null} */ (null);
  for (let step = 0; ; step++) {
    await options.pause?.();
    signal?.throwIfAborted();
    const [scores, after] = await engine.step(state, live.map((one) => (step ? one.token : BOS)), parents, needWeights);
    state = after;
    const isLast = step + 1 >= limit;
    const candidates = rank(live, scores, config, step, prefix[step] ?? -1);
    trace?.push(...candidates);
    if (!candidates.length) return best(live.map((one) => outcome(one, 'stuck', config)), finished, config, options);
    candidates.slice(0, size).forEach((one) => {
      if (one.token !== EOS && !isLast) return;
      one.fate = one.token === EOS ? 'eos' : 'length';
      finished.push(outcome(one, one.fate, config));
    });
    live = isLast ? [] : candidates.filter((one) => one.token !== EOS).slice(0, size);
    parents = live.map((one) => one.slot);
    live.forEach((one, slot) => { one.slot = slot; one.fate = 'live'; });
    if (!live.length || hasEnough(finished, live, step + 1, limit, config)) {
      live.forEach((one) => { one.fate = 'stopped'; });
      return best([], finished, config, options);
    }
    if (parents.length === scores.logProbs.length / scores.vocabularySize && parents.every((parent, slot) => parent === slot)) parents = null;
  }
}

/**
 * Find the most probable tokens at each step of a given output.
 * @param {import('./engine.js').Engine} engine
 * @param {readonly number[]} source
 * @param {readonly number[]} output ids, with EOS if its alternatives are wanted too
 * @param {number} most number of tokens per step
 * @param {SearchOptions} options
 * @returns {Promise<{ id: number, logProb: number }[][]>} for each step, best first
 */
export async function choices(engine, source, output, most, { signal, pause }) {
  let state = await engine.start(source);
  const steps = [];
  for (const token of [BOS, ...output.slice(0, -1)]) {
    await pause?.();
    signal?.throwIfAborted();
    const [scores, after] = await engine.step(state, [token], null);
    state = after;
    steps.push(top(scores.logProbs, 0, scores.vocabularySize, most, new Set([PAD, BOS])));
  }
  return steps;
}

/** @returns {Beginning} */
const root = () => ({ before: null, token: BOS, tokenLogProb: 0, total: 0, length: 0, slot: 0, weights: null, rank: 0, fate: 'live' });

/** Length limit of an output, EOS included. */
function maxLength(/** @type {number} */ hint, /** @type {SearchConfig} */ config, /** @type {number} */ most) {
  return Math.max(1, Math.floor(Math.min(hint * config.max_length_ratio + config.max_length_offset, most)));
}

/**
 * Candidates of a step: by log probability, then by hypothesis, then by token.
 * @param {Beginning[]} live @param {import('./engine.js').Scores} scores @param {SearchConfig} config
 * @param {number} step @param {number} forced token of the prefix; -1 = free
 * @returns {Beginning[]}
 */
function rank(live, scores, config, step, forced) {
  const size = config.beam, { logProbs, vocabularySize } = scores;
  const banned = [PAD, BOS, ...(config.forbid_unknown ? [UNK] : []), ...(step < config.min_length ? [EOS] : [])];
  const most = (size > 1 ? size + 1 : 1) + (config.repetition_penalty > 1 ? step : 0);
  const candidates = live.flatMap((before, slot) => {
    const start = slot * vocabularySize;
    const past = config.repetition_penalty > 1 || config.no_repeat_ngram_size ? idsOf(before) : [];
    const proposed = forced < 0
      ? top(logProbs, start, vocabularySize, most, new Set([...banned, ...repeating(past, config.no_repeat_ngram_size)]))
      : slot === 0 && forced < vocabularySize ? [{ id: forced, logProb: logProbs[start + forced] }] : [];
    const weights = scores.weights?.slice(slot * scores.width, (slot + 1) * scores.width) ?? null;
    return proposed.map(({ id, logProb }) => {
      const charge = forced < 0 && config.repetition_penalty > 1 && past.includes(id) ? logProb * (1 - config.repetition_penalty) : 0;
      return { before, token: id, tokenLogProb: logProb, total: before.total + (logProb - charge), length: step + 1, slot, weights, rank: 0, fate: /** @type {Fate} */ (id === EOS ? 'late_eos' : 'rank') };
    });
  }).filter((one) => one.total > -Infinity);
  candidates.sort((one, other) => other.total - one.total || one.slot - other.slot || one.token - other.token);
  return candidates.slice(0, size > 1 ? 2 * size : 1).map((one, index) => Object.assign(one, { rank: index }));
}

/**
 * The largest log probabilities of a row; of equal ones the lower id first.
 * @param {Float32Array} logProbs @param {number} start @param {number} size of the row
 * @param {number} most @param {Set<number>} banned
 */
function top(logProbs, start, size, most, banned) {
  /** @type {{ id: number, logProb: number }[]} */
  const best = [];
  let least = -Infinity;
  for (let id = 0; id < size; id++) {
    const logProb = logProbs[start + id];
    if (!(logProb <= least && best.length === most)) {
      if (Number.isNaN(logProb)) throw new ModelError('nonfinite', "a log probability is NaN; the model's weights are broken or its arithmetic overflowed");
      if (logProb === -Infinity || banned.has(id)) continue;
      let index = best.length;
      while (index > 0 && best[index - 1].logProb < logProb) index -= 1;
      best.splice(index, 0, { id, logProb });
      if (best.length > most) best.pop();
      least = best[best.length - 1].logProb;
    }
  }
  return best;
}

/** Tokens that would repeat an n-gram. */
function repeating(/** @type {number[]} */ past, /** @type {number} */ size) {
  if (!size || past.length < size) return [];
  const ending = past.slice(past.length - size + 1);
  return past.filter((_, index) => index >= size - 1 && ending.every((token, offset) => past[index - size + 1 + offset] === token));
}

/** Tokens of a hypothesis. */
function idsOf(/** @type {Beginning} */ last) {
  return path(last).map((one) => one.token);
}

/** Beginnings from the first token to the last. */
function path(/** @type {Beginning} */ last) {
  const beginnings = [];
  for (let one = /** @type {Beginning | null} */ (last); one?.before; one = one.before) beginnings.push(one);
  return beginnings.reverse();
}

/** Score of a hypothesis before the coverage penalty. */
function lengthScore(/** @type {number} */ total, /** @type {number} */ length, /** @type {SearchConfig} */ config) {
  const counted = Math.max(length, 1);
  const penalty = config.length_penalty === 'gnmt' ? ((5 + counted) / 6) ** config.alpha : counted ** config.alpha;
  return total / penalty + config.length_reward * length;
}

/** Penalty for source positions that were not attended to. */
function coveragePenalty(/** @type {Float32Array[]} */ weights, /** @type {number} */ beta) {
  const coverage = weights[0].map((_, position) => weights.reduce((sum, row) => sum + row[position], 0));
  return beta * coverage.reduce((sum, each) => sum + Math.log(Math.min(Math.max(each, SMALLEST_COVERAGE), 1)), 0);
}

/** @returns {Outcome} */
function outcome(/** @type {Beginning} */ last, /** @type {FinishReason} */ reason, /** @type {SearchConfig} */ config) {
  const beginnings = path(last), ids = beginnings.map((one) => one.token);
  const tokenLogProbs = beginnings.map((one) => one.tokenLogProb);
  const weights = last.weights ? beginnings.map((one) => /** @type {Float32Array} */ (one.weights)) : null;
  const ranked = lengthScore(last.total, last.length, config);
  const coverage = config.beta > 0 && weights ? coveragePenalty(weights, config.beta) : 0;
  return {
    ids: reason === 'eos' ? ids.slice(0, -1) : ids,
    logProb: tokenLogProbs.reduce((sum, each) => sum + each, 0),
    score: ranked + coverage,
    lengthScore: ranked,
    total: last.total,
    tokenLogProbs,
    reason,
    weights,
  };
}

/** Whether the search may stop: the rules `likely`, `full` and `certain` of heedful.search.beam. */
function hasEnough(/** @type {Outcome[]} */ finished, /** @type {Beginning[]} */ live, /** @type {number} */ length, /** @type {number} */ limit, /** @type {SearchConfig} */ config) {
  const nth = (/** @type {number[]} */ numbers, /** @type {number} */ index) => numbers.sort((one, other) => other - one)[index] ?? -Infinity;
  const bestLive = Math.max(...live.map((one) => one.total)), now = lengthScore(bestLive, length, config);
  if (config.stopping === 'certain') return nth(finished.map((one) => one.score), config.nbest - 1) >= lengthScore(bestLive, limit, config);
  const scores = finished.map((one) => one.lengthScore);
  if (config.stopping === 'full') return nth(scores, config.beam - 1) >= now;
  if (config.alpha === 0 && config.beta === 0 && config.length_reward === 0) return nth(finished.map((one) => one.total), config.nbest - 1) >= bestLive;
  return finished.length >= config.beam && nth(scores, 0) >= now;
}

/** The best hypotheses; of equal scores the one that finished first. */
function best(/** @type {Outcome[]} */ unfinished, /** @type {Outcome[]} */ finished, /** @type {SearchConfig} */ config, /** @type {SearchOptions} */ { needWeights }) {
  const ranked = [...(finished.length ? finished : unfinished)].sort((one, other) => other.score - one.score).slice(0, config.nbest);
  return ranked.map(({ ids, logProb, score, tokenLogProbs, reason, weights }) => ({ ids, logProb, score, tokenLogProbs, reason, weights: needWeights ? weights : null }));
}
