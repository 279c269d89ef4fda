// Weights: unpacking, merging of pieces into words, entropy, and numbers as text.
// Id of the token that ends a text, as in heedful.text.vocabulary.
export const EOS = 3;

const unpacked = new WeakMap();

// Weights from a server are text; those of a model inside the file are numbers already.
export function unpack(packed) {
  if (packed.values) return packed;
  if (!unpacked.has(packed)) {
    const text = atob(packed.data), bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
    unpacked.set(packed, { shape: packed.shape, values: new Float32Array(bytes.buffer) });
  }
  return unpacked.get(packed);
}

export function matrix(packed, head) {
  const { shape, values } = unpack(packed);
  const [heads, rows, columns] = shape;
  const size = rows * columns;
  const out = new Float64Array(size);
  const chosen = head === 'mean' ? [...Array(heads).keys()] : [Number(head)];
  for (const one of chosen) for (let i = 0; i < size; i++) out[i] += values[one * size + i] / chosen.length;
  return { rows, columns, values: out };
}

// Summed over the pieces of an attended word, averaged over the pieces of an attending word: rows keep their sums.
export function merge(weights, rowWords, columnWords) {
  const rows = Math.max(...rowWords.slice(0, weights.rows)) + 1;
  const columns = Math.max(...columnWords.slice(0, weights.columns)) + 1;
  const counts = new Float64Array(rows);
  const values = new Float64Array(rows * columns);
  for (let row = 0; row < weights.rows; row++) {
    counts[rowWords[row]] += 1;
    for (let column = 0; column < weights.columns; column++) {
      values[rowWords[row] * columns + columnWords[column]] += weights.values[row * weights.columns + column];
    }
  }
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) values[row * columns + column] /= counts[row];
  return { rows, columns, values };
}

export function entropy(weights, row) {
  let sum = 0;
  for (let column = 0; column < weights.columns; column++) {
    const weight = weights.values[row * weights.columns + column];
    if (weight > 0) sum -= weight * Math.log(weight);
  }
  return sum;
}

export function rowSum(weights, row) {
  let sum = 0;
  for (let column = 0; column < weights.columns; column++) sum += weights.values[row * weights.columns + column];
  return sum;
}

export function wordProbabilities(output) {
  const sums = output.words.map(() => 0);
  output.wordOf.forEach((word, piece) => { sums[word] += output.tokenLogProbs[piece] ?? 0; });
  return sums.map(Math.exp);
}

export function percent(value) {
  return value >= 0.0995 ? `${Math.round(value * 100)} %` : `${(value * 100).toFixed(1)} %`;
}

export function digits(value, places = 2) {
  return value === null || value === undefined ? '–' : (Object.is(Number(value.toFixed(places)), -0) ? 0 : value).toFixed(places).replace('-', '−');
}

// Round values that enclose a range, ascending: multiples of 1, 2, 2.5 or 5 times a power of ten, as in heedful.pages.chart.
export function ticks(low, high, wanted = 4) {
  if (high <= low) {
    const margin = Math.abs(low) / 10 || 1;
    [low, high] = [low - margin, high + margin];
  }
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const width = [1, 2, 2.5, 5, 10].map((factor) => power * factor).find((each) => each >= raw * 0.999);
  const first = Math.floor(low / width + 1e-9), last = Math.ceil(high / width - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * width).toPrecision(12)));
}
