// Two rows of words with lines between them, as thick as the attention.
import { g, h } from './dom.js';
import { anchor, arrange, curve, follow } from './rows.js';

const LEAST = 0.05;

export function lines({ weights, rows, columns, heat }) {
  const upper = columns.map((text, index) => h('span', { class: 'word', 'data-column': index, onpointerenter: () => heat.set({ row: -1, column: index }) }, text));
  const lower = rows.map((text, index) => h('span', { class: 'word', 'data-row': index, onpointerenter: () => heat.set({ row: index, column: -1 }) }, text));
  const svg = g('svg', { 'aria-hidden': 'true' });
  const node = h('div', { class: 'links', onpointerleave: () => heat.set({ row: -1, column: -1 }) }, svg,
    h('div', { class: 'row', dir: 'auto' }, upper), h('div', { class: 'row lower', dir: 'auto' }, lower));
  const paths = [];
  for (let row = 0; row < weights.rows; row++) {
    for (let column = 0; column < weights.columns; column++) {
      const weight = weights.values[row * weights.columns + column];
      if (weight >= LEAST) paths.push({ row, column, weight, path: g('path', { 'stroke-width': (0.8 + 7 * weight).toFixed(2) }) });
    }
  }
  svg.append(...paths.map((one) => one.path));
  function shade() {
    for (const { row, column, weight, path } of paths) {
      const isOther = (heat.row >= 0 && heat.row !== row) || (heat.column >= 0 && heat.column !== column);
      path.style.opacity = isOther ? 0.05 : 0.18 + 0.62 * weight + (heat.row >= 0 || heat.column >= 0 ? 0.2 : 0);
    }
    lower.forEach((word, index) => word.classList.toggle('hot', index === heat.row));
    upper.forEach((word, index) => word.classList.toggle('hot', index === heat.column));
  }
  function place() {
    arrange(node, [upper, lower]);
    const above = upper.map((word) => anchor(node, word, 0)), below = lower.map((word) => anchor(node, word, 1));
    for (const { row, column, path } of paths) path.setAttribute('d', curve(node, above[column], below[row]));
  }
  follow(node, place);
  heat.subscribe(shade);
  shade();
  return { node, svg };
}
