// Engine: a model's graphs in ONNX Runtime, one target token at a time; the twin of heedful.engines.onnx.
import { explained, ModelError } from './errors.js';
import { BOS, PAD } from './vocabulary.js';

/**
 * @typedef {{ type: string, dims: readonly number[], data: any }} Tensor
 * @typedef {{ inputNames: readonly string[], outputNames: readonly string[], run(feeds: object, fetches: string[]): Promise<Record<string, Tensor>>, release(): Promise<void> }} Session
 * @typedef {{ Tensor: new (type: any, data: any, dims: any) => any, InferenceSession: { create(graph: Uint8Array, options?: object): Promise<any> } }} Runtime
 * @typedef {Record<string, Tensor>} Tensors
 * @typedef {readonly number[] | { pixels: Uint8Array, dims: number[], positions: number, length: number }} Source Ids ending in
 *   EOS, or a picture, whose length says nothing of that of its caption.
 * @typedef {{ memory: Tensors, state: Tensors, lengths: readonly number[] }} State of sources; `lengths`: positions of each
 * @typedef {{ row: number, tokens: readonly number[], parents: readonly number[] | null }} Lane Source that goes on: its row in the
 *   state, and a token for each of its hypotheses, with the one that it continues (null = itself).
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
    // The name `cpu` is known to onnxruntime-web and onnxruntime-node alike.
    const session = await ort.InferenceSession.create(graph, { executionProviders: ['cpu'], intraOpNumThreads: 1, logSeverityLevel: 3 });
    return {
      inputNames: session.inputNames, outputNames: session.outputNames, release: () => session.release(),
      run: (/** @type {object} */ feeds, /** @type {string[]} */ names) => session.run(feeds, names).catch((/** @type {unknown} */ error) => { throw explained(error); }),
    };
  } catch (error) {
    if (explained(error) !== error) throw explained(error);
    throw new ModelError('runtime', `ONNX Runtime does not run ${name}: ${error instanceof Error ? error.message : error}`, error);
  }
}

/**
 * Load graphs one after another. Where one fails, or the caller gives up, the memory of those before is freed.
 * @param {Runtime} ort @param {Map<string, Uint8Array>} files @param {readonly string[]} names
 * @param {AbortSignal} [signal] a graph that is being loaded is finished first, for ONNX Runtime cannot stop
 * @returns {Promise<Session[]>}
 */
