// Pictures as a model reads them: scaled to fit and centred, by the same integers as Pillow; the twin of heedful.data.images.
import { ModelError } from './errors.js';
import { shown } from './options.js';

/**
 * @typedef {{ data: Uint8ClampedArray | Uint8Array, width: number, height: number }} Pixels Red, green, blue and alpha of each
 *   pixel, row by row, such as an ImageData.
 * @typedef {{ height: number, width: number, channels: number, region_size: number, region_height?: number }} PictureFacts
 */

/** Largest number of pixels that are decoded, as in Python. */
const MOST_PIXELS = 50_000_000;
const BITS = 22;

/** What is wrong with a picture as it is given; empty = nothing. @param {any} picture */
export function faultOfPicture(picture) {
  if (picture instanceof Blob) return '';
  if (picture === null || typeof picture !== 'object' || Array.isArray(picture)) return `is ${shown(picture)}; expected a file (a Blob), or { data, width, height }`;
  const { data, width, height } = picture;
  // By its name, for pixels from another window or context are of another class.
  if (!ArrayBuffer.isView(data) || !['Uint8Array', 'Uint8ClampedArray'].includes(Object.prototype.toString.call(data).slice(8, -1))) return 'has no data; expected a file (a Blob), or { data, width, height } with the bytes of its pixels in a Uint8Array or Uint8ClampedArray';
  if (![width, height].every((side) => Number.isInteger(side) && side > 0)) return `has the width ${shown(width)} and the height ${shown(height)}; expected whole numbers from 1`;
  return data.byteLength === 4 * width * height ? '' : `has ${data.byteLength} bytes of data; ${width} x ${height} pixels of red, green, blue and alpha have ${4 * width * height}`;
}

/**
 * Decode a picture, in a browser or a worker.
 * @param {Blob} blob
 * @returns {Promise<Pixels>}
 */
export async function decode(blob) {
  const [width, height] = sizeOf(new Uint8Array(await blob.arrayBuffer()));
  if (width * height > MOST_PIXELS) throw new ModelError('picture', `${width} x ${height} pixels are too many; scale it down to at most ${MOST_PIXELS}`);
  if (typeof createImageBitmap === 'undefined') throw new ModelError('usage', 'caption: this program cannot decode pictures; give { data, width, height }');
  try {
    const bitmap = await createImageBitmap(blob, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' });
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d'));
    context.drawImage(bitmap, 0, 0);
    const pixels = context.getImageData(0, 0, bitmap.width, bitmap.height);
    bitmap.close();
    return pixels;
  } catch (error) {
    throw new ModelError('picture', 'no picture that this program reads', error);
  }
}

/** Width and height by the head of a file; nothing is decoded. @param {Uint8Array} bytes @returns {[number, number]} */
export function sizeOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), text = (/** @type {number} */ start, /** @type {number} */ size) => String.fromCharCode(...bytes.subarray(start, start + size));
  try {
    if (text(1, 3) === 'PNG') return [view.getUint32(16), view.getUint32(20)];
    if (text(0, 3) === 'GIF') return [view.getUint16(6, true), view.getUint16(8, true)];
    if (text(0, 2) === 'BM') return [view.getInt32(18, true), Math.abs(view.getInt32(22, true))];
    if (text(0, 4) === 'RIFF' && text(8, 4) === 'WEBP') {
      if (text(12, 4) === 'VP8X') return [1 + (view.getUint32(24, true) & 0xffffff), 1 + (view.getUint32(27, true) & 0xffffff)];
      if (text(12, 4) === 'VP8L') return [1 + (view.getUint32(21, true) & 0x3fff), 1 + ((view.getUint32(21, true) >> 14) & 0x3fff)];
      return [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff];
    }
    for (let start = view.getUint16(0) === 0xffd8 ? 2 : Infinity; start < bytes.length;) { // segments of JPEG
      const marker = view.getUint8(start + 1), isSize = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
      if (isSize) return [view.getUint16(start + 7), view.getUint16(start + 5)];
      start += marker === 0xff ? 1 : 2 + view.getUint16(start + 2);
    }
  } catch { /* the file ends within its head */ }
  throw new ModelError('picture', 'no picture; give PNG, JPEG, GIF, WEBP or BMP');
}

/**
 * Pixels of a picture for a model.
 * @param {Pixels} picture @param {PictureFacts} facts
 * @returns {Uint8Array} [channel, row, column]
 */
