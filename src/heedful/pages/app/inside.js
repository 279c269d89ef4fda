// View "Look inside": attention of every layer and head, with changes to it.
import { h, segments } from './dom.js';
import { exportButtons } from './exporting.js';
import { heatmap, makeHeat, paint } from './heatmap.js';
import { linkButton, linkEditor } from './linking.js';
import { matrix } from './numbers.js';
import { mapOf, marksOf, preceded, shadedWords } from './sentence.js';
import { t } from './text.js';

function headsOf(one) {
  return [...(one.shape[0] > 1 ? ['mean'] : []), ...Array(one.shape[0]).keys()].map(String);
}

function headName(head) {
  return head === 'mean' ? t('mean') : t('head', Number(head) + 1);
}

// Rollout and ALTI have no single heads, and gradients no layers; what a model reports while it translates is a mean of both.
function mapName(measure, role, layer, head) {
  const parts = [t(role)];
  if (role === 'alignment') return [...parts, t('meanOfLayers')].join(' · ');
  if (measure !== 'gradients') parts.push(t('layer', layer.layer + 1));
  if (!['rollout', 'alti', 'gradients'].includes(measure)) parts.push(headName(head));
  return parts.join(' · ');
}

export function insideView(page) {
  const { state, data } = page;
  const output = data.outputs[0];
  if (!output) return h('p', { class: 'notice' }, t('empty', t('translate')));
  const measure = shownMeasure(page), measured = measure === data.measure ? data.maps : data.otherMaps[measure];
  const maps = measured.length ? measured : output.weights ? [{ role: 'alignment', layer: 0, ...output.weights }] : [];
  if (!maps.length) return h('p', { class: 'notice' }, t('missingAttention'));
  const roles = [...new Set(maps.map((one) => one.role))];
  const role = roles.includes(state.role) ? state.role : roles[0];
  const layers = maps.filter((one) => one.role === role);
  const layer = layers.find((one) => one.layer === state.layer) ?? layers[layers.length - 1];
  const heads = headsOf(layer);
  const head = heads.includes(state.head) ? state.head : heads[0];
  const rowText = role === 'encoder' ? data.source : output;
  const columnText = role === 'decoder' ? preceded(output, '▷') : layer.hasRoot ? preceded(data.source, t('root')) : data.source;
  const heat = makeHeat();
  const map = mapOf(layer, head, state.unit, rowText, columnText), marks = marksOf(layer, head, state.unit, rowText, columnText);
  const grid = heatmap({ ...map, marks, heat, name: t('attention'), onpick: ({ row, column }) => { if (row >= 0 && column >= 0) page.set({ cell: [row, column], role, layer: layer.layer, head }); } });
  const thumbs = h('div', { class: 'thumbs' }, [...layers].reverse().map((one) => h('div', { class: 'layer', role: 'group', 'aria-label': t('layer', one.layer + 1) }, h('span', {}, t('layer', one.layer + 1)),
    headsOf(one).map((each) => {
      const canvas = h('canvas', { 'aria-hidden': 'true' });
      paint(canvas, matrix(one, each));
      return h('button', { type: 'button', 'aria-pressed': String(one === layer && each === head), title: headName(each), 'aria-label': `${t('layer', one.layer + 1)}, ${headName(each)}`, onclick: () => page.set({ role, layer: one.layer, head: each, cell: null }) }, canvas, h('span', { class: 'tag', 'aria-hidden': 'true' }, each === 'mean' ? t('mean') : String(Number(each) + 1)));
    }))));
  const parts = [
    h('div', { class: 'card' }, h('div', { class: 'head' }, segments(t('attention'), roles.map((one) => [one, t(one)]), role, (one) => page.set({ role: one, layer: -1, head: 'mean', cell: null })), h('span', { class: 'grow' }),
      segments(t('unit'), [['word', t('words')], ['piece', t('pieces')]], state.unit, (unit) => page.set({ unit, cell: null }))),
      shadedWords(output, { heat: role === 'encoder' || state.unit === 'piece' ? null : heat }),
      h('p', { class: 'small faint' }, t(layer.hasRoot ? 'about-heads' : `about-${role}`, t('root')))),
    page.notice(),
    measureCard(page, measure),
    data.missing.heads ? h('p', { class: 'notice' }, t('missingHeads', data.missing.heads)) : null,
    data.missing.layers ? h('p', { class: 'notice' }, t('missingLayers', data.missing.layers)) : null,
    data.missing.packed ? h('p', { class: 'notice' }, t('missingPacked'), ' ', h('code', {}, data.missing.packed)) : null,
    h('div', { class: role === 'alignment' ? '' : 'split' },
      role === 'alignment' ? null : h('section', { class: 'card', 'aria-label': t('heads') }, h('div', { class: 'head' }, h('h2', {}, t('heads'))), thumbs),
      h('section', { class: 'card', id: 'map' }, h('div', { class: 'head' }, h('h2', {}, mapName(measure, role, layer, head)), exportButtons(grid.svg, role === 'alignment' ? 'attention' : `attention-${role}-${layer.layer + 1}-${head}`, map)),
        grid.node, grid.status, marks.length ? h('p', { class: 'small faint' }, t('about-tree')) : null, state.unit === 'word' ? h('p', { class: 'small faint' }, t('rule')) : null)),
    rowText === output && columnText === data.source ? linksCard(page, output, layer, head) : null,
    overrideCard(page, role, layer, head, map),
  ];
  return h('div', { class: 'stack' }, parts);
}

