// View "Caption": a picture, its caption, and the regions that each word looked at.
import { g, h, pressable } from './dom.js';
import { digits } from './numbers.js';
import { gapsOf, SIGNS } from './sentence.js';
import { t } from './text.js';

const DARKEST = 0.78;
let count = 0;

// A picture of the reader; its number stands for it where requests are compared.
export class Picture {
  constructor(blob) {
    this.blob = blob;
    this.url = URL.createObjectURL(blob);
    this.number = count += 1;
  }

  toJSON() { return this.number; }
}

export function captionView(page) {
  const { state } = page, data = page.data?.task === 'captioning' ? page.data : null;
  const veil = data?.weights.length ? makeVeil(data) : null;
  const field = h('input', { type: 'file', accept: 'image/*', class: 'sr', id: 'file', tabindex: -1, 'aria-label': t('choosePicture'), onchange: () => page.take(field.files[0]) });
  const choose = (text) => h('button', { type: 'button', class: 'plain', id: 'choose', disabled: page.isBroken, onclick: () => field.click() }, text);
  const pane = h('div', { class: 'drop', id: 'drop',
    ondragover: (event) => { event.preventDefault(); pane.classList.add('over'); }, ondragleave: () => pane.classList.remove('over'),
    ondrop: (event) => { event.preventDefault(); pane.classList.remove('over'); page.take(event.dataTransfer.files[0]); } },
  h('div', { class: 'label' }, h('span', {}, t('picture')), page.modelChooser()), field,
  page.picture ? [h('div', { class: 'picture', style: data ? { 'aspect-ratio': `${data.size[1]} / ${data.size[0]}` } : {} }, h('img', { src: page.picture.url, alt: data?.text ?? t('picture') }), veil?.node), h('div', {}, choose(t('otherPicture')))]
    : h('div', { class: 'nothing' }, h('p', { class: 'faint' }, t('dropPicture')), choose(t('choosePicture'))));
  const labels = data?.pieces.map((piece) => (piece === '</s>' || piece === '<eos>' ? '⏎' : piece)), gaps = data && gapsOf(data.text, labels);
  const words = labels?.map((label, index) => {
    const look = () => veil?.show(index), away = () => veil?.show(state.word), isSign = SIGNS.includes(label);
    return [gaps[index], h('span', { ...pressable(() => page.set({ word: state.word === index ? -1 : index })), class: `word${state.word === index ? ' chosen' : ''}`, 'data-sign': isSign && label, 'aria-label': label, 'aria-pressed': String(state.word === index), onpointerenter: look, onfocus: look, onpointerleave: away, onblur: away }, isSign ? null : label)];
  });
  veil?.show(state.word);
  const card = h('div', { class: 'card flush panes' }, pane,
    h('div', { class: page.isBusy ? 'busy' : '', 'aria-live': 'polite', id: 'output' }, h('div', { class: 'label' }, h('span', {}, t('captionLabel'))),
      data ? [h('div', { class: 'said words', dir: 'auto', id: 'caption' }, words.length ? words : data.text), veil ? h('p', { class: 'small faint' }, t('regionsNote')) : null] : page.placeholder('captionHere')));
  return h('div', { class: 'stack' }, card, page.notice(), data?.alternatives.length > 1 ? others(data) : null);
}

// Dark over the regions that a word did not look at.
function makeVeil({ grid: [rows, columns], weights }) {
  const squares = Array.from({ length: rows * columns }, (_, region) => g('rect', { x: region % columns, y: Math.floor(region / columns), width: 1, height: 1, fill: '#000' }));
  const node = g('svg', { class: 'veil', viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, squares);
  function show(word) {
    const row = weights[word], largest = row ? Math.max(...row) || 1 : 1;
    squares.forEach((square, region) => square.setAttribute('fill-opacity', row ? (DARKEST * (1 - row[region] / largest)).toFixed(3) : 0));
  }
  return { node, show };
}

function others({ alternatives: [, ...rows] }) {
  return h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('otherCaptions'))),
    h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('otherCaptions') }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('text')), h('th', { scope: 'col', class: 'right' }, t('score')), h('th', { scope: 'col', class: 'right' }, t('logProb')))),
      h('tbody', {}, rows.map(([text, logProb, score]) => h('tr', {}, h('td', { dir: 'auto' }, text || '∅'), h('td', { class: 'right number' }, digits(score)), h('td', { class: 'right number' }, digits(logProb))))))));
}
