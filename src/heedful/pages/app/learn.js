// View "Learn": attention in three steps with the reader's own numbers, and attention as regression.
import { g, h, slider } from './dom.js';
import { FORMULAS, gaussianWindow, NORMALIZERS, PARAMETERS, projectiveTree, regression, SCORES } from './mechanisms.js';
import { digits } from './numbers.js';
import { t } from './text.js';

const lesson = {
  query: [1, 0.5], keys: [[1, 0], [0.5, 1], [-1, 0.5], [0, -1], [1.5, 1]], values: [[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1]],
  score: 'dot', normalizer: 'softmax', temperature: 1, hasWindow: false, centre: 2, halfWidth: 1, isGaussian: false, noise: gumbel(5), bandwidth: 0.5,
  points: Array.from({ length: 24 }, (_, index) => { const x = (index + 0.5) / 4; return [x, Math.sin(x * 1.6) + 0.35 * x + 0.55 * Math.sin(index * 12.9898) * Math.cos(index * 4.1)]; }),
};

// A link may choose the mechanism: #view=learn&score=additive&normalizer=sparsemax&window=gaussian.
const asked = new URLSearchParams(globalThis.location?.hash.slice(1));
if (Object.hasOwn(SCORES, asked.get('score') ?? '')) lesson.score = asked.get('score');
if ([...Object.keys(NORMALIZERS), 'projective_tree'].includes(asked.get('normalizer'))) lesson.normalizer = asked.get('normalizer');
if (['plain', 'gaussian'].includes(asked.get('window'))) Object.assign(lesson, { hasWindow: true, isGaussian: asked.get('window') === 'gaussian' });

function gumbel(count) {
  return Array.from({ length: count }, () => -Math.log(-Math.log(1 - Math.random())));
}

export function compute(one) {
  const scores = one.keys.map((key, index) => SCORES[one.score](one.query, key, PARAMETERS, index));
  const allowed = one.keys.map((_, index) => !one.hasWindow || Math.abs(index - one.centre) <= one.halfWidth);
  let weights;
  if (one.normalizer === 'projective_tree') {
    // The keys are the words of a sentence, the first its root; the query stands for the last word.
    const last = one.keys.length - 1;
    const matrix = one.keys.map((word, row) => one.keys.map((key, index) => (allowed[index] ? SCORES[one.score](row === last ? one.query : word, key, PARAMETERS, index) : -Infinity)));
    weights = projectiveTree(matrix)[last];
  } else weights = NORMALIZERS[one.normalizer](scores, allowed, one);
  if (one.hasWindow && one.isGaussian) weights = gaussianWindow(weights, one.centre, one.halfWidth);
  const context = one.values[0].map((_, part) => weights.reduce((sum, weight, index) => sum + weight * one.values[index][part], 0));
  return { scores, allowed, weights, context };
}

