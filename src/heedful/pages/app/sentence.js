// Parts that several views share: the words of an output shaded by probability, and maps between two texts.
import { h, pressable } from './dom.js';
import { EOS, matrix, merge, percent, wordProbabilities } from './numbers.js';
import { t } from './text.js';

// Labels that stand for no word of a text: its end, and a lone space. The style sheet draws them, so that no selection has them.
export const SIGNS = ['⏎', '␣'];

// What stands in a text before each of its words, and behind the last one: with it, a selection of the words is the text.
export function gapsOf(text, words) {
  let place = 0;
  const gaps = words.map((word, index) => {
    if (SIGNS.includes(word)) return '';
    const start = text.indexOf(word, place), gap = text.slice(place, Math.max(start, place));
    if (start >= 0) place = start + word.length;
    return start >= 0 && !gap.trim() ? gap : index ? ' ' : ''; // an unknown word has another form in the text, or none
  });
  return [...gaps, text.slice(place).trim() ? '' : text.slice(place)];
}

export function shadedWords(output, { heat, chosen, pick, reference }) {
  const probabilities = wordProbabilities(output);
  const known = reference ? new Set(reference.words) : null;
  const nodes = output.words.map((text, word) => {
    const share = output.tokenLogProbs.length ? probabilities[word] : null;
    const isEnd = output.ids[output.wordOf.indexOf(word)] === EOS, isSign = SIGNS.includes(text);
    const title = [isEnd ? t('sentenceEnd') : '', share === null ? '' : t('probability', percent(share))].filter(Boolean).join(', ') || null;
    return h('span', {
      class: `word${isEnd ? ' end' : ''}${chosen === word ? ' chosen' : ''}${known && !known.has(text) ? ' changed' : ''}`, 'data-row': word, 'data-sign': isSign && text, title,
      style: share === null ? {} : { 'background-color': `color-mix(in srgb, var(--accent) ${Math.round(4 + 30 * share * share)}%, transparent)` },
      onpointerenter: () => heat?.set({ row: word, column: -1 }), onpointerleave: () => heat?.set({ row: -1, column: -1 }),
      ...(pick ? { ...pressable(() => pick(word)), 'aria-label': title ? `${text}, ${title}` : text } : {}),
    }, isSign ? null : text);
  });
  heat?.subscribe(() => nodes.forEach((node, index) => node.classList.toggle('hot', index === heat.row)));
  const gaps = gapsOf(output.text, output.words);
  return h('div', { class: 'said words', dir: 'auto' }, nodes.map((node, index) => [gaps[index], node]), gaps[nodes.length]);
}

// Text with a word of its own before it, such as the root of a tree.
export function preceded(text, label) {
  return { ...text, words: [label, ...text.words], pieces: [label, ...text.pieces], wordOf: [0, ...text.wordOf.map((word) => word + 1)] };
}

// Cells of the arcs of a head's tree, [row, column]; those within a word are not shown between words.
export function marksOf(packed, head, unit, rowText, columnText) {
  const arcs = (packed.tree?.[Number(head)] ?? []).map((column, row) => [row, column]);
  if (unit === 'piece') return arcs;
  return arcs.map(([row, column]) => [rowText.wordOf[row], columnText.wordOf[column]]).filter(([row, column]) => column !== row + 1);
}

// Weights of a map in the unit of the reader, with labels of rows and columns.
export function mapOf(packed, head, unit, rowText, columnText) {
  const weights = matrix(packed, head);
  if (unit === 'piece') return { weights, rows: rowText.pieces.slice(0, weights.rows), columns: columnText.pieces.slice(0, weights.columns) };
  return { weights: merge(weights, rowText.wordOf, columnText.wordOf), rows: rowText.words, columns: columnText.words };
}
