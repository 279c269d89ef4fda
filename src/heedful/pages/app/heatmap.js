// Heat map of weights: rows are queries, columns keys. Cells are squares, or one picture where there are many.
import { g, h } from './dom.js';
import { digits, entropy, rowSum } from './numbers.js';
import { t } from './text.js';

const MOST_SQUARES = 2500;
const LEAST = 0.004;
const LEAST_CELL = 16;
const SHORT = 16;
const NARROW = 736, WIDEST = 1120, GAP = 18, FRAME = 40, CARD = 42;

// Width inside a card that takes the whole page, or half of it where there is room for two.
export function room(isHalf) {
  if (window.innerWidth <= NARROW) return window.innerWidth - 76;
  const page = Math.min(window.innerWidth, WIDEST) - FRAME;
  return (isHalf ? (page - GAP) / 2 : page) - CARD;
}

function textWidth(text) {
  let width = 0;
  for (const character of text) width += character.codePointAt(0) > 0x2e7f ? 13.5 : 7.6;
  return width;
}

// Chinese and Japanese labels are read from top to bottom where they have no room side by side.
function standsUpright(text) {
  return [...text].every((character) => character.codePointAt(0) > 0x2e7f || character === '⏎' || character === '␣' || /^\p{P}$/u.test(text));
}

function shorten(text, most = 18) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text;
}

