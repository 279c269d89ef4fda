// Every score and normalizer of heedful's tables, for a few small vectors; the same formulas as in heedful.attention.
const dot = (a, b) => a.reduce((sum, each, index) => sum + each * b[index], 0);
const norm = (a) => Math.sqrt(dot(a, a));
const apply = (map, vector) => map.map((row) => dot(row, vector));
const distance = (q, k, { bandwidth }) => norm(q.map((each, index) => each - k[index])) / bandwidth;
const additive = (q, k, { W, U, v }) => { const a = apply(W, q), b = apply(U, k); return v.reduce((sum, each, index) => sum + each * Math.tanh(a[index] + b[index]), 0); };

export const PARAMETERS = { W: [[1, 0.5], [-0.5, 1]], U: [[1, 0], [0, 1]], v: [1, -1], T: [[0.5, -0.5], [1, 0], [1, 2]], bandwidth: 1 };

// Each: (query, key, parameters, position of the key) -> score; -Infinity is never attended.
export const SCORES = {
  dot: (q, k) => dot(q, k),
  scaled_dot: (q, k) => dot(q, k) / Math.sqrt(q.length),
  general: (q, k, { W }) => dot(q, apply(W, k)),
  trilinear: (q, k, { T }) => dot(q, T[0]) + dot(k, T[1]) + q.reduce((sum, each, index) => sum + T[2][index] * each * k[index], 0),
  cosine: (q, k) => { const size = norm(q) * norm(k); return size ? dot(q, k) / size : 0; },
  additive,
  concat: additive,
  location: (q, k, _, position) => Math.cos(position) * q[0] + Math.sin(position) * q[1],
  uniform: () => 0,
  gaussian: (q, k, parameters) => -(distance(q, k, parameters) ** 2) / 2,
  laplacian: (q, k, parameters) => -distance(q, k, parameters),
  boxcar: (q, k, parameters) => (distance(q, k, parameters) < 1 ? 0 : -Infinity),
  triangular: (q, k, parameters) => Math.log(Math.max(0, 1 - distance(q, k, parameters))),
  epanechnikov: (q, k, parameters) => Math.log(Math.max(0, 1 - distance(q, k, parameters) ** 2)),
  constant: () => 0,
};

export const FORMULAS = {
  dot: 'q · k', scaled_dot: 'q · k / √d', general: 'qᵀ W k', trilinear: 'w · [q; k; q ∘ k]', cosine: 'q · k / (|q| |k|)', additive: 'v · tanh(W q + U k)', concat: 'v · tanh([W U] [q; k])', location: '(L q)ⱼ,  Lⱼ = [cos j, sin j]', uniform: '0',
  gaussian: '−|q − k|² / 2b²', laplacian: '−|q − k| / b', boxcar: '0,  |q − k| < b', triangular: 'log(1 − |q − k| / b)', epanechnikov: 'log(1 − |q − k|² / b²)', constant: '0',
  softmax: 'exp(s / T) / Σ exp(s / T)', sparsemax: 'argmin |w − s / T|², w ∈ Δ', entmax: '[s / 2T − τ]₊²,  α = 1.5', hard: 'argmax s', sampled: 'w ~ softmax(s / T)', straight_through: 'argmax s', gumbel_softmax: 'softmax((s + g) / T)',
  sigmoid: '1 / (1 + exp(−s))', linear_chain: 'p(zⱼ = 1)', normalized_linear_chain: 'p(zⱼ = 1) / Σ p(z = 1)', monotonic: 'p(j) Π (1 − p(k < j)),  p = 1 / (1 + exp(−s))', hard_monotonic: '1 at the first s > 0', projective_tree: 'p(j → i)',
};

const allowedOf = (scores, allowed) => scores.map((score, index) => allowed[index] && score > -Infinity);
const zero = (scores) => scores.map(() => 0);

function softmax(scores, allowed) {
  const is = allowedOf(scores, allowed);
  if (!is.some(Boolean)) return zero(scores);
  const most = Math.max(...scores.filter((_, index) => is[index]));
  const exponentials = scores.map((score, index) => (is[index] ? Math.exp(score - most) : 0));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  return exponentials.map((each) => each / sum);
}

// Weights [(alpha - 1) s - threshold]+ ^ (1 / (alpha - 1)) whose sum is 1; the threshold by bisection.
function entmax(scores, allowed, alpha) {
  const is = allowedOf(scores, allowed);
  if (!is.some(Boolean)) return zero(scores);
  const scaled = scores.map((score) => (alpha - 1) * score), power = 1 / (alpha - 1);
  let high = Math.max(...scaled.filter((_, index) => is[index])), low = high - 1;
  const weightsAt = (threshold) => scaled.map((score, index) => (is[index] ? Math.max(0, score - threshold) ** power : 0));
  for (let round = 0; round < 100; round++) {
    const middle = (low + high) / 2;
    if (weightsAt(middle).reduce((a, b) => a + b, 0) >= 1) low = middle; else high = middle;
  }
  const weights = weightsAt(low), sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((each) => each / sum);
}