export async function openGraphs(ort, files, names, signal) {
  /** @type {Session[]} */
  const sessions = [];
  try {
    for (const name of names) {
      signal?.throwIfAborted();
      sessions.push(await openGraph(ort, files, name));
    }
    signal?.throwIfAborted();
    return sessions;
  } catch (error) {
    await Promise.allSettled(sessions.map((session) => session.release()));
    throw error;
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
   * @param {AbortSignal} [signal]
   */
  static async open(ort, files, signal) {
    const [encoder, decoder] = await openGraphs(ort, files, ['encode.onnx', 'step.onnx'], signal);
    return new Engine(ort, encoder, decoder, files.has('layers.onnx') ? () => openGraph(ort, files, 'layers.onnx') : null);
  }

  /**
   * Encode a source.
   * @param {Source} source
   * @returns {Promise<State>} the state before the first token, of one hypothesis
   */
  start(source) {
    return this.startAll([source]);
  }

  /**
   * Feed a token to each hypothesis.
   * @param {State} state of one source
   * @param {readonly number[]} tokens of each hypothesis
   * @param {readonly number[] | null} parents hypothesis that each one continues; null = itself
   * @param {boolean} [needWeights] whether attention is wanted
   * @returns {Promise<[Scores, State]>} scores of the next tokens, and the next state
   */
  async step(state, tokens, parents, needWeights = false) {
    const [[scores], after] = await this.stepAll(state, [{ row: 0, tokens, parents }], needWeights);
    return [scores, after];
  }

  /**
   * Encode sources together.
   * @param {readonly Source[]} sources of ids, or one picture
   * @returns {Promise<State>} the state before the first token, of one hypothesis for each source
   */
  async startAll(sources) {
    const inputs = this.inputs(sources);
    const values = await this.run(this.encoder, inputs, [...this.encoder.outputNames]);
    const pick = (/** @type {string[]} */ names) => Object.fromEntries(names.map((name) => [name, values[name] ?? inputs.source_lengths]));
    const memory = pick(this.memoryNames);
    return { memory, state: pick(this.stateNames), lengths: Array.from((memory['memory.lengths'] ?? inputs.source_lengths).data, Number) };
  }

  /**
   * Feed a token to each hypothesis of each source.
   * @param {State} before
   * @param {readonly Lane[]} lanes sources that go on
   * @param {boolean} needWeights whether attention is wanted
   * @returns {Promise<[Scores[], State]>} scores of the next tokens of each lane, and the next state, whose rows are the lanes
   */
  async stepAll(before, lanes, needWeights) {
    const count = Math.max(...lanes.map(({ tokens }) => tokens.length)), number = before.lengths.length;
    const isWhole = lanes.length === number && lanes.every(({ row }, index) => row === index);
    const memory = isWhole ? before.memory : each(before.memory, (tensor) => this.rows(tensor, lanes.map(({ row }) => row), number));
    const state = each(before.state, (tensor) => (isWhole && tensor.dims[1] === count && lanes.every(({ parents }) => !parents) ? tensor : this.reordered(tensor, lanes, count)));
    const hasWeights = needWeights && this.hasWeights;
    const names = ['log_probs', ...this.stateNames.map((name) => `next.${name}`), ...(hasWeights ? ['weights'] : [])];
    // A lane of fewer hypotheses has others in their place, which nobody reads.
    const tokens = lanes.flatMap((lane) => Array.from({ length: count }, (_, slot) => lane.tokens[slot] ?? lane.tokens[0]));
    const values = await this.run(this.decoder, { tokens: this.integers(tokens, [lanes.length, count]), ...memory, ...state }, names);
    const { log_probs: { data, dims }, weights } = values, size = count * dims[2], lengths = lanes.map(({ row }) => before.lengths[row]);
    const scores = lanes.map((lane, index) => ({
      logProbs: data.subarray(index * size, index * size + lane.tokens.length * dims[2]), vocabularySize: dims[2],
      weights: hasWeights ? cut(weights, index, lane.tokens.length, lengths[index]) : null, width: hasWeights ? Math.min(lengths[index], weights.dims[2]) : 0,
    }));
    return [scores, { memory, state: Object.fromEntries(this.stateNames.map((name) => [name, values[`next.${name}`]])), lengths }];
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
    const feeds = { ...this.inputs([source]), target_in: this.integers(target, [1, target.length]) };
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

  /** @param {readonly Source[]} sources */
  inputs(sources) {
    const [first] = sources;
    if ('pixels' in first) return { pixels: new this.ort.Tensor('uint8', first.pixels, first.dims), source_lengths: this.integers([first.positions], [1]) };
    const longest = Math.max(...sources.map(({ length }) => length)), ids = /** @type {readonly (readonly number[])[]} */ (sources);
    const padded = ids.flatMap((one) => [...one, ...new Array(longest - one.length).fill(PAD)]);
    return { source: this.integers(padded, [ids.length, longest]), source_lengths: this.integers(ids.map(({ length }) => length), [ids.length]) };
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
   * Hypotheses of a tensor in another order; axis 0 is the source, axis 1 the hypothesis.
   * @param {Tensor} tensor @param {readonly Lane[]} lanes @param {number} count hypotheses of each lane
   */
  reordered(tensor, lanes, count) {
    const [number, width, ...rest] = tensor.dims;
    const rows = lanes.flatMap(({ row, tokens, parents }) => Array.from({ length: count }, (_, slot) => row * width + (slot < tokens.length ? parents?.[slot] ?? slot : 0)));
    return this.rows({ type: tensor.type, data: tensor.data, dims: [number * width, ...rest] }, rows, number * width, [lanes.length, count, ...rest]);
  }

  /**
   * Rows of a tensor, along its first axis.
   * @param {Tensor} tensor @param {readonly number[]} rows @param {number} number of rows that it has
   * @param {readonly number[]} [dims] of the result
   * @returns {Tensor}
   */
  rows({ type, dims: [, ...rest], data }, rows, number, dims = [rows.length, ...rest]) {
    const size = data.length / number, values = new data.constructor(size * rows.length);
    rows.forEach((row, index) => values.set(data.subarray(row * size, (row + 1) * size), index * size));
    return new this.ort.Tensor(type, values, dims);
  }
}

/** @param {Tensors} tensors @param {(tensor: Tensor) => Tensor} change */
function each(tensors, change) {
  return Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, change(tensor)]));
}

/** Weights of a lane, without those of the padding. @param {Tensor} weights @param {number} lane @param {number} count hypotheses @param {number} length positions */
function cut({ data, dims: [, width, positions] }, lane, count, length) {
  const start = lane * width * positions;
  if (length >= positions) return data.subarray(start, start + count * positions);
  const values = new Float32Array(count * length);
  for (let slot = 0; slot < count; slot++) values.set(data.subarray(start + slot * positions, start + slot * positions + length), slot * length);
  return values;
}
