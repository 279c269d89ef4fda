// Loading of a model from its archive.
import { AnswerModel } from './answers.js';
import { readArchive } from './archive.js';
import { CaptionModel } from './captions.js';
import { Engine, openGraphs } from './engine.js';
import { explained, ModelError } from './errors.js';
import { ClassificationModel, LabelGraphs } from './labels.js';
import { TranslationModel } from './model.js';
import { brokenSetting, checkedOptions } from './options.js';
import { checkWebAssembly, isInNode, runtime } from './runtimes.js';

/** Version of the archives that this package reads. */
const FORMAT = 3;

/**
 * @typedef {TranslationModel | ClassificationModel | AnswerModel | CaptionModel} Model
 * @typedef {import('./engine.js').Runtime} Runtime
 * @typedef {object} LoadOptions
 * @property {Runtime} [ort] ONNX Runtime: the module `onnxruntime-node` or `onnxruntime-web`; by default the one that is found
 * @property {AbortSignal} [signal] ends the loading; `load` then rejects with the reason of the signal
 */

/**
 * Load a model from an archive of `heedful export MODEL --to js`.
 * @template {Model} [M=TranslationModel] by the model's task
 * @param {string | URL | ArrayBuffer | Uint8Array | Blob} source its address, or its bytes
 * @param {LoadOptions} [options]
 * @returns {Promise<M>}
 */
export async function load(source, options = {}) {
  const { ort, signal } = checkedOptions(options, 'load', ['ort', 'signal']);
  signal?.throwIfAborted();
  checkWebAssembly();
  const bytes = await bytesOf(source, signal);
  try {
    const files = await readArchive(bytes, signal), facts = factsOf(files.get('model.json'));
    for (const [name, parts] of Object.entries(facts.parts ?? {})) files.set(name, joined(files, parts));
    return /** @type {M} */ (refusingOthers(await TASKS[facts.task](facts, files, ort ?? await runtime(), signal), facts.task));
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw explained(error);
  }
}

/** @type {Record<string, (facts: any, files: Map<string, Uint8Array>, ort: Runtime, signal: AbortSignal | undefined) => Promise<Model>>} */
const TASKS = {
  translation: async (facts, files, ort, signal) => new TranslationModel(facts, await Engine.open(ort, files, signal), files),
  classification: async (facts, files, ort, signal) => new ClassificationModel(facts, await labelGraphs(files, ort, signal), files.get('ngrams.safetensors')),
  captioning: async (facts, files, ort, signal) => new CaptionModel(facts, await Engine.open(ort, files, signal)),
  answering: async (facts, files, ort, signal) => new AnswerModel(facts, await labelGraphs(files, ort, signal)),
};

const SEARCHES = ['translation', 'captioning'];
/** @type {Record<string, string[]>} methods of the models of each task */
const METHODS = { translation: ['translate', 'translateText'], classification: ['classify', 'encode'], captioning: ['caption'], answering: ['answer'] };

/**
 * The same model, whose methods of other tasks say what it is. They are made here, for types are to show none of them.
 * @param {Model} model @param {string} task
 */
function refusingOthers(model, task) {
  for (const name of Object.values(METHODS).flat().filter((each) => !METHODS[task].includes(each))) {
    const refuse = async () => { throw new ModelError('usage', `${name}: ${model.name} is a model for ${task}; call its ${METHODS[task].join(' or ')}`); };
    Object.defineProperty(model, name, { value: refuse });
  }
  return model;
}

/**
 * A file made of parts of files, because graphs store what they share once.
 * @param {Map<string, Uint8Array>} files @param {[string, number, number][]} parts
 */
function joined(files, parts) {
  const whole = new Uint8Array(parts.reduce((sum, [, , size]) => sum + size, 0));
  let place = 0;
  for (const [name, start, size] of parts) {
    const part = files.get(name)?.subarray(start, start + size);
    if (part?.length !== size) throw new ModelError('damaged', `not a model of heedful: it has no whole ${name}`);
    whole.set(part, place);
    place += size;
  }
  return whole;
}

async function labelGraphs(/** @type {Map<string, Uint8Array>} */ files, /** @type {Runtime} */ ort, /** @type {AbortSignal | undefined} */ signal) {
  const names = files.has('words.onnx') ? ['words.onnx', 'sentences.onnx'] : ['classify.onnx'];
  return new LabelGraphs(ort, await openGraphs(ort, files, names, signal));
}

/** Description of a model, checked. */
function factsOf(/** @type {Uint8Array | undefined} */ json) {
  if (!json) throw new ModelError('damaged', 'not a model of heedful: it has no model.json');
  let facts;
  try {
    facts = JSON.parse(new TextDecoder().decode(json));
  } catch (error) {
    throw new ModelError('damaged', 'not a model of heedful: its model.json is no JSON', error);
  }
  if (!(facts.format <= FORMAT)) throw new ModelError('newer', `made by a newer heedful (format ${facts.format}); update this package`);
  if (!Object.hasOwn(TASKS, facts.task)) throw new ModelError('kind', `a ${facts.task} model is not run by this package`);
  if (!Number.isFinite(facts.max_tokens)) throw new ModelError('damaged', 'not a model of heedful: its max_tokens is no number');
  const broken = SEARCHES.includes(facts.task) && brokenSetting(facts.search);
  if (broken) throw new ModelError('damaged', `not a model of heedful: a search cannot follow its ${broken}`);
  return facts;
}

async function bytesOf(/** @type {string | URL | ArrayBuffer | Uint8Array | Blob} */ source, /** @type {AbortSignal | undefined} */ signal) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (typeof source !== 'string' && !(source instanceof URL)) throw new ModelError('usage', 'load: expected the address of a model, or its bytes');
  try {
    const answer = await fetch(source, { signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const hint = isInNode() && !/^(https?|data|blob):/i.test(String(source)) ? '; Node fetches no files, so give the bytes of one: load(await readFile(path))' : '';
    throw new ModelError('unreachable', `${source}: not loaded: ${error instanceof Error ? error.message : error}${hint}`, error);
  }
}
