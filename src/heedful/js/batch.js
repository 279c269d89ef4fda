// Searches of several sources side by side: at every step, one run of the graph serves all of them.
import { search } from './search.js';

/** Most hypotheses of a run, beyond which a step takes as long as its hypotheses one by one. */
const MOST_ROWS = 16;

/**
 * Find the best outputs of sources, as many at a time as pays.
 * @param {import('./engine.js').Engine} engine
 * @param {readonly (readonly number[])[]} sources ids ending in EOS
 * @param {import('./search.js').SearchConfig} config
 * @param {import('./search.js').SearchOptions} options
 * @returns {Promise<import('./search.js').Hypothesis[][]>} of each source, best score first
 */
export async function searchAll(engine, sources, config, options) {
  // Neighbours are about as long, so that little is padded.
  const order = [...sources.keys()].sort((one, other) => sources[one].length - sources[other].length || one - other);
  const size = Math.max(1, Math.floor(MOST_ROWS / config.beam));
  /** @type {import('./search.js').Hypothesis[][]} */
  const found = new Array(sources.length);
  for (let start = 0; start < order.length; start += size) {
    const batch = new Batch(engine, Math.min(size, order.length - start));
    const searches = order.slice(start, start + size).map(async (source, lane) => {
      found[source] = await batch.run(lane, (own) => search(own, sources[source], config, options));
    });
    await Promise.all(searches);
  }
  return found;
}

/** Engine shared by searches that go from step to step together, each as if it had the engine for itself. */
class Batch {
  /** @param {import('./engine.js').Engine} engine @param {number} count number of searches */
  constructor(engine, count) {
    this.engine = engine;
    this.going = count;
    /** @type {Map<number, { request: any, settle: [(value: any) => void, (error: any) => void] }>} what each search waits for */
    this.waiting = new Map();
    /** @type {import('./engine.js').State | null} */
    this.state = null;
    /** @type {Map<number, number>} row of each search in the state */
    this.rows = new Map();
    /** @type {{ error: unknown } | null} */
    this.failure = null;
  }

  /**
   * @template Result
   * @param {number} lane number of the search
   * @param {(engine: any) => Promise<Result>} work
   */
  async run(lane, work) {
    const ask = (/** @type {any} */ request) => this.ask(lane, request);
    try {
      return await work({
        start: (/** @type {readonly number[]} */ source) => ask({ source }),
        step: (/** @type {unknown} */ _, /** @type {readonly number[]} */ tokens, /** @type {readonly number[] | null} */ parents, /** @type {boolean} */ needWeights) => ask({ tokens, parents, needWeights }),
      });
    } catch (error) {
      this.failure = { error }; // the others end too
      throw error;
    } finally {
      this.going -= 1;
      this.serve();
    }
  }

  /** @param {number} lane @param {any} request */
  ask(lane, request) {
    return new Promise((...settle) => {
      this.waiting.set(lane, { request, settle });
      this.serve();
    });
  }

  /** Answer the searches as soon as all of them wait. */
  async serve() {
    if (!this.waiting.size || this.waiting.size < this.going) return;
    const asked = [...this.waiting].sort(([one], [other]) => one - other);
    this.waiting.clear();
    try {
      if (this.failure) throw this.failure.error;
      const answers = await (this.state ? this.step(this.state, asked) : this.start(asked));
      this.rows = new Map(asked.map(([lane], row) => [lane, row]));
      asked.forEach(([, { settle: [resolve] }], row) => resolve(answers[row]));
    } catch (error) {
      for (const [, { settle: [, reject] }] of asked) reject(error);
    }
  }

  /** @param {[number, { request: any }][]} asked */
  async start(asked) {
    this.state = await this.engine.startAll(asked.map(([, { request }]) => request.source));
    return asked.map(() => null);
  }

  /** @param {import('./engine.js').State} state @param {[number, { request: any }][]} asked */
  async step(state, asked) {
    const lanes = asked.map(([lane, { request: { tokens, parents } }]) => ({ row: this.rows.get(lane) ?? 0, tokens, parents }));
    const [scores, after] = await this.engine.stepAll(state, lanes, asked.some(([, { request }]) => request.needWeights));
    this.state = after;
    return scores.map((one) => [one, null]);
  }
}
