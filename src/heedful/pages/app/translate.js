// View "Translate": the sentence, its translation, alternatives of the whole and of each word, and lines between words.
import { offline, Refusal, training } from './api.js';
import { copyButton } from './copy.js';
import { h, segments } from './dom.js';
import { exportButtons } from './exporting.js';
import { heatmap, makeHeat } from './heatmap.js';
import { lines } from './lines.js';
import { linkButton, linkEditor } from './linking.js';
import { digits, EOS, percent } from './numbers.js';
import { passageOutput, passageText, segmentCard } from './passage.js';
import { mapOf, shadedWords } from './sentence.js';
import { t } from './text.js';

function instruction(data) {
  return data.model.replace(/\/$/, '');
}

export function choiceList(page, output) {
  const { state } = page;
  if (state.word < 0 || !output.words[state.word]) return null;
  const step = output.wordOf.indexOf(state.word);
  const choices = output.choices[step] ?? [];
  const current = output.ids[step];
  const goesOn = (choice) => choice.token !== current && Boolean(choice.output || (!offline && choice.token !== EOS));
  const canGoOn = choices.some(goesOn);
  const items = choices.map((choice) => {
    const isNow = choice.token === current;
    const piece = choice.token === EOS ? '⏎' : choice.piece.replaceAll('▁', ' ').trim() || '␣';
    const canGo = goesOn(choice);
    return h('li', {}, h('button', { type: 'button', disabled: !canGo, 'data-token': choice.token, onclick: () => page.goOn(output, step, choice) },
      h('span', { class: 'what', dir: 'auto' }, piece),
      h('span', { class: 'share' }, h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { style: { width: `${100 * Math.exp(choice.logProb ?? -99)}%` } })), ' ', h('span', { class: 'number' }, percent(Math.exp(choice.logProb ?? -99)))),
      h('span', { class: 'goes small faint', dir: 'auto' }, isNow ? t('chosenNow') : choice.output ? t('goesOn', choice.output.text) : '')));
  });
  return h('section', { class: 'card', 'aria-label': t('choicesOf', output.words[state.word]) },
    h('div', { class: 'head' }, h('h2', {}, t('choicesOf', output.words[state.word])), h('button', { type: 'button', class: 'plain', onclick: () => page.set({ word: -1 }) }, t('close'))),
    canGoOn ? h('p', { class: 'small faint' }, t('chooseOne')) : null,
    items.length ? h('ul', { class: 'choices' }, items) : h('p', { class: 'faint' }, t('liveOnly', instruction(page.data))));
}

const MOST_EXAMPLES = 3;

// Sentences for a reader who has none at hand: those whose outputs training noted.
export function examples(page) {
  const { model } = page.state, root = h('div', { id: 'examples' });
  if (!model) return null;
  training(model).then(({ samples, title = 'tryOne' }) => {
    const asked = samples.filter(({ source, question }) => source.trim() && (question ?? source).trim());
    if (!root.isConnected || !asked.length) return;
    root.append(h('p', { class: 'small faint' }, t(title)), h('ul', { class: 'examples' }, asked.slice(0, MOST_EXAMPLES).map((one) =>
      h('li', {}, h('button', { type: 'button', class: 'plain', dir: 'auto', onclick: () => page.open(one.source, one.reference, one.question) }, one.question ?? one.source)))));
  }).catch((error) => { if (!(error instanceof Refusal || error instanceof TypeError)) throw error; }); // without them the page is complete
  return root;
}

export function translateView(page) {
  const { state, data } = page;
  const output = page.output();
  const heat = makeHeat();
  const words = output ? shadedWords(output, { heat, chosen: state.word, pick: (word) => page.set({ word: word === state.word ? -1 : word }), reference: page.before() }) : null;
  const notes = output && page.isElsewhere() ? h('div', {}, h('button', { type: 'button', class: 'plain', onclick: () => page.backToBest() }, t('back'))) : output?.tokenLogProbs.length ? h('p', { class: 'small faint' }, t('shade')) : null;
  const card = h('div', { class: 'card flush panes' },
    h('div', {}, h('div', { class: 'label' }, h('span', {}, t('source')), page.modelChooser()), page.sourceBox()),
    h('div', { class: page.isBusy ? 'busy' : '', 'aria-live': 'polite', id: 'output' },
      h('div', { class: 'label' }, h('span', {}, t('output')), output && !data.passage ? h('span', { class: 'number' }, `${t('logProb')} ${digits(output.logProb)}`) : null,
        data?.passage || output ? copyButton(data.passage ? passageText(data.passage) : output.text, () => document.querySelector('#output .said')) : null),
      data?.passage ? passageOutput(page) : output ? words : page.placeholder('nothing'),
      data?.passage ? null : notes));
  const segment = data?.passage ? segmentCard(page, output ? [words, notes] : null) : null;
  if (!output) return h('div', { class: 'stack' }, card, segment, page.notice(), page.isLive && !state.text.trim() ? examples(page) : null);
  const reference = state.reference || data.reference;
  const parts = [card, segment, page.notice(), reference ? h('section', { class: 'card', id: 'reference' }, h('div', { class: 'label' }, h('span', {}, t('reference'))), h('p', { class: 'said', dir: 'auto' }, reference)) : null, choiceList(page, output)];
  if (output.weights && output.ids.length) {
    const map = mapOf(output.weights, 'mean', state.unit, output, data.source);
    const drawn = lines({ ...map, heat });
    const grid = heatmap({ ...map, heat, name: t('links') });
    parts.push(h('section', { class: 'card' },
      h('div', { class: 'head' }, h('h2', {}, t('links')), linkButton(page), segments(t('unit'), [['word', t('words')], ['piece', t('pieces')]], state.unit, (unit) => page.set({ unit })), exportButtons(grid.svg, 'attention', map)),
      page.isLinking ? linkEditor(page, output, output.weights) : [drawn.node, h('p', { class: 'small faint' }, t('linksNote'), ' ', t('caution'))], h('div', { style: { 'margin-top': '1rem' } }, grid.node, grid.status)));
  } else if (data.missing.attention) parts.push(h('p', { class: 'notice' }, t('missingAttention')));
  if (data.outputs.length > 1) {
    parts.push(h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, t('alternatives'))),
      h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('alternatives') }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('text')), h('th', { scope: 'col', class: 'right' }, t('score')), h('th', { scope: 'col', class: 'right' }, t('logProb')))),
        h('tbody', {}, data.outputs.map((one, index) => h('tr', { class: `pick${index === state.rank && !state.branch ? ' best' : ''}`, onclick: () => page.set({ rank: index, branch: null, word: -1 }) },
          h('td', { dir: 'auto' }, h('button', { type: 'button', class: 'word', onclick: () => page.set({ rank: index, branch: null, word: -1 }) }, one.text || '∅')), h('td', { class: 'right number' }, digits(one.score)), h('td', { class: 'right number' }, digits(one.logProb)))))))));
  }
  return h('div', { class: 'stack' }, parts);
}
