// Two rows of words with lines between them, as thick as the attention.
import { g, h } from './dom.js';

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
    const box = node.getBoundingClientRect();
    for (const { row, column, path } of paths) {
      const above = upper[column].getBoundingClientRect(), below = lower[row].getBoundingClientRect();
      const x1 = above.left + above.width / 2 - box.left, y1 = above.bottom - box.top;
      const x2 = below.left + below.width / 2 - box.left, y2 = below.top - box.top;
      const middle = (y1 + y2) / 2;
      path.setAttribute('d', `M${x1.toFixed(1)} ${y1.toFixed(1)}C${x1.toFixed(1)} ${middle.toFixed(1)} ${x2.toFixed(1)} ${middle.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`);
    }
  }
  new ResizeObserver(place).observe(node);
  heat.subscribe(shade);
  shade();
  return { node, svg };
}
