// Archives of a model: a tar file compressed by gzip, as `heedful export MODEL --to js` writes it.
import { explained, ModelError } from './errors.js';

const BLOCK = 512;
const text = new TextDecoder();

/**
 * Decompress gzip, whose checksum finds every damage.
 * @param {Uint8Array} bytes
 * @param {AbortSignal} [signal]
 * @returns {Promise<Uint8Array>}
 */
export async function gunzip(bytes, signal) {
  if (typeof DecompressionStream === 'undefined') throw new ModelError('runtime', 'this program is too old: it has no DecompressionStream');
  try {
    // Not of a Blob, whose bytes browsers send to another process and back.
    const { body } = new Response(/** @type {BodyInit} */ (bytes)), stream = /** @type {ReadableStream} */ (body).pipeThrough(new DecompressionStream('gzip'), { signal });
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (explained(error) !== error) throw explained(error);
    throw new ModelError('damaged', 'the file is cut or changed; copy it again', error);
  }
}

/**
 * Bytes of a text in base64.
 * @param {string} base64
 */
export function bytesOf(base64) {
  try {
    const { fromBase64 } = /** @type {any} */ (Uint8Array); // newer than some browsers that run the rest
    if (fromBase64) return fromBase64.call(Uint8Array, base64);
    const characters = atob(base64), bytes = new Uint8Array(characters.length);
    for (let index = 0; index < bytes.length; index++) bytes[index] = characters.charCodeAt(index);
    return bytes;
  } catch (error) {
    throw new ModelError('damaged', 'the file is cut or changed; copy it again', error);
  }
}

/**
 * Read the files of an archive.
 * @param {Uint8Array} bytes
 * @param {AbortSignal} [signal]
 * @returns {Promise<Map<string, Uint8Array>>} content by name
 */
export async function readArchive(bytes, signal) {
  const tar = await gunzip(bytes, signal);
  /** @type {Map<string, Uint8Array>} */
  const files = new Map();
  const field = (/** @type {number} */ start, /** @type {number} */ size) => text.decode(tar.subarray(start, start + size)).split('\0')[0];
  for (let start = 0; start + BLOCK <= tar.length && tar[start];) {
    const size = parseInt(field(start + 124, 12), 8);
    if (!(size >= 0) || start + BLOCK + size > tar.length) throw new ModelError('damaged', 'not a model of heedful: its archive has no readable files');
    files.set(field(start, 100), tar.subarray(start + BLOCK, start + BLOCK + size));
    start += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}
