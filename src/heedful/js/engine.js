// Engine: a model's graphs in ONNX Runtime, one target token at a time; the twin of heedful.engines.onnx for one source.
import { ModelError } from './errors.js';
import { BOS } from './vocabulary.js';

/**
 * @typedef {{ type: string, dims: readonly number[], data: any }} Tensor
 * @typedef {{ inputNames: readonly string[], outputNames: readonly string[], run(feeds: object, fetches: string[]): Promise<Record<string, Tensor>>, release(): Promise<void> }} Session
 * @typedef {{ Tensor: new (type: any, data: any, dims: any) => any, InferenceSession: { create(graph: Uint8Array, options?: object): Promise<any> } }} Runtime
 * @typedef {Record<string, Tensor>} Tensors
 * @typedef {readonly number[] | { pixels: Uint8Array, dims: number[], positions: number, length: number }} Source Ids ending in
 *   EOS, or a picture, whose length says nothing of that of its caption.
 * @typedef {{ memory: Tensors, state: Tensors }} State
 * @typedef {object} Scores Scores of one step.
 * @property {Float32Array} logProbs [hypothesis, token]
 * @property {number} vocabularySize
 * @property {Float32Array | null} weights [hypothesis, position] attention over the source
 * @property {number} width number of positions
 */

/**
 * Load a graph of an archive.
 * @param {Runtime} ort @param {Map<string, Uint8Array>} files @param {string} name
 * @returns {Promise<Session>}
 */
export async function openGraph(ort, files, name) {
  const graph = files.get(name);
  if (!graph) throw new ModelError('damaged', `not a model of heedful: it has no ${name}`);
  try {
    return await ort.InferenceSession.create(graph, { executionProviders: ['wasm'], intraOpNumThreads: 1, logSeverityLevel: 3 });
  } catch (error) {
    throw new ModelError('runtime', `ONNX Runtime does not run ${name}: ${error instanceof Error ? error.message : error}`, error);
  }
}

const INPUTS = ['source', 'source_lengths', 'pixels'];

export class Engine {
  /** @param {Runtime} ort @param {Session} encoder @param {Session} decoder @param {(() => Promise<Session>) | null} openLayers */
  constructor(ort, encoder, decoder, openLayers) {
    this.ort = ort;
    this.encoder = encoder;
    this.decoder = decoder;
    this.openLayers = openLayers;
    /** @type {Promise<Session> | null} */
    this.layers = null;
    this.stateNames = decoder.inputNames.filter((name) => name.startsWith('state.'));
    this.memoryNames = decoder.inputNames.filter((name) => name.startsWith('memory.'));
    this.hasWeights = decoder.outputNames.includes('weights');
    const isOurs = encoder.inputNames.every((name) => INPUTS.includes(name)) && decoder.inputNames.includes('tokens') && this.stateNames.every((name) => decoder.outputNames.includes(`next.${name}`));
    if (!isOurs) throw new ModelError('kind', 'these graphs are not of heedful: their inputs have other names');
    if (!decoder.outputNames.includes('log_probs')) throw new ModelError('kind', 'graphs with a vocabulary shortlist do not run here; export the model again');
  }

  /**
   * @param {Runtime} ort
   * @param {Map<string, Uint8Array>} files with the graphs encode.onnx and step.onnx, and layers.onnx or not
   */
  static async open(ort, files) {
    const open = (/** @type {string} */ name) => openGraph(ort, files, name);
    return new Engine(ort, await open('encode.onnx'), await open('step.onnx'), files.has('layers.onnx') ? () => open('layers.onnx') : null);
  }

  /**
   * Encode a source.
   * @param {Source} ids
   * @returns {Promise<State>} the state before the first token, of one hypothesis
   */
  async start(ids) {
    const inputs = this.inputs(ids);
    const values = await this.run(this.encoder, inputs, [...this.encoder.outputNames]);
    const pick = (/** @type {string[]} */ names) => Object.fromEntries(names.map((name) => [name, values[name] ?? inputs.source_lengths]));
    return { memory: pick(this.memoryNames), state: pick(this.stateNames) };
  }

