// View "Classify": a text, its label, and its words coloured by attention, or by what leaving each of them out changes.
import { h, segments } from './dom.js';
import { digits } from './numbers.js';
import { shaded, shares } from './shares.js';
import { t } from './text.js';
import { examples } from './translate.js';

export function classifyView(page) {
  const { state } = page, data = page.data?.task === 'classification' ? page.data : null;
  const card = h('div', { class: 'card flush panes' },
    h('div', {}, h('div', { class: 'label' }, h('span', {}, t('textToLabel')), page.modelChooser()), page.sourceBox()),
    h('div', { class: page.isBusy ? 'busy' : '', 'aria-live': 'polite', id: 'output' }, h('div', { class: 'label' }, h('span', {}, t(data?.labels.length > 1 ? 'labels' : 'label'))),
      data ? [h('p', { class: 'said', dir: 'auto', id: 'label' }, data.label || '∅'), data.labelKind === 'number' ? null : shares(data.probabilities)]
        : page.placeholder('labelHere')));
  if (!data) return h('div', { class: 'stack' }, card, page.notice(), page.isLive && !state.text.trim() ? examples(page) : null);
  return h('div', { class: 'stack' }, card, page.notice(), wordsCard(page, data));
}

function wordsCard(page, data) {
  const colours = [...(data.hasAttention ? [['attention', t('byAttention')]] : []), ['effect', t('byEffect')]];
  const chosen = colours.some(([key]) => key === page.state.colour) ? page.state.colour : colours[0][0];
  const valueOf = ([, weight, effect]) => (chosen === 'attention' ? weight : effect ?? 0);
  const sums = data.sentences.map((words) => words.reduce((sum, word) => sum + Math.abs(valueOf(word)), 0)), most = Math.max(...sums) || 1;
  const largest = Math.max(...data.sentences.flat().filter(([text]) => text.trim()).map((word) => Math.abs(valueOf(word))));
  const status = h('p', { class: 'status', 'aria-live': 'polite' }, t('pointAtWord'));
  const say = ([text, weight, effect]) => status.replaceChildren(h('b', {}, text.trim()), ...(data.hasAttention ? [' · ', t('weightOf', digits(weight, 3))] : []), ...(effect === null ? [] : [' · ', t(data.labelKind === 'number' ? 'effectOnNumber' : 'effectOf', digits(effect, 3))]));
  const lines = data.sentences.map((words, index) => h('div', { class: 'weighed-line' },
    data.sentences.length > 1 ? h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { style: { width: `${100 * sums[index] / most}%` } })) : null,
    h('p', { dir: 'auto' }, words.map((word) => shaded(word[0], valueOf(word), largest, { onpointerenter: () => say(word) })))));
  const note = data.correlation === null ? null : h('p', { class: 'small faint' }, t(data.isFaithful ? 'faithful' : 'unfaithful', digits(data.correlation)));
  return h('section', { class: 'card', id: 'words' },
    h('div', { class: 'head' }, h('h2', {}, t('wordsThatMatter')), colours.length > 1 ? segments(t('colourBy'), colours, chosen, (colour) => page.set({ colour })) : null),
    h('p', { class: 'small faint' }, t(chosen === 'attention' ? 'attentionNote' : 'effectNote')), h('div', { class: 'weighed-text' }, lines), status, note);
}
