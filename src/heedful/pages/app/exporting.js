// Files of a drawing: SVG and PNG with the colours of the page, CSV with the numbers.
import { h } from './dom.js';
import { t } from './text.js';

export function download(name, blob) {
  const link = h('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function svgText(svg) {
  const style = getComputedStyle(document.documentElement);
  const copy = svg.cloneNode(true);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.removeAttribute('tabindex');
  copy.querySelectorAll('text').forEach((text) => {
    if (!text.hasAttribute('fill')) text.setAttribute('fill', 'var(--faint)');
    text.setAttribute('font-family', 'system-ui, sans-serif');
    text.setAttribute('font-size', '13');
  });
  copy.querySelectorAll('.band').forEach((band) => band.remove());
  const drawn = new XMLSerializer().serializeToString(copy);
  const paper = `<rect width="100%" height="100%" fill="${style.getPropertyValue('--paper').trim()}"/>`;
  return drawn.replace(/var\(--([a-z-]+)\)/g, (_, name) => style.getPropertyValue(`--${name}`).trim()).replace(/(<svg[^>]*>)/, `$1${paper}`);
}

export function csvText(rows, columns, weights) {
  const cell = (text) => `"${String(text).replaceAll('"', '""')}"`;
  const lines = [['', ...columns].map(cell).join(',')];
  rows.forEach((name, row) => lines.push([cell(name), ...Array.from(weights.values.slice(row * weights.columns, (row + 1) * weights.columns), (value) => value.toFixed(6))].join(',')));
  return `${lines.join('\r\n')}\r\n`;
}

async function savePng(svg, name) {
  const text = svgText(svg);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(svg.width.baseVal.value * 2);
  canvas.height = Math.ceil(svg.height.baseVal.value * 2);
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(`${name}.png`, blob), 'image/png');
}

export function exportButtons(svg, name, table) {
  return h('div', { class: 'end-row', role: 'group', 'aria-label': t('save') },
    h('button', { type: 'button', class: 'plain', 'data-save': 'svg', onclick: () => download(`${name}.svg`, new Blob([svgText(svg)], { type: 'image/svg+xml' })) }, t('saveSvg')),
    h('button', { type: 'button', class: 'plain', 'data-save': 'png', onclick: () => savePng(svg, name) }, t('savePng')),
    table && h('button', { type: 'button', class: 'plain', 'data-save': 'csv', onclick: () => download(`${name}.csv`, new Blob(['\ufeff', csvText(table.rows, table.columns, table.weights)], { type: 'text/csv;charset=utf-8' })) }, t('saveCsv')));
}
