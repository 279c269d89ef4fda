// Tensors of a file in the format of safetensors.

/**
 * @param {Uint8Array} file
 * @returns {Record<string, any>} arrays by name; those of 16 bits as numbers of 32
 */
export function readTensors(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength), size = Number(view.getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + size)));
  delete head.__metadata__;
  return Object.fromEntries(Object.entries(head).map(([name, { dtype, data_offsets: [start, end] }]) => {
    const bytes = file.slice(8 + size + start, 8 + size + end); // a copy, because an array begins at a multiple of its width
    if (dtype === 'F32') return [name, new Float32Array(bytes.buffer)];
    if (dtype === 'F16') return [name, Float32Array.from(new Uint16Array(bytes.buffer), half)];
    return [name, new BigInt64Array(bytes.buffer)];
  }));
}

/** Value of a number in 16 bits. @param {number} bits */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
