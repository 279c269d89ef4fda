// Loading of a model from its archive.
import { AnswerModel } from './answers.js';
import { readArchive } from './archive.js';
import { CaptionModel } from './captions.js';
import { Engine, openGraph } from './engine.js';
import { explained, ModelError } from './errors.js';
import { ClassificationModel, LabelGraphs } from './labels.js';
import { TranslationModel } from './model.js';

/** Version of the archives that this package reads. */
const FORMAT = 3;

/**
 * Load a model from an archive of `heedful export MODEL --to js`.
 * @param {string | URL | ArrayBuffer | Uint8Array | Blob} source its address, or its bytes
 * @param {{ ort?: import('./engine.js').Runtime, signal?: AbortSignal }} [options] `ort`: ONNX Runtime, the module
 *   `onnxruntime-node` or, by default, `onnxruntime-web`
 * @returns {Promise<any>} `TranslationModel`, `ClassificationModel`, `AnswerModel` or `CaptionModel`, by the model's task
 */
export async function load(source, { ort, signal } = {}) {
  const bytes = await bytesOf(source, signal);
  try {
    const files = await readArchive(bytes), facts = factsOf(files.get('model.json'));
    for (const [name, parts] of Object.entries(facts.parts ?? {})) files.set(name, joined(files, parts));
    return await TASKS[facts.task](facts, files, ort ?? await runtime());
  } catch (error) {
    throw explained(error);
  }
}

/** @type {Record<string, (facts: any, files: Map<string, Uint8Array>, ort: import('./engine.js').Runtime) => Promise<any>>} */
const TASKS = {
  translation: async (facts, files, ort) => new TranslationModel(facts, await Engine.open(ort, files), files),
  classification: async (facts, files, ort) => new ClassificationModel(facts, await labelGraphs(files, ort), files.get('ngrams.safetensors')),
  captioning: async (facts, files, ort) => new CaptionModel(facts, await Engine.open(ort, files)),
  answering: async (facts, files, ort) => new AnswerModel(facts, await labelGraphs(files, ort)),
};

const SEARCHES = ['translation', 'captioning'];
/** Settings of a search that are numbers, without which it might not end. */
const NUMBERS = ['beam', 'nbest', 'alpha', 'length_reward', 'beta', 'repetition_penalty', 'no_repeat_ngram_size', 'max_length_ratio', 'max_length_offset', 'min_length'];

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

async function labelGraphs(/** @type {Map<string, Uint8Array>} */ files, /** @type {import('./engine.js').Runtime} */ ort) {
  const names = files.has('words.onnx') ? ['words.onnx', 'sentences.onnx'] : ['classify.onnx'];
  return new LabelGraphs(ort, await Promise.all(names.map((name) => openGraph(ort, files, name))));
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
  const numbers = { max_tokens: facts.max_tokens, ...(SEARCHES.includes(facts.task) ? Object.fromEntries(NUMBERS.map((name) => [name, facts.search?.[name]])) : {}) };
  for (const [name, value] of Object.entries(numbers)) if (!Number.isFinite(value)) throw new ModelError('damaged', `not a model of heedful: its ${name} is no number`);
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
    throw new ModelError('unreachable', `${source}: not loaded: ${error instanceof Error ? error.message : error}`, error);
  }
}

/** ONNX Runtime, as it is installed. */
async function runtime() {
  try {
    return await import('onnxruntime-web');
  } catch (error) {
    throw new ModelError('runtime', 'ONNX Runtime is not found beside this package; npm install onnxruntime-web, or give its module: load(source, { ort })', error);
  }
}
