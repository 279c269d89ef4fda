// Loading of a model from its archive.
import { readArchive } from './archive.js';
import { Engine } from './engine.js';
import { ModelError } from './errors.js';
import { TranslationModel } from './model.js';

/** Version of the archives that this package reads. */
const FORMAT = 1;

/**
 * Load a model from an archive of `heedful export MODEL --to js`.
 * @param {string | URL | ArrayBuffer | Uint8Array | Blob} source its address, or its bytes
 * @param {{ ort?: import('./engine.js').Runtime, signal?: AbortSignal }} [options] `ort`: ONNX Runtime, the module
 *   `onnxruntime-node` or, by default, `onnxruntime-web`
 * @returns {Promise<TranslationModel>}
 */
export async function load(source, { ort, signal } = {}) {
  const files = await readArchive(await bytesOf(source, signal));
  const facts = factsOf(files.get('model.json'));
  return new TranslationModel(facts, await Engine.open(ort ?? await runtime(), files));
}

/** Description of a model, checked. */
function factsOf(/** @type {Uint8Array | undefined} */ json) {
  if (!json) throw new ModelError('damaged', 'not a model of heedful: it has no model.json');
  const facts = JSON.parse(new TextDecoder().decode(json));
  if (!(facts.format <= FORMAT)) throw new ModelError('newer', `made by a newer heedful (format ${facts.format}); update this package`);
  if (facts.task !== 'translation') throw new ModelError('kind', `a ${facts.task} model is not run by this package`);
  return /** @type {import('./model.js').ModelFacts} */ (facts);
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
    throw new ModelError('runtime', 'ONNX Runtime is not installed; install it with: npm install onnxruntime-web', error);
  }
}
