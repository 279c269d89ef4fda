// Errors of the package: each has a code, by which a page finds words in the reader's language.

/** @typedef {'damaged' | 'newer' | 'kind' | 'unreachable' | 'runtime' | 'usage' | 'nonfinite' | 'picture'} Code */

export class ModelError extends Error {
  /**
   * @param {Code} code `damaged`: not a model, or cut or changed; `newer`: made by a newer heedful; `kind`: of a kind that
   *   this package does not run; `unreachable`: its address gave no file; `runtime`: WebAssembly or ONNX Runtime refused
   *   it; `usage`: wrong arguments; `nonfinite`: a log probability is NaN; `picture`: not one that can be read.
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = 'ModelError';
    this.code = code;
  }
}