function hard(scores, allowed) {
  const is = allowedOf(scores, allowed);
  let best = -1;
  scores.forEach((score, index) => { if (is[index] && (best < 0 || score > scores[best])) best = index; });
  return scores.map((_, index) => (index === best ? 1 : 0));
}

function sigmoids(scores, allowed) {
  const is = allowedOf(scores, allowed);
  return scores.map((score, index) => (is[index] ? 1 / (1 + Math.exp(-score)) : 0));
}

// The first query of monotonic attention: it stops at a key, or passes on to the next.
function stops(probabilities) {
  let reaches = 1;
  return probabilities.map((each) => { const weight = reaches * each; reaches *= 1 - each; return weight; });
}

function shared(weights) {
  const sum = weights.reduce((a, b) => a + b, 0);
  return sum > 0 ? weights.map((each) => each / sum) : weights;
}

// scores -> weights; options: temperature, and noise, one Gumbel number for each key.
export const NORMALIZERS = {
  softmax: (scores, allowed, { temperature }) => softmax(scores.map((score) => score / temperature), allowed),
  sparsemax: (scores, allowed, { temperature }) => entmax(scores.map((score) => score / temperature), allowed, 2),
  entmax: (scores, allowed, { temperature }) => entmax(scores.map((score) => score / temperature), allowed, 1.5),
  hard: (scores, allowed) => hard(scores, allowed),
  sampled: (scores, allowed, { temperature, noise }) => hard(scores.map((score, index) => score / temperature + noise[index]), allowed),
  straight_through: (scores, allowed) => hard(scores, allowed),
  gumbel_softmax: (scores, allowed, { temperature, noise }) => softmax(scores.map((score, index) => (score + noise[index]) / temperature), allowed),
  sigmoid: (scores, allowed) => sigmoids(scores, allowed),
  linear_chain: (scores, allowed) => sigmoids(scores, allowed), // a chain without transitions
  normalized_linear_chain: (scores, allowed) => shared(sigmoids(scores, allowed)),
  monotonic: (scores, allowed) => stops(sigmoids(scores, allowed)), // without noise
  hard_monotonic: (scores, allowed) => stops(sigmoids(scores, allowed).map((each) => (each > 0.5 ? 1 : 0))),
};

// Probability that key j is the head of query i, over projective trees with node 0 as root; by listing every tree.
export function projectiveTree(matrix) {
  const size = matrix.length;
  const weights = matrix.map((row) => row.map(() => 0));
  let total = 0;
  const heads = Array(size).fill(-1);
  function visit(node, score) {
    if (node === size) {
      if (!isTree(heads)) return;
      const mass = Math.exp(score);
      total += mass;
      for (let each = 1; each < size; each++) weights[each][heads[each]] += mass;
      return;
    }
    for (let head = 0; head < size; head++) {
      if (head === node || matrix[node][head] === -Infinity) continue;
      heads[node] = head;
      visit(node + 1, score + matrix[node][head]);
    }
  }
  visit(1, 0);
  return total > 0 ? weights.map((row) => row.map((each) => each / total)) : weights;
}

function isTree(heads) {
  const size = heads.length;
  for (let node = 1; node < size; node++) {
    let steps = 0;
    for (let each = node; each > 0; each = heads[each]) if (++steps > size) return false;
    const low = Math.min(node, heads[node]), high = Math.max(node, heads[node]);
    for (let inner = low + 1; inner < high; inner++) if (heads[inner] < low || heads[inner] > high) return false;
    for (let outer = 1; outer < size; outer++) {
      if ((outer < low || outer > high) && heads[outer] > low && heads[outer] < high) return false;
    }
  }
  return true;
}

export function gaussianWindow(weights, centre, halfWidth) {
  // Luong et al. 2015, eq. 10: a Gaussian with sigma = D / 2 multiplies the weights after normalising.
  const sigma = halfWidth / 2;
  return weights.map((weight, index) => (sigma > 0 ? weight * Math.exp(-((index - centre) ** 2) / (2 * sigma * sigma)) : weight));
}

// Nadaraya-Watson: attention of x over the points' positions with a Gaussian score.
export function regression(points, x, bandwidth) {
  const weights = softmax(points.map(([position]) => -((x - position) ** 2) / (2 * bandwidth * bandwidth)), points.map(() => true));
  return weights.reduce((sum, weight, index) => sum + weight * points[index][1], 0);
}
