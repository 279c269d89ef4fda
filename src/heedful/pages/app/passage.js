// Passage: a text of several segments or with kept spans. Each segment of the translation is a button that opens its view.
import { h, pressable } from './dom.js';
import { t } from './text.js';

// Text with its kept spans shaded; tags look like tags. Places count characters, which are not the units of a string.
export function keptText(text, spans) {
  const characters = Array.from(text), part = (start, end) => characters.slice(start, end).join('');
  const nodes = [];
  let last = 0;
  for (const [start, end, kind] of spans) {
    nodes.push(part(last, start), h('span', { class: `kept${kind === 'tag' ? ' tag' : ''}`, title: t('keptSpan') }, part(start, end)));
    last = end;
  }
  return [...nodes, part(last)];
}

export const chosenPart = ({ data, state }) => (data?.passage ? Math.min(state.segment, data.passage.parts.length - 1) : -1);

export const passageText = ({ parts, outputLayout }) => outputLayout[0] + parts.map((part, index) => part.output + outputLayout[index + 1]).join('');

export function passageOutput(page) {
  const { parts, outputLayout } = page.data.passage;
  const chosen = chosenPart(page);
  return h('div', { class: 'said passage', dir: 'auto', id: 'passage' }, outputLayout[0], parts.map((part, index) => [
    // A span, for the lines of a paragraph break within it, which those of a button do not.
    h('span', { ...pressable(() => page.openSegment(index)), class: `part${part.fault ? ' faulty' : ''}`, 'aria-pressed': String(index === chosen), title: part.fault ? t('faulty') : null }, keptText(part.output, part.outputKept)),
    outputLayout[index + 1]]));
}

// Segment that the rest of the view is of: its source, and what the model reads in its place.
export function segmentCard(page, ...children) {
  const { parts } = page.data.passage;
  const chosen = chosenPart(page), part = parts[chosen];
  const move = (label, to) => h('button', { type: 'button', class: 'plain', disabled: to < 0 || to >= parts.length, 'aria-label': t(label), onclick: () => page.openSegment(to) }, label === 'previous' ? '‹' : '›');
  return h('section', { class: 'card', id: 'segment' },
    h('div', { class: 'head' }, h('h2', {}, t('segmentOf', chosen + 1, parts.length)), parts.length > 1 ? [move('previous', chosen - 1), move('next', chosen + 1)] : null),
    h('p', { class: 'said', dir: 'auto' }, keptText(part.source, part.kept)),
    part.kept.length ? h('p', { class: 'small faint' }, t('shadedNote')) : null,
    part.fault ? h('p', { class: 'notice' }, t('faulty')) : null,
    !part.reading ? h('p', { class: 'small faint' }, t('staysWhole')) : part.reading !== part.source ? h('p', { class: 'small faint' }, t('readAs'), ' ', h('span', { dir: 'auto', id: 'reading' }, part.reading)) : null,
    children);
}
