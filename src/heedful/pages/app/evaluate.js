// View "Evaluate": scores of a test set by source length, and the worst outputs, which a click loads.
import { complaint, evaluation, KeyNeeded, offline, Refusal } from './api.js';
import { g, h } from './dom.js';
import { room } from './heatmap.js';
import { digits, ticks } from './numbers.js';
import { t } from './text.js';

const WIDEST = 760, TALL = 230, LEFT = 46, BOTTOM = 44, TOP = 12, MOST_SHOWN = 20;

export function evaluateView(page) {
  const root = h('div', { class: 'stack' }, h('p', { class: 'faint' }, t('reading')));
  const { model } = page.state;
  evaluation(model).then((record) => {
    if (root.isConnected && page.state.model === model) root.replaceChildren(...draw(page, record));
  }).catch((error) => {
    if (error instanceof KeyNeeded) { page.askKey(); return; }
    if (!(error instanceof Refusal || error instanceof TypeError)) throw error;
    root.replaceChildren(h('p', { class: 'notice', role: 'alert' }, complaint(error)));
  });
  return root;
}

function draw(page, record) {
  const { metrics, worst } = record;
  const chooser = page.models.length > 1 ? h('div', { class: 'end-row' }, page.modelChooser()) : null;
  if (!metrics.length) return [chooser, h('div', { class: 'notice' }, h('p', {}, t('noScores')), h('p', {}, h('code', {}, record.command)))].filter(Boolean);
  const metric = metrics.find((one) => one.key === page.state.metric) ?? metrics[0];
  const parts = [h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('testScores')), h('span', { class: 'small faint' }, t('numSentences', record.numItems.toLocaleString('en'))), page.models.length > 1 ? page.modelChooser() : null),
    h('div', { class: 'figures', role: 'group', 'aria-label': t('metric') }, metrics.map((one) => h('button', { type: 'button', class: 'figure', 'data-metric': one.key, 'aria-pressed': String(one === metric), onclick: () => page.set({ metric: one.key }) },
      h('span', { class: 'small faint' }, nameOf(one)), h('b', {}, digits(one.score)), h('span', { class: 'number' }, one.low === null ? '' : `${digits(one.low)} – ${digits(one.high)}`))))) ];
  if (metric.byLength.length) {
    parts.push(h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('byLength', nameOf(metric)))),
      h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('byLength', nameOf(metric)) }, bars(metric)), h('p', { class: 'small faint' }, record.lengthUnit === 'characters' ? t('lengthCharacters') : t('lengthWords'), ' ', t('interval'))));
  }
  if (worst.length) parts.push(worstCard(page, record));
  else parts.push(h('div', { class: 'notice' }, h('p', {}, t('noWorst')), h('p', {}, h('code', {}, record.command))));
  return parts;
}

function nameOf(metric) {
  const known = { exact_match: 'exactMatch', character_error_rate: 'characterErrorRate', token_error_rate: 'tokenErrorRate' }[metric.key];
  return known ? t(known) : `${metric.name}${metric.unit === '%' ? ', %' : ''}`;
}

function bars({ byLength, ...metric }) {
  const levels = ticks(0, Math.max(...byLength.map((one) => Math.max(one.high ?? one.score, one.score)), 1e-9)), high = levels[levels.length - 1];
  const wide = Math.min(WIDEST, Math.max(220, room(false)));
  const step = (wide - LEFT - 12) / byLength.length, width = Math.min(64, step * 0.62);
  const y = (value) => TOP + (1 - value / high) * (TALL - TOP - BOTTOM);
  const label = (one) => (one.shortest === one.longest ? String(one.shortest) : `${one.shortest}–${one.longest}`);
  return g('svg', { class: 'lengths', viewBox: `0 0 ${wide} ${TALL}`, width: wide, height: TALL, role: 'img', 'aria-label': byLength.map((one) => `${label(one)}: ${digits(one.score)}`).join('; ') },
    levels.map((value) => [g('path', { d: `M${LEFT} ${y(value)}H${wide - 12}`, stroke: 'var(--line)' }), g('text', { x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, String(value))]),
    byLength.map((one, index) => {
      const middle = LEFT + step * (index + 0.5);
      return [g('rect', { class: 'length', x: middle - width / 2, y: y(one.score), width, height: Math.max(0, y(0) - y(one.score)), rx: 4, fill: 'var(--accent)', 'fill-opacity': 0.8 }, g('title', {}, `${nameOf(metric)} ${digits(one.score)} [${digits(one.low)}, ${digits(one.high)}]`)),
        one.low === null ? null : g('path', { d: `M${middle} ${y(one.low)}V${y(one.high)}M${middle - 5} ${y(one.low)}h10M${middle - 5} ${y(one.high)}h10`, stroke: 'var(--ink)', 'stroke-width': 1.2, fill: 'none' }),
        g('text', { x: middle, y: TALL - BOTTOM + 17, 'text-anchor': 'middle' }, label(one)),
        g('text', { x: middle, y: TALL - BOTTOM + 34, 'text-anchor': 'middle', class: 'tiny' }, `n = ${one.numItems.toLocaleString('en')}`)];
    }),
  );
}

function worstCard(page, record) {
  return h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('worst')), h('span', { class: 'small faint' }, `${t('worstBy', nameOf(record.metrics.find((one) => one.name === record.worstBy) ?? { name: record.worstBy }))}${offline ? '' : ` ${t('worstLoad')}`}`)),
    h('ol', { class: 'worst' }, record.worst.slice(0, MOST_SHOWN).map((one) => {
      const inside = [h('span', { class: 'number' }, digits(one.score, 1)), h('span', { class: 'texts' },
        h('span', { dir: 'auto' }, one.source), h('span', { dir: 'auto', class: 'put' }, one.output || '∅'), h('span', { dir: 'auto', class: 'faint' }, one.reference))];
      return h('li', {}, offline ? h('div', { class: 'case' }, inside) : h('button', { type: 'button', class: 'case', onclick: () => page.open(one.source, one.reference) }, inside));
    })),
    h('p', { class: 'small faint' }, t('worstOrder')));
}
