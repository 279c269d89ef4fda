// Parts that several views share: the words of an output shaded by probability, and maps between two texts.
import { h } from './dom.js';
import { EOS, matrix, merge, percent, wordProbabilities } from './numbers.js';
import { t } from './text.js';

export function shadedWords(output, { heat, chosen, pick, reference }) {
  const probabilities = wordProbabilities(output);
  const known = reference ? new Set(reference.words) : null;
  const nodes = output.words.map((text, word) => {
    const share = output.tokenLogProbs.length ? probabilities[word] : null;
    const isEnd = output.ids[output.wordOf.indexOf(word)] === EOS;
    const title = [isEnd ? t('sentenceEnd') : '', share === null ? '' : t('probability', percent(share))].filter(Boolean).join(', ') || null;
    const properties = {
      class: `word${isEnd ? ' end' : ''}${chosen === word ? ' chosen' : ''}${known && !known.has(text) ? ' changed' : ''}`, 'data-row': word, title,
      style: share === null ? {} : { 'background-color': `color-mix(in srgb, var(--accent) ${Math.round(4 + 30 * share * share)}%, transparent)` },
      onpointerenter: () => heat?.set({ row: word, column: -1 }), onpointerleave: () => heat?.set({ row: -1, column: -1 }),
    };
    return pick ? h('button', { ...properties, type: 'button', 'aria-label': title ? `${text}, ${title}` : text, onclick: () => pick(word) }, text) : h('span', properties, text);
  });
  heat?.subscribe(() => nodes.forEach((node, index) => node.classList.toggle('hot', index === heat.row)));
  return h('div', { class: 'said', dir: 'auto' }, nodes);
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