export function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function channels(colour) {
  const value = parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function paint(canvas, weights) {
  canvas.width = weights.columns;
  canvas.height = weights.rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(weights.columns, weights.rows);
  const [red, green, blue] = channels(colourOf('accent'));
  const { data } = image, { values } = weights;
  for (let index = 0, place = 0; index < values.length; index++, place += 4) {
    data[place] = red;
    data[place + 1] = green;
    data[place + 2] = blue;
    data[place + 3] = 255 * Math.min(1, Math.sqrt(Math.max(0, values[index])));
  }
  context.putImageData(image, 0, 0);
}

// isHalf: whether another card stands beside its own.
// marks: cells that are framed, [row, column].
// heat: shared highlight {row, column, subscribe, set}, so that a map, its words and its lines light up together.
export function heatmap({ weights, rows, columns, marks = [], heat, onpick, name, isHalf = false }) {
  const longest = Math.max(weights.rows, weights.columns);
  const widest = longest > 120 ? 4 : longest > 60 ? 8 : longest > 30 ? 16 : longest > 14 ? 24 : 32;
  const isLabelled = widest >= 16;
  const left = isLabelled ? Math.max(...rows.map((text) => textWidth(shorten(text)))) + 14 : 6;
  // A narrow screen has smaller cells before it scrolls.
  const widths = columns.map((text) => textWidth(shorten(text)));
  // Beside them, a single other label, such as the root of a tree, lies on its side.
  const isVertical = columns.some((text) => text.codePointAt(0) > 0x2e7f) && columns.filter((text) => !standsUpright(text)).length < 2;
  // Pixels by which the labels, turned, go beyond cells of a size, on their right.
  const beyond = (size) => Math.max(8, ...widths.map((width, column) => width * 0.71 + 10 - (weights.columns - column - 0.5) * size));
  const fitting = Math.floor((room(isHalf) - left - (isVertical ? 8 : beyond(LEAST_CELL))) / weights.columns);
  const cell = isLabelled ? Math.max(LEAST_CELL, Math.min(widest, fitting)) : widest;
  const tallest = Math.max(...widths), isUpright = tallest <= cell - 2;
  // Where most labels are of one or two letters, these stay as they are, and longer ones are turned above them.
  const isMixed = !isUpright && !isVertical && widths.filter((each) => each <= SHORT).length > widths.length / 2;
  const standing = widths.map((each) => isUpright || (isMixed && each <= SHORT)), lift = isMixed ? 8 : 0;
  const top = isLabelled ? (isUpright ? 26 : isVertical ? tallest + 18 : tallest * 0.71 + 22 + lift) : 6;
  const width = left + cell * weights.columns + (isLabelled && !isUpright && !isVertical ? beyond(cell) : 8);
  const height = top + cell * weights.rows + 6;
  const svg = g('svg', { class: 'map', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', tabindex: 0, 'aria-label': t('mapLabel', weights.rows, weights.columns) });
  svg.append(g('rect', { x: left, y: top, width: cell * weights.columns, height: cell * weights.rows, fill: 'var(--ground)', stroke: 'var(--line)' }));
  if (weights.values.length <= MOST_SQUARES) {
    const gap = cell > 16 ? 1 : 0.5;
    weights.values.forEach((weight, index) => {
      if (weight < LEAST) return;
      const row = Math.floor(index / weights.columns), column = index % weights.columns;
      svg.append(g('rect', { x: left + column * cell + gap, y: top + row * cell + gap, width: cell - 2 * gap, height: cell - 2 * gap, rx: cell > 16 ? 3 : 0, fill: 'var(--accent)', 'fill-opacity': Math.min(1, Math.sqrt(weight)).toFixed(3) }));
    });
  } else {
    const canvas = document.createElement('canvas');
    paint(canvas, weights);
    svg.append(g('image', { x: left, y: top, width: cell * weights.columns, height: cell * weights.rows, href: canvas.toDataURL(), preserveAspectRatio: 'none', style: { 'image-rendering': 'pixelated' } }));
  }
  const frame = cell > 16 ? 2 : 1;
  marks.forEach(([row, column]) => svg.append(g('rect', { class: 'mark', x: left + column * cell + frame / 2, y: top + row * cell + frame / 2, width: cell - frame, height: cell - frame, rx: cell > 16 ? 3 : 0, fill: 'none', stroke: 'var(--ink)', 'stroke-width': frame })));
  const rowLabels = [], columnLabels = [];
  if (isLabelled) {
    rows.forEach((text, row) => rowLabels.push(g('text', { x: left - 8, y: top + (row + 0.5) * cell + 4.5, 'text-anchor': 'end', 'data-row': row }, shorten(text))));
    columns.forEach((text, column) => {
      const x = left + (column + 0.5) * cell;
      columnLabels.push(g('text', standing[column] ? { x, y: top - 9, 'text-anchor': 'middle', 'data-column': column } : isVertical ? { x, y: top - 8, 'text-anchor': 'end', 'data-column': column, style: { 'writing-mode': 'vertical-rl', 'text-orientation': standsUpright(text) ? 'upright' : 'mixed' } } : { x: x + 3, y: top - 8 - lift, transform: `rotate(-45 ${x + 3} ${top - 8 - lift})`, 'data-column': column }, shorten(text)));
    });
    svg.append(...rowLabels, ...columnLabels);
  }
  const band = { fill: 'none', stroke: 'var(--accent)', 'stroke-width': 1.4, rx: 3, visibility: 'hidden' };
  const rowBand = g('rect', { ...band, x: left, width: cell * weights.columns, height: cell, class: 'band' });
  const columnBand = g('rect', { ...band, y: top, height: cell * weights.rows, width: cell, class: 'band' });
  svg.append(rowBand, columnBand);
  const status = h('p', { class: 'status', 'aria-live': 'polite' }, t('pointAt'));

  function show({ row, column }) {
    const hasRow = row >= 0 && row < weights.rows, hasColumn = column >= 0 && column < weights.columns;
    rowBand.setAttribute('visibility', hasRow ? 'visible' : 'hidden');
    columnBand.setAttribute('visibility', hasColumn ? 'visible' : 'hidden');
    if (hasRow) rowBand.setAttribute('y', top + row * cell);
    if (hasColumn) columnBand.setAttribute('x', left + column * cell);
    rowLabels.forEach((label, index) => label.classList.toggle('hot', index === row));
    columnLabels.forEach((label, index) => label.classList.toggle('hot', index === column));
    if (!hasRow && !hasColumn) { status.replaceChildren(t('pointAt')); return; }
    const parts = [];
    if (hasRow && hasColumn) parts.push(h('b', {}, t('cell', rows[row], columns[column], digits(weights.values[row * weights.columns + column]))), ' · ');
    else parts.push(h('b', {}, hasRow ? rows[row] : columns[column]), hasRow ? ' · ' : '');
    if (marks.some(([one, other]) => one === row && other === column)) parts.push(t('inTree'), ' · ');
    if (hasRow) parts.push(t('rowInfo', digits(rowSum(weights, row), 3), digits(entropy(weights, row))));
    status.replaceChildren(...parts);
    if (hasRow && hasColumn) svg.setAttribute('aria-label', t('cell', rows[row], columns[column], digits(weights.values[row * weights.columns + column])));
  }
  function at(event) {
    const box = svg.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) * (width / box.width) - left) / cell);
    const row = Math.floor(((event.clientY - box.top) * (height / box.height) - top) / cell);
    return { row: row >= 0 && row < weights.rows ? row : -1, column: column >= 0 && column < weights.columns ? column : -1 };
  }
  svg.addEventListener('pointermove', (event) => heat.set(at(event)));
  svg.addEventListener('pointerleave', () => heat.set({ row: -1, column: -1 }));
  svg.addEventListener('click', (event) => { const place = at(event); heat.set(place); onpick?.(place); });
  svg.addEventListener('keydown', (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === 'Enter') { onpick?.(heat); return; }
    if (!moves) return;
    event.preventDefault();
    const clamp = (value, most) => Math.min(Math.max(value, 0), most - 1);
    heat.set({ row: clamp((heat.row < 0 ? 0 : heat.row) + moves[0], weights.rows), column: clamp((heat.column < 0 ? 0 : heat.column) + moves[1], weights.columns) });
  });
  heat.subscribe(show);
  return { node: h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': name }, svg), svg, status };
}

export function makeHeat() {
  const listeners = [];
  return {
    row: -1, column: -1,
    subscribe(listener) { listeners.push(listener); },
    set({ row, column }) {
      if (row === this.row && column === this.column) return;
      this.row = row;
      this.column = column;
      listeners.forEach((listener) => listener(this));
    },
  };
}