export function fitted({ data, width, height }, facts) {
  const channels = opaque(data, width * height, facts.channels);
  const planes = width === facts.width && height === facts.height ? channels : channels.map((plane) => centred(plane, width, height, facts));
  const size = facts.width * facts.height, values = new Uint8Array(size * planes.length);
  planes.forEach((plane, index) => values.set(plane, index * size));
  return values;
}

/** Planes of colours over white. @param {Uint8ClampedArray | Uint8Array} data @param {number} size @param {number} number */
function opaque(data, size, number) {
  const planes = [0, 1, 2].map((channel) => Uint8Array.from({ length: size }, (_, index) => {
    const alpha = data[4 * index + 3], value = data[4 * index + channel];
    if (alpha === 255) return value;
    const mixed = (value * alpha + 255 * (255 - alpha) + 128) * 128;
    return (((mixed >> 8) + mixed) >> 8) >> 7;
  }));
  const [red, green, blue] = planes;
  return number === 3 ? planes : [red.map((_, index) => (red[index] * 19595 + green[index] * 38470 + blue[index] * 7471 + 0x8000) >> 16)];
}

/** A plane scaled to fit and centred on the median of its border. @param {Uint8Array} plane @param {number} width @param {number} height @param {PictureFacts} facts */
function centred(plane, width, height, facts) {
  const scale = Math.min(facts.width / width, facts.height / height), [columns, rows] = [width, height].map((side) => Math.max(1, rounded(side * scale)));
  const filter = facts.width < width || facts.height < height ? BOX : BILINEAR;
  const across = (/** @type {Uint8Array} */ lines, /** @type {number} */ number) => (columns === width ? lines : scaled(lines, width, number, columns, filter, 1, width, columns));
  const down = (/** @type {Uint8Array} */ lines, /** @type {number} */ size) => (rows === height ? lines : scaled(lines, height, size, rows, filter, size, 1, 1));
  const small = down(across(plane, height), columns); // in this order always, for it changes a rounding
  const canvas = new Uint8Array(facts.width * facts.height).fill(rounded(median(border(plane, width, height))));
  const left = Math.floor((facts.width - columns) / 2), top = Math.floor((facts.height - rows) / 2);
  for (let row = 0; row < rows; row++) canvas.set(small.subarray(row * columns, (row + 1) * columns), (top + row) * facts.width + left);
  return canvas;
}

/** @typedef {{ support: number, weight: (x: number) => number }} Filter */
/** @type {Filter} */
const BOX = { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) };
/** @type {Filter} */
const BILINEAR = { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) };

/**
 * Lines of a plane, scaled along one axis.
 * @param {Uint8Array} plane @param {number} size along the axis @param {number} lines @param {number} wanted @param {Filter} filter
 * @param {number} step between neighbours on a line @param {number} line between lines, before @param {number} after between lines, afterwards
 */
function scaled(plane, size, lines, wanted, filter, step, line, after) {
  const scale = size / wanted, stretch = Math.max(1, scale), support = filter.support * stretch, values = new Uint8Array(lines * wanted);
  for (let place = 0; place < wanted; place++) {
    const centre = (place + 0.5) * scale, first = Math.max(0, Math.trunc(centre - support + 0.5)), last = Math.min(size, Math.trunc(centre + support + 0.5));
    const weights = Array.from({ length: last - first }, (_, index) => filter.weight((index + first - centre + 0.5) * (1 / stretch))), total = weights.reduce((sum, weight) => sum + weight, 0);
    const whole = weights.map((weight) => Math.trunc(0.5 + (weight / total) * 2 ** BITS));
    for (let each = 0; each < lines; each++) {
      let sum = 2 ** (BITS - 1);
      for (let index = 0; index < whole.length; index++) sum += plane[each * line + (first + index) * step] * whole[index];
      values[each * after + place * (step === 1 ? 1 : step)] = Math.min(255, Math.floor(sum / 2 ** BITS));
    }
  }
  return values;
}

/** @param {Uint8Array} plane @param {number} width @param {number} height */
function border(plane, width, height) {
  const rows = [plane.subarray(0, width), plane.subarray((height - 1) * width, height * width)];
  const columns = [0, width - 1].map((column) => Array.from({ length: height }, (_, row) => plane[row * width + column]));
  return [...rows, ...columns].flatMap((line) => Array.from(line));
}

function median(/** @type {number[]} */ values) {
  const sorted = values.sort((one, other) => one - other), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// The nearest whole number; of two, the even one, as Python rounds.
function rounded(/** @type {number} */ value) {
  const low = Math.floor(value);
  return value - low === 0.5 ? low + (low % 2) : Math.round(value);
}