export function learnView() {
  // The parts with controls are made once, so that a slider stays under the pointer; drawings are replaced.
  const slots = Object.fromEntries(['scoreFormula', 'scores', 'weightFormula', 'weights', 'redraw', 'context', 'plane', 'strip', 'curve'].map((name) => [name, h('div', {})]));
  const centre = slider(t('centre'), { id: 'centre', min: 1, max: lesson.keys.length, step: 1, value: lesson.centre + 1 }, String, (value) => change({ centre: value - 1, hasWindow: true }));
  const all = h('input', { type: 'checkbox', id: 'global', onchange: () => change({ hasWindow: !all.checked }) });
  const gaussian = h('input', { type: 'checkbox', id: 'gaussian', onchange: () => change({ isGaussian: gaussian.checked, hasWindow: true }) });

  function change(patch) { Object.assign(lesson, patch); draw(); }
  function number(vector, part, label) {
    return h('input', { type: 'number', step: 0.1, value: vector[part], 'aria-label': t('component', label, part + 1), oninput: (event) => { const value = event.target.valueAsNumber; if (Number.isFinite(value)) { vector[part] = Math.max(-99, Math.min(99, value)); draw(); } } });
  }
  function choice(id, label, names, key) {
    return h('label', { class: 'small faint' }, label, ' ', h('select', { id, onchange: (event) => change({ [key]: event.target.value, noise: gumbel(lesson.keys.length) }) }, names.map((name) => h('option', { value: name, selected: name === lesson[key] }, name))));
  }
  function draw() {
    const { scores, allowed, weights, context } = compute(lesson);
    slots.scoreFormula.textContent = `s = ${FORMULAS[lesson.score]}`;
    slots.scores.replaceChildren(bars(scores, allowed, t('scores'), 'scores'));
    slots.weightFormula.textContent = `w = ${FORMULAS[lesson.normalizer]}`;
    slots.weights.replaceChildren(bars(weights, allowed, t('weights'), 'weights', true));
    slots.redraw.replaceChildren(...(['sampled', 'gumbel_softmax'].includes(lesson.normalizer) ? [h('button', { type: 'button', class: 'plain', onclick: () => change({ noise: gumbel(lesson.keys.length) }) }, t('redraw'))] : []));
    slots.context.textContent = `c = Σ w v = [${context.map((each) => digits(each, 3)).join(', ')}]`;
    slots.plane.replaceChildren(plane(weights, context));
    slots.curve.replaceChildren(curve());
    all.checked = !lesson.hasWindow;
    gaussian.checked = lesson.isGaussian;
    centre.querySelector('input').value = lesson.centre + 1;
    centre.querySelector('output').textContent = String(lesson.centre + 1);
    drawStrip(slots.strip, allowed);
  }
  slots.strip.addEventListener('pointerdown', (start) => {
    function move(event) {
      const box = slots.strip.getBoundingClientRect(), wide = Math.min(300, box.width);
      const place = ((event.clientX - box.left - (box.width - wide) / 2) / wide) * lesson.keys.length;
      const at = Math.max(0, Math.min(lesson.keys.length - 1, Math.floor(place)));
      if (at !== lesson.centre || !lesson.hasWindow) change({ centre: at, hasWindow: true });
    }
    function stop() { removeEventListener('pointermove', move); removeEventListener('pointerup', stop); }
    addEventListener('pointermove', move);
    addEventListener('pointerup', stop);
    move(start);
  });
  Object.entries({ scoreFormula: 'formula', weightFormula: 'formula', context: 'formula', strip: 'strip' }).forEach(([name, kind]) => slots[name].setAttribute('class', kind));
  slots.context.id = 'context';
  slots.strip.id = 'strip';
  const section = (title, ...children) => h('section', { class: 'card', 'aria-label': title }, children);
  const head = (title, ...children) => h('div', { class: 'head' }, h('h2', {}, title), children);
  const table = h('table', { class: 'vectors' },
    h('thead', {}, h('tr', {}, h('td', {}), h('th', { scope: 'col' }, t('query')), lesson.keys.map((_, index) => h('th', { scope: 'col' }, t('key', index + 1))))),
    h('tbody', {},
      h('tr', {}, h('th', { scope: 'row' }, 'q, k'), h('td', {}, [0, 1].map((part) => number(lesson.query, part, t('query')))), lesson.keys.map((key, index) => h('td', {}, [0, 1].map((part) => number(key, part, t('key', index + 1)))))),
      h('tr', {}, h('th', { scope: 'row' }, t('value')), h('td', {}), lesson.values.map((value, index) => h('td', {}, [0, 1].map((part) => number(value, part, `${t('value')} ${index + 1}`)))))));
  draw();
  return h('div', { class: 'stack' },
    section(t('learnIntro'), head(t('learnIntro')), h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('keys') }, table)),
    h('div', { class: 'even' },
      section(t('stepScore'), head(t('stepScore'), choice('score', t('scoreFunction'), Object.keys(SCORES), 'score')), slots.scoreFormula, slots.scores, h('p', { class: 'small faint' }, t('parameters'))),
      section(t('stepNormalize'), head(t('stepNormalize'), slots.redraw, choice('normalizer', t('normalizer'), [...Object.keys(NORMALIZERS), 'projective_tree'], 'normalizer')), slots.weightFormula, slots.weights,
        h('div', { class: 'sliders' }, slider(t('temperature'), { id: 'temperature', min: 0.1, max: 5, step: 0.1, value: lesson.temperature }, (value) => digits(value, 1), (temperature) => change({ temperature }))))),
    h('div', { class: 'even' },
      section(t('stepContext'), head(t('stepContext')), slots.context, slots.plane, h('p', { class: 'small faint' }, t('contextNote'))),
      section(t('window'), head(t('window'), h('label', { class: 'small' }, all, ' ', t('all'))), slots.strip,
        h('div', { class: 'sliders' }, centre, slider(t('halfWidth'), { id: 'half', min: 0, max: lesson.keys.length - 1, step: 1, value: lesson.halfWidth }, String, (halfWidth) => change({ halfWidth, hasWindow: true }))),
        h('label', { class: 'small' }, gaussian, ' ', t('gaussian')), h('p', { class: 'small faint' }, t('windowNote')))),
    section(t('regression'), head(t('regression')), slots.curve,
      h('div', { class: 'sliders' }, slider(t('bandwidth'), { id: 'bandwidth', min: 0.05, max: 3, step: 0.05, value: lesson.bandwidth }, (value) => digits(value), (bandwidth) => change({ bandwidth }))), h('p', { class: 'small faint' }, t('regressionNote'))));
}

