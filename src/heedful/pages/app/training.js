// View "Training": curves of the model's training, read again while it goes on, and its samples.
import { complaint, KeyNeeded, Refusal, training } from './api.js';
import { g, h } from './dom.js';
import { ticks } from './numbers.js';
import { t } from './text.js';

const REFRESH = 5000;
const NAMES = { 'learning rate': 'learningRate', speed: 'speed', exact_match: 'exactMatch', character_error_rate: 'characterErrorRate', token_error_rate: 'tokenErrorRate', bleu: 'bleu', chrf: 'chrf', accuracy: 'accuracy' };

export function trainingView(page) {
  const root = h('div', { class: 'stack', 'aria-live': 'off' }, h('p', { class: 'faint' }, t('reading')));
  let latest = '';
  async function read() {
    try {
      const record = await training(page.state.model);
      const text = JSON.stringify(record);
      if (text !== latest) root.replaceChildren(...draw(record));
      latest = text;
    } catch (error) {
      if (error instanceof KeyNeeded) { page.askKey(); return; }
      if (!(error instanceof Refusal || error instanceof TypeError)) throw error;
      root.replaceChildren(h('p', { class: 'notice', role: 'alert' }, complaint(error)));
    }
    setTimeout(() => { if (root.isConnected) read(); }, REFRESH);
  }
  read();
  return root;
}

function draw({ curves, samples, best }) {
  const { 'training loss': trained = [], loss = [], ...others } = curves;
  if (!trained.length) return [h('p', { class: 'notice' }, t('noRun'))];
  const charts = [chart(t('loss'), [[t('trainingLoss'), trained, 'var(--faint)'], [t('validationLoss'), loss, 'var(--accent)']], best)];
  for (const [name, points] of Object.entries(others)) if (points.length) charts.push(chart(NAMES[name] ? t(NAMES[name]) : name, [['', points, 'var(--accent)']], best, true));
  const pairs = [];
  for (let index = 0; index < charts.length; index += 2) pairs.push(h('div', { class: 'even' }, charts.slice(index, index + 2)));
  return [...pairs, best ? h('p', { class: 'small faint' }, t('keptNote')) : null, ...(samples.length ? [h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('samples'))), samples.slice(0, 5).map(sampleTable))] : [])].filter(Boolean);
}

function sampleTable({ source, reference, outputs }) {
  const changed = outputs.filter(([, text], index) => !index || text !== outputs[index - 1][1]);
  const shown = changed.length > 5 ? [changed[0], ...changed.slice(-4)] : changed;
  const row = (label, text, kind) => h('tr', { class: kind }, h('th', { scope: 'row' }, label), h('td', { dir: 'auto' }, text));
  return h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': source, style: { 'margin-bottom': '1rem' } }, h('table', {}, h('tbody', {}, row(t('source'), source), row(t('reference'), reference), shown.map(([step, text]) => row(t('step', Number(step).toLocaleString('en')), text)))));
}

function chart(title, series, best, fromZero = false) {
  const wide = 420, tall = 190, left = 56, bottom = 26;
  const points = series.flatMap(([, each]) => each), values = points.map(([, value]) => value);
  const last = Math.max(1, ...points.map(([step]) => step)), levels = ticks(fromZero ? Math.min(0, ...values) : Math.min(...values), Math.max(...values));
  const low = levels[0], span = levels[levels.length - 1] - low;
  const x = (step) => left + (step / last) * (wide - left - 12), y = (value) => 10 + (1 - (value - low) / span) * (tall - bottom - 14);
  const short = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : value && Math.abs(value) < 0.001 ? value.toExponential(1).replace('-', '−') : Number(value.toPrecision(3)).toFixed(Math.abs(value) < 0.1 ? 4 : Math.abs(value) < 10 ? 2 : 1).replace(/\.?0+$/, '') || '0');
  return h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, title), series.length > 1 ? series.map(([name, , colour]) => h('span', { class: 'small' }, h('span', { style: { color: colour } }, '● '), name)) : null),
    g('svg', { viewBox: `0 0 ${wide} ${tall}`, width: '100%', role: 'img', 'aria-label': title },
      levels.map((value) => [g('path', { d: `M${left} ${y(value)}H${wide - 12}`, stroke: 'var(--line)' }), g('text', { x: left - 7, y: y(value) + 4, 'text-anchor': 'end' }, short(value))]),
      [0, last].map((step) => g('text', { x: x(step), y: tall - 6, 'text-anchor': step ? 'end' : 'start' }, step ? t('step', step.toLocaleString('en')) : '0')),
      best ? g('path', { d: `M${x(best)} 8V${tall - bottom}`, stroke: 'var(--faint)', 'stroke-dasharray': '3 4' }, g('title', {}, `${t('best')}: ${best}`)) : null,
      series.map(([, each, colour]) => g('path', { d: each.map(([step, value], index) => `${index ? 'L' : 'M'}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join(''), fill: 'none', stroke: colour, 'stroke-width': 2 }))));
}