// A file without a server holds the maps of all measures; a server is asked for one.
function shownMeasure({ state, data, isLive }) {
  return !isLive && state.measure in (data.otherMaps ?? {}) ? state.measure : data.measure;
}

function measureCard(page, measure) {
  const { data, state } = page;
  const names = (data.measures ?? []).filter((one) => page.isLive || one === data.measure || one in (data.otherMaps ?? {}));
  if (!names.length) return null;
  return h('section', { class: 'card', id: 'measures', 'aria-label': t('measure') }, h('div', { class: 'head' }, h('h2', {}, t('measure')), h('span', { class: 'grow' }),
    segments(t('measure'), names.map((one) => [one, t(`measure-${one}`)]), measure, (one) => { page.set({ measure: one, role: 'cross', layer: -1, head: 'mean', cell: null }); page.load(); })),
    h('p', { class: 'small faint' }, t(`about-${measure}`)),
    data.missing.measure && state.measure !== measure ? h('p', { class: 'notice' }, t('missingMeasure', data.missing.measure)) : null);
}

// The editor of links that "Translate" has, which begins with those of the head that is shown.
function linksCard(page, output, layer, head) {
  return h('section', { class: 'card', id: 'links' }, h('div', { class: 'head' }, h('h2', {}, t('links')), h('span', { class: 'grow' }), linkButton(page)),
    page.isLinking ? linkEditor(page, output, layer, head) : h('p', { class: 'small faint' }, t('linksFromHead')));
}

function overrideCard(page, role, layer, head, map) {
  const { state, data } = page;
  // Layers and heads of other measures are not those of the attention that is changed.
  if (!page.isLive || data.isFixed || (data.measure ?? 'attention') !== 'attention') return null;
  if (data.missing.override) return h('p', { class: 'notice' }, t('noOverride', data.missing.override));
  if (role === 'alignment') return null;
  const place = { role, layer: layer.layer, head: head === 'mean' ? -1 : Number(head) };
  const add = (change) => page.change([...state.changes.filter((one) => one.role !== place.role || one.layer !== place.layer || one.head !== place.head || one.kind !== change.kind), { ...place, ...change }]);
  const buttons = [
    h('button', { type: 'button', class: 'plain', 'data-change': 'off', onclick: () => add({ kind: 'off' }) }, t('off')),
    h('button', { type: 'button', class: 'plain', 'data-change': 'uniform', onclick: () => add({ kind: 'uniform' }) }, t('uniform')),
  ];
  const output = data.outputs[0];
  if (role === 'cross' && state.cell && state.cell[0] < map.weights.rows && state.cell[1] < map.weights.columns) {
    const [row, column] = state.cell;
    const steps = state.unit === 'piece' ? [row] : output.wordOf.flatMap((word, index) => (word === row ? [index] : []));
    const positions = state.unit === 'piece' ? [column] : data.source.wordOf.flatMap((word, index) => (word === column ? [index] : []));
    buttons.push(h('button', { type: 'button', class: 'plain', 'data-change': 'set', onclick: () => add({ kind: 'set', steps, positions }) }, t('allOn', map.rows[row], map.columns[column])));
  }
  return h('section', { class: 'card', id: 'override' }, h('div', { class: 'head' }, h('h2', {}, t('override')), buttons,
    state.changes.length ? h('button', { type: 'button', class: 'plain', 'data-change': 'reset', onclick: () => page.change([]) }, t('resetAll')) : null),
    h('p', { class: 'small faint' }, t('overrideNote')),
    state.changes.length && data.unchanged ? h('div', { class: 'even', style: { 'margin-top': '.8rem' } },
      h('div', {}, h('h3', {}, t('before')), h('p', { class: 'said', dir: 'auto' }, data.unchanged)),
      h('div', {}, h('h3', {}, t('changedTo')), h('p', { class: 'said', dir: 'auto', id: 'changed' }, output.text), data.unchanged === output.text ? h('p', { class: 'small faint' }, t('sameOutput')) : null)) : null);
}
