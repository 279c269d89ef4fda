// The npm package `heedful`: models trained with heedful, in browsers and in Node, by ONNX Runtime.
export { ModelError } from './errors.js';
export { load } from './load.js';
