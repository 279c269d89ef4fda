// View "Compare": two models on one sentence, their maps on the same scale.
import { complaint, KeyNeeded, Refusal, view } from './api.js';
import { h } from './dom.js';
import { heatmap, makeHeat } from './heatmap.js';
import { digits } from './numbers.js';
import { mapOf, shadedWords } from './sentence.js';
import { direction, t } from './text.js';

export function compareView(page) {
  const { state, models } = page;
  if (!models.length) return h('p', { class: 'faint' }, t('working'));
  if (models.length < 2) return h('p', { class: 'notice' }, t('oneModel'));
  const first = models.find((one) => one.name === state.model) ?? models[0];
  const others = models.filter((one) => one.name !== first.name);
  const second = others.find((one) => one.name === state.second) ?? others.find((one) => one.languages.join() === first.languages.join()) ?? others[0];
  const columns = h('div', { class: 'even' });
  const chooser = h('select', { id: 'second', 'aria-label': t('second'), onchange: (event) => page.set({ second: event.target.value }) }, others.map((one) => h('option', { value: one.name, selected: one === second }, one.name)));
  fill(page, columns, first, second, chooser);
  return h('div', { class: 'stack' }, h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('source')), h('span', { class: 'small faint' }, t('compareNote'))), page.sourceBox()), columns);
}

async function fill(page, columns, first, second, chooser) {
  const { text } = page.state;
  if (!text.trim()) { columns.append(side(first, h('span', { class: 'small faint' }, first.name), null), side(second, chooser, null)); return; }
  columns.append(side(first, h('span', { class: 'small faint' }, first.name), null, null, t('working')), side(second, chooser, null, null, t('working')));
  try {
    const [one, other] = await Promise.all([first, second].map(({ name }) => view({ text, model: name })));
    if (!columns.isConnected || page.state.text !== text) return;
    columns.replaceChildren(side(first, h('span', { class: 'small faint' }, first.name), one, other), side(second, chooser, other, one));
    if (one.outputs[0]?.text === other.outputs[0]?.text) columns.after(h('p', { class: 'notice' }, t('sameModels')));
  } catch (error) {
    if (error instanceof KeyNeeded) { page.askKey(); return; }
    if (!(error instanceof Refusal || error instanceof TypeError)) throw error;
    columns.replaceChildren(h('p', { class: 'notice', role: 'alert' }, complaint(error)));
  }
}

function side(model, name, data, other, wait = '') {
  const output = data?.outputs[0];
  const parts = [h('div', { class: 'head' }, h('h2', {}, direction(model.languages) || model.name), name), wait ? h('p', { class: 'faint' }, wait) : null];
  if (output) {
    const heat = makeHeat();
    parts.push(shadedWords(output, { heat, reference: other.outputs[0] }), h('p', { class: 'small faint' }, `${t('score')} ${digits(output.score)} · ${t('logProb')} ${digits(output.logProb)} · ${t('changes')}`));
    if (output.weights) {
      const map = heatmap({ ...mapOf(output.weights, 'mean', 'word', output, data.source), heat, name: t('attention'), isHalf: true });
      parts.push(map.node, map.status);
    }
  }
  return h('section', { class: 'card' }, parts);
}