  /**
   * Feed a token to each hypothesis.
   * @param {State} state
   * @param {readonly number[]} tokens of each hypothesis
   * @param {readonly number[] | null} parents hypothesis that each one continues; null = itself
   * @param {boolean} [needWeights] whether attention is wanted
   * @returns {Promise<[Scores, State]>} scores of the next tokens, and the next state
   */
  async step(state, tokens, parents, needWeights = false) {
    const before = parents ? Object.fromEntries(Object.entries(state.state).map(([name, tensor]) => [name, this.reordered(tensor, parents)])) : state.state;
    const hasWeights = needWeights && this.hasWeights;
    const names = ['log_probs', ...this.stateNames.map((name) => `next.${name}`), ...(hasWeights ? ['weights'] : [])];
    const values = await this.run(this.decoder, { tokens: this.integers(tokens, [1, tokens.length]), ...state.memory, ...before }, names);
    const after = Object.fromEntries(this.stateNames.map((name) => [name, values[`next.${name}`]]));
    const { log_probs: logProbs, weights } = values;
    return [
      { logProbs: logProbs.data, vocabularySize: logProbs.dims[2], weights: hasWeights ? weights.data : null, width: hasWeights ? weights.dims[2] : 0 },
      { memory: state.memory, state: after },
    ];
  }

  /**
   * Attention of every layer and head while a given output is generated, where the model has the graph for it.
   * @param {readonly number[]} source @param {readonly number[]} output with EOS if the model ended it
   * @returns {Promise<{ role: string, layer: number, shape: number[], values: Float32Array }[]>} [head, query, key] weights
   */
  async attention(source, output) {
    if (!this.openLayers) return [];
    const session = await (this.layers ??= this.openLayers());
    const target = [BOS, ...output.slice(0, -1)];
    const feeds = { ...this.inputs(source), target_in: this.integers(target, [1, target.length]) };
    const values = await this.run(session, feeds, [...session.outputNames]);
    return Object.entries(values).map(([name, { dims, data }]) => {
      const [role, layer] = name.split('.');
      return { role, layer: Number(layer), shape: dims.slice(1), values: data };
    });
  }

  /** Free the memory of the runtime. */
  async release() {
    await Promise.all([this.encoder.release(), this.decoder.release(), this.layers?.then((session) => session.release())]);
  }

  /** @param {Source} ids */
  inputs(ids) {
    if ('pixels' in ids) return { pixels: new this.ort.Tensor('uint8', ids.pixels, ids.dims), source_lengths: this.integers([ids.positions], [1]) };
    return { source: this.integers(ids, [1, ids.length]), source_lengths: this.integers([ids.length], [1]) };
  }

  /**
   * @param {Session} session @param {Record<string, any>} feeds @param {string[]} names
   */
  run(session, feeds, names) {
    return session.run(Object.fromEntries(session.inputNames.map((name) => [name, feeds[name]])), names);
  }

  /** @param {readonly number[]} values @param {number[]} dims */
  integers(values, dims) {
    return new this.ort.Tensor('int64', BigInt64Array.from(values, BigInt), dims);
  }

  /**
   * Hypotheses of a tensor in another order; axis 1 is the hypothesis.
   * @param {Tensor} tensor @param {readonly number[]} parents
   * @returns {Tensor}
   */
  reordered({ type, dims, data }, parents) {
    const size = data.length / dims[1];
    const values = new data.constructor(size * parents.length);
    parents.forEach((parent, index) => values.set(data.subarray(parent * size, (parent + 1) * size), index * size));
    return new this.ort.Tensor(type, values, [dims[0], parents.length, ...dims.slice(2)]);
  }
}
