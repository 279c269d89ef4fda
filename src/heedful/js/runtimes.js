// ONNX Runtime: the one that is installed, and whether it can run here.
import { ModelError } from './errors.js';

/** @typedef {import('./engine.js').Runtime} Runtime */

export const isInNode = () => Boolean(/** @type {any} */ (globalThis).process?.versions?.node);

/** The smallest module of WebAssembly: its magic number and its version. */
const SMALLEST = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);

/** Refuse to go on where WebAssembly may not run: ONNX Runtime, and in Node `Response`, would fail where nobody can catch it. */
export function checkWebAssembly() {
  try {
    new WebAssembly.Module(SMALLEST);
  } catch (error) {
    throw new ModelError('runtime', "WebAssembly is switched off here, or the policy of the page forbids it: 'wasm-unsafe-eval' in its script-src allows it", error);
  }
}

/** ONNX Runtime, as it is installed: in Node that for Node, if it is there. @returns {Promise<Runtime>} */
export async function runtime() {
  let fault = '';
  if (isInNode()) {
    // No literal, and marked for bundlers, which would look for it, and cannot put the machine code of its files into a script.
    const name = 'onnxruntime-node';
    try {
      const module = await import(/* webpackIgnore: true */ /* @vite-ignore */ name);
      return module.InferenceSession ? module : module.default;
    } catch (error) {
      const { code, message } = /** @type {any} */ (error ?? {});
      if (code !== 'ERR_MODULE_NOT_FOUND' || !String(message).includes(`'${name}'`)) fault = `; ${name} is there, but does not start: ${message ?? error}`;
    }
  }
  try {
    return /** @type {any} */ (await import('onnxruntime-web'));
  } catch (error) {
    throw new ModelError('runtime', `ONNX Runtime is not found beside this package; npm install onnxruntime-web (in Node, onnxruntime-node is used too), or give its module: load(source, { ort })${fault}`, error);
  }
}
