// View "Search": the tree of a beam search, with sliders for beam and length penalty.
import { g, h, pressable, slider } from './dom.js';
import { exportButtons } from './exporting.js';
import { heatmap, makeHeat } from './heatmap.js';
import { digits, merge, unpack } from './numbers.js';
import { t } from './text.js';

const WIDE = 126, TALL = 34, BOX = 104, INSET = 7, BETWEEN = 6;
const ruler = document.createElement('canvas');

export function ancestors(nodes, index) {
  const path = [];
  for (let node = index; node >= 0; node = nodes[node].parent) path.unshift(node);
  return path;
}

export function lengthScore(logProb, length, alpha, kind) {
  return kind === 'gnmt' ? logProb / ((5 + length) / 6) ** alpha : logProb / length ** alpha;
}

export function searchView(page) {
  const { state, data } = page;
  if (!data.searches.length) return h('p', { class: 'faint' }, t('working'));
  const search = data.searches.find((one) => one.beam === state.beam) ?? data.searches[data.searches.length - 1];
  const { nodes } = search;
  const finished = nodes.flatMap((node, index) => (['eos', 'length'].includes(node.fate) ? [{ node, index, score: lengthScore(node.logProb, node.step + 1, state.alpha, data.lengthPenalty) }] : [])).sort((one, other) => other.score - one.score);
  const best = new Set(finished.length ? ancestors(nodes, finished[0].index) : []);
  const chosen = state.node >= 0 && state.node < nodes.length ? state.node : finished[0]?.index ?? -1;
  const svg = drawTree(page, nodes, best, chosen);
  const beams = page.isLive ? [1, 12] : [data.searches[0].beam, data.searches[data.searches.length - 1].beam];
  const sliders = h('div', { class: 'sliders' },
    slider(t('beam'), { min: beams[0], max: beams[1], step: 1, value: search.beam, id: 'beam' }, String, null, (beam) => { page.set({ beam: page.isLive ? beam : closest(data.searches, beam), node: -1 }); page.load(); }),
    slider(t('penalty'), { min: 0, max: 2, step: 0.1, value: state.alpha, id: 'alpha' }, (value) => digits(value, 1), null, (alpha) => page.set({ alpha, node: -1 })),
    h('label', { style: { 'align-content': 'center' } }, h('span', {}, h('input', { type: 'checkbox', checked: state.pruned, onchange: () => page.set({ pruned: !state.pruned }) }), ' ', t('pruned'))));
  const departure = search.departure;
  return h('div', { class: 'stack' },
    h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('tree')), exportButtons(svg, 'beam-tree')), sliders,
      departure === null || departure === undefined ? null : h('p', { class: 'notice', style: { 'margin-top': '.8rem' } }, departure < 0 ? t('stayed') : t('departed', departure + 1)),
      h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('tree'), style: { 'margin-top': '.9rem' } }, svg), h('p', { class: 'small faint' }, t('treeNote'), ' ', t('rerank'))),
    h('div', { class: 'even' }, finishedCard(page, nodes, finished, chosen), nodeCard(page, search, chosen)));
}

function closest(searches, beam) {
  return searches.reduce((near, one) => (Math.abs(one.beam - beam) < Math.abs(near - beam) ? one.beam : near), searches[0].beam);
}