function drawStrip(slot, allowed) {
  const count = lesson.keys.length, wide = 300, unit = wide / count;
  const x = (index) => (index + 0.5) * unit;
  slot.replaceChildren(g('svg', { viewBox: `0 0 ${wide} 70`, width: '100%', height: 70, role: 'img', 'aria-label': t('window') },
    lesson.hasWindow ? g('rect', { x: x(lesson.centre - lesson.halfWidth) - unit / 2 + 3, y: 8, width: (2 * lesson.halfWidth + 1) * unit - 6, height: 54, rx: 9, fill: 'var(--wash)', stroke: 'var(--accent)' }) : null,
    lesson.keys.map((_, index) => [g('circle', { cx: x(index), cy: 35, r: 13, fill: allowed[index] ? 'var(--accent)' : 'var(--line)' }), g('text', { x: x(index), y: 39.5, 'text-anchor': 'middle', style: { fill: allowed[index] ? 'var(--on-accent)' : 'var(--faint)' } }, index + 1)])));
}

function curve() {
  const isNarrow = window.innerWidth <= 736, wide = isNarrow ? 360 : 720, tall = 220, ys = lesson.points.map(([, y]) => y), low = Math.min(...ys) - 0.3, high = Math.max(...ys) + 0.3;
  const px = (x) => 10 + (x / 6) * (wide - 20), py = (y) => tall - 12 - ((y - low) / (high - low)) * (tall - 24);
  const path = Array.from({ length: 161 }, (_, index) => { const x = (index / 160) * 6; return `${index ? 'L' : 'M'}${px(x).toFixed(1)} ${py(regression(lesson.points, x, lesson.bandwidth)).toFixed(1)}`; }).join('');
  return g('svg', { viewBox: `0 0 ${wide} ${tall}`, width: '100%', role: 'img', 'aria-label': t('regression'), id: 'regression' }, lesson.points.map(([x, y]) => g('circle', { cx: px(x).toFixed(1), cy: py(y).toFixed(1), r: 4, fill: 'var(--faint)', 'fill-opacity': 0.55 })), g('path', { d: path, fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2.6, 'stroke-linejoin': 'round' }));
}

function bars(values, allowed, name, id, isShare = false) {
  const wide = 300, tall = 128, finite = values.filter(Number.isFinite), most = isShare ? 1 : Math.max(1e-9, ...finite.map(Math.abs));
  const unit = wide / values.length, hasNegative = finite.some((value) => value < 0), base = hasNegative ? tall / 2 + 2 : tall - 20, room = hasNegative ? tall / 2 - 20 : tall - 40;
  return g('svg', { class: 'bars', viewBox: `0 0 ${wide} ${tall}`, width: '100%', height: tall, role: 'img', id, 'aria-label': `${name}: ${values.map((value) => digits(value, 3)).join(', ')}` },
    g('path', { d: `M0 ${base}H${wide}`, stroke: 'var(--line)' }),
    values.map((value, index) => {
      const height = Number.isFinite(value) ? (Math.abs(value) / most) * room : 0, x = index * unit + unit * 0.2;
      const y = value < 0 ? base : base - height;
      return [g('rect', { x, y, width: unit * 0.6, height, rx: 3, class: value < 0 ? 'negative' : '', 'fill-opacity': allowed[index] ? 1 : 0.25 }),
        g('text', { x: (index + 0.5) * unit, y: value < 0 ? y + height + 14 : y - 6, 'text-anchor': 'middle' }, Number.isFinite(value) ? digits(value) : '−∞')];
    }));
}

function plane(weights, context) {
  const size = 220, reach = Math.max(1, ...lesson.values.flat().map(Math.abs), ...context.map(Math.abs)) * 1.2;
  const at = ([x, y]) => [size / 2 + (x / reach) * (size / 2), size / 2 - ((y ?? 0) / reach) * (size / 2)];
  const [cx, cy] = at(context);
  return g('svg', { viewBox: `0 0 ${size} ${size}`, width: '100%', height: size, role: 'img', 'aria-label': t('context') },
    g('path', { d: `M0 ${size / 2}H${size}M${size / 2} 0V${size}`, stroke: 'var(--line)' }),
    lesson.values.map((value, index) => { const [x, y] = at(value); return [g('path', { d: `M${cx} ${cy}L${x} ${y}`, stroke: 'var(--accent)', 'stroke-width': 6 * weights[index], 'stroke-opacity': 0.35 }), g('circle', { cx: x, cy: y, r: 5 + 9 * Math.sqrt(Math.max(0, weights[index])), fill: 'var(--accent)', 'fill-opacity': 0.25 + 0.6 * weights[index] }), g('text', { x: x + 9, y: y - 9 }, index + 1)]; }),
    g('circle', { cx, cy, r: 5, fill: 'var(--ink)' }));
}
