// Errors of the package: each has a code, by which a page finds words in the reader's language.

/** @typedef {'damaged' | 'newer' | 'kind' | 'unreachable' | 'runtime' | 'usage' | 'nonfinite' | 'picture' | 'memory'} Code */

export class ModelError extends Error {
  /**
   * @param {Code} code `damaged`: not a model, or cut or changed; `newer`: made by a newer heedful; `kind`: of a kind that
   *   this package does not run; `unreachable`: its address gave no file; `runtime`: WebAssembly or ONNX Runtime refused
   *   it; `usage`: wrong arguments; `nonfinite`: a log probability is NaN; `picture`: not one that can be read;
   *   `memory`: there is too little for the model or the text.
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = 'ModelError';
    this.code = code;
  }
}

/** Words of a failed allocation: in JavaScript, in WebAssembly, and in ONNX Runtime for Node. */
const NO_MEMORY = /bad_alloc|out of memory|OOM|allocation failed|(could not|failed to) allocate/i;

/**
 * The same error, with a code where memory was short.
 * @param {unknown} error
 */
export function explained(error) {
  const isKnown = error instanceof ModelError || !(error instanceof Error) || !NO_MEMORY.test(error.message);
  return isKnown ? error : new ModelError('memory', 'there is too little memory: close other programs or pages, or take a smaller model or a shorter text', error);
}
