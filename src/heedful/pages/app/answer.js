// View "Answer": facts and a question, the answer, and the facts or words that it comes from.
import { h, segments } from './dom.js';
import { digits, percent } from './numbers.js';
import { shaded, shares } from './shares.js';
import { t } from './text.js';
import { examples } from './translate.js';

export function answerView(page) {
  const { state } = page, data = page.data?.task === 'answering' ? page.data : null;
  const card = h('div', { class: 'card flush panes' },
    h('div', {}, h('div', { class: 'label' }, h('span', {}, t('facts')), page.modelChooser()), page.sourceBox(), h('label', { class: 'label', for: 'question' }, t('question')), page.questionBox()),
    h('div', { class: page.isBusy ? 'busy' : '', 'aria-live': 'polite', id: 'output' }, h('div', { class: 'label' }, h('span', {}, t('answerLabel'))),
      data ? [h('p', { class: 'said', dir: 'auto', id: 'answer' }, data.answer || t('noAnswer')), shares(data.probabilities)] : page.placeholder('answerHere')));
  const isEmpty = page.isLive && !state.text.trim() && !state.question.trim();
  return h('div', { class: 'stack' }, card, page.notice(), data?.span ? spanCard(page, data.span) : data?.weights.length && data.facts.length ? factsCard(data) : null, !data && isEmpty ? examples(page) : null);
}

function factsCard({ facts, steps, weights }) {
  const cell = (share) => h('td', {}, h('span', { class: 'share' }, h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { style: { width: `${100 * share}%` } })), ' ', h('span', { class: 'number' }, percent(share))));
  const best = weights.map((row) => row.indexOf(Math.max(...row)));
  return h('section', { class: 'card', id: 'facts' }, h('div', { class: 'head' }, h('h2', {}, t('factsThatMatter'))), h('p', { class: 'small faint' }, t('factsNote')),
    h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t('factsThatMatter') }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('fact')), steps.map((_, index) => h('th', { scope: 'col' }, t('stepOf', index + 1))))),
      h('tbody', {}, facts.map((fact, index) => h('tr', { class: best.includes(index) ? 'best' : '' }, h('td', { dir: 'auto', class: 'fact' }, fact), weights.map((row) => cell(row[index]))))))));
}

function spanCard(page, span) {
  const colours = [['ends', t('byEnds')], ['attention', t('byAttention')]], chosen = page.state.colour === 'attention' ? 'attention' : 'ends';
  const values = span.tokens.map((_, index) => (chosen === 'attention' ? span.attention[index] : (span.start_weights[index] + span.end_weights[index]) / 2)), largest = Math.max(...values);
  const status = h('p', { class: 'status', 'aria-live': 'polite' }, t('pointAtWord')), characters = Array.from(span.passage);
  const nodes = [];
  let last = 0;
  span.places.forEach(([start, end], index) => {
    nodes.push(characters.slice(last, start).join(''));
    const isAnswer = start < span.end && end > span.start;
    nodes.push(shaded(characters.slice(start, end).join(''), values[index], largest, { class: `weighed${isAnswer ? ' answer' : ''}`, onpointerenter: () => status.replaceChildren(h('b', {}, span.tokens[index].trim()), ' · ', t('weightOf', digits(values[index], 3))) }));
    last = end;
  });
  return h('section', { class: 'card', id: 'facts' }, h('div', { class: 'head' }, h('h2', {}, t('answerInText')), segments(t('colourBy'), colours, chosen, (colour) => page.set({ colour }))),
    h('p', { class: 'small faint' }, t(chosen === 'attention' ? 'attentionNote' : 'endsNote')), h('p', { class: 'weighed-text', dir: 'auto' }, nodes, characters.slice(last).join('')), status);
}