function widthOf(text, font) {
  const context = ruler.getContext('2d');
  context.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

// Label of a node, cut to the width that its number leaves.
function fitting(text, number, isBold) {
  const weight = isBold ? '650 ' : '', room = BOX - 2 * INSET - BETWEEN - widthOf(number, `${weight}10px`), characters = [...text];
  let shown = text;
  for (let count = characters.length - 1; count > 0 && widthOf(shown, `${weight}13px`) > room; count -= 1) shown = `${characters.slice(0, count).join('')}…`;
  return shown;
}

function drawTree(page, nodes, best, chosen) {
  const shown = nodes.map((node, index) => ({ node, index })).filter(({ node, index }) => page.state.pruned || best.has(index) || !['rank', 'late_eos'].includes(node.fate));
  const places = new Map(), counts = new Map();
  for (const { node, index } of shown) {
    const row = counts.get(node.step) ?? 0;
    counts.set(node.step, row + 1);
    places.set(index, { x: 26 + node.step * WIDE, y: 14 + row * TALL });
  }
  const width = 40 + Math.max(...counts.keys(), 0) * WIDE + BOX, height = 20 + Math.max(...counts.values(), 1) * TALL;
  const root = { x: 12, y: 14 + 13 };
  const edges = [], boxes = [];
  const onPath = new Set(chosen >= 0 ? ancestors(nodes, chosen) : []);
  for (const { node, index } of shown) {
    const to = places.get(index), parent = places.get(node.parent);
    const x1 = parent ? parent.x + BOX : root.x, y1 = parent ? parent.y + 13 : root.y, x2 = to.x, y2 = to.y + 13, middle = (x1 + x2) / 2;
    const isBest = best.has(index), isGone = !['live', 'eos', 'length'].includes(node.fate);
    const kind = `${isBest ? ' best' : ''}${isGone ? ' gone' : ''}`;
    const edge = g('path', { class: `edge${kind}`, fill: 'none', stroke: isBest ? 'var(--accent)' : 'var(--faint)', 'stroke-opacity': isBest ? null : 0.75, 'stroke-width': isBest ? 2.6 : 1.1, d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` });
    if (isBest) edges.push(edge); else edges.unshift(edge);
    const number = digits(node.tokenLogProb, 1), shown = fitting(node.piece, number, isBest);
    const label = `${shown} ${number} · ${node.piece}, ${t('logProb')} ${digits(node.logProb)}, ${t(`fate_${node.fate}`)}`;
    boxes.push(g('g', { class: `node${kind}${onPath.has(index) && !isBest ? ' path' : ''}${index === chosen ? ' on' : ''}`, ...pressable(() => page.set({ node: index })), id: `node-${index}`, 'aria-label': label, transform: `translate(${to.x} ${to.y})` },
      g('title', {}, label), g('rect', { width: BOX, height: 26, rx: 7, fill: 'var(--paper)', stroke: isBest ? 'var(--accent)' : 'var(--line)' }),
      g('text', { x: INSET, y: 17.5 }, shown), ' ', g('text', { class: 'p', x: BOX - INSET, y: 17, 'text-anchor': 'end' }, number)));
  }
  return g('svg', { class: 'tree', width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': t('treeLabel', shown.length) }, g('circle', { cx: root.x, cy: root.y, r: 5, fill: 'var(--accent)' }), edges, boxes);
}

function finishedCard(page, nodes, finished, chosen) {
  return h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('finished'))),
    h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('finished') }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('text')), h('th', { scope: 'col', class: 'right' }, t('score')), h('th', { scope: 'col', class: 'right' }, t('logProb')), h('th', { scope: 'col', class: 'right' }, t('length')))),
      h('tbody', { id: 'finished' }, finished.slice(0, 12).map(({ node, index, score }) => h('tr', { class: `pick${index === chosen ? ' best' : ''}`, onclick: () => page.set({ node: index }) }, h('td', { dir: 'auto' }, node.text),
        h('td', { class: 'right number' }, digits(score)), h('td', { class: 'right number' }, digits(node.logProb)), h('td', { class: 'right number' }, node.step + 1)))))));
}

function nodeCard(page, search, chosen) {
  if (chosen < 0) return null;
  const { nodes } = search, path = ancestors(nodes, chosen), node = nodes[chosen];
  const parts = [h('div', { class: 'head' }, h('h2', {}, t('hypothesis'))), h('p', { class: 'said', dir: 'auto', id: 'hypothesis' }, node.text || '∅'),
    h('p', { class: 'small faint' }, `${t('logProb')} ${digits(node.logProb)} · ${t(`fate_${node.fate}`)}`)];
  if (search.attention) {
    const { shape, values } = unpack(search.attention);
    const columns = Math.min(shape[2], page.data.source.pieces.length);
    const weights = { rows: path.length, columns, values: Float64Array.from(path.flatMap((index) => Array.from(values.slice(index * shape[2], index * shape[2] + columns)))) };
    const heat = makeHeat();
    const map = heatmap({ weights: merge(weights, path.map((_, index) => index), page.data.source.wordOf), rows: path.map((index) => nodes[index].piece), columns: page.data.source.words, heat, name: t('attention'), isHalf: true });
    parts.push(map.node, map.status);
  }
  return h('section', { class: 'card' }, parts);
}
