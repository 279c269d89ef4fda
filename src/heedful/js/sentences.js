// Sentences and lines of a text, which are translated one by one; the twin of heedful.text.sentences, whose tables it gets as data.

/**
 * @typedef {object} SentenceFacts Tables of heedful.text.sentences, and what the model usually saw in training.
 * @property {number} usual number of sentences up to which a line stays whole; 0 = every line does
 * @property {string[]} abbreviations words whose final period ends no sentence, in lower case
 * @property {string} streets end of abbreviations of streets
 *
 * @typedef {object} Segments
 * @property {string[]} sources none of them blank
 * @property {string[]} layout characters before the first, between two, and after the last
 */

// Chinese marks, after which no space follows; half-width marks in Chinese; others before a space; line breaks.
const ENDS = /(?:[。！？]+…*|…{2,})[。！？!?…]*[”’」』）)"']*|(?<![.!?…])[!?]+[。！？!?…]*[”’」』）)"']*(?=[\u3400-\u9fff])|(?<![.!?…])(?<mark>[.!?…؟۔।॥]+)(?:[ \u00a0\u202f]?»)?[”’"')\]»“]*(?=\s)|\n+/gu;
const INITIALS = /^(?:\p{L}(?:\.\p{L})*|\p{Nd}{1,2})$/u;
const MOST_OF_WORD = 40;
// First character of the scripts that are written without spaces, and the marks after which no space follows there.
const WIDE = '\u2e80', WIDE_ENDS = ['。', '！', '？', '」', '』'];

/**
 * Spans of the sentences of a line; together they cover it.
 * @param {string} text @param {SentenceFacts} facts
 * @returns {[number, number][]}
 */
export function sentenceSpans(text, facts) {
  /** @type {[number, number][]} */
  const spans = [];
  let start = 0;
  for (const match of text.matchAll(ENDS)) {
    const end = match.index + match[0].length;
    if (match.groups?.mark !== undefined && !endsSentence(text, match.groups.mark, match.index, end, start, facts)) continue;
    spans.push([start, end]);
    start = end;
  }
  return [...spans, [start, text.length]];
}

function endsSentence(/** @type {string} */ text, /** @type {string} */ mark, /** @type {number} */ place, /** @type {number} */ end, /** @type {number} */ start, /** @type {SentenceFacts} */ facts) {
  if (/^\p{Lowercase}/u.test(text.slice(end, end + MOST_OF_WORD).replace(/^[ \t"'“‘([]+/, ''))) return false;
  if (mark !== '.') return true;
  const words = text.slice(Math.max(start, place - MOST_OF_WORD), place).split(' ');
  const word = words[words.length - 1].replace(/^["'“‘([«„]+/, '').toLowerCase();
  return !facts.abbreviations.includes(word) && !word.endsWith(facts.streets) && (word === 'i' || !INITIALS.test(word));
}

/**
 * Split a text into lines, and lines with more sentences than the model usually saw into sentences.
 * @param {string} text @param {SentenceFacts} facts
 * @returns {Segments}
 */
export function split(text, facts) {
  /** @type {Segments} */
  const segments = { sources: [], layout: [] };
  let last = 0;
  for (const line of text.matchAll(/[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+/g)) {
    const sentences = facts.usual ? sentenceSpans(line[0], facts).filter(([start, end]) => line[0].slice(start, end).trim()) : [];
    for (const [start, end] of sentences.length > facts.usual ? sentences : [[0, line[0].length]]) {
      const part = line[0].slice(start, end), source = part.trim();
      if (!source) continue;
      const place = line.index + start + part.indexOf(source);
      segments.layout.push(text.slice(last, place));
      segments.sources.push(source);
      last = place + source.length;
    }
  }
  segments.layout.push(text.slice(last));
  return segments;
}

/**
 * Layout of a translation: sentences without a space between them get one in scripts that use spaces, and the other way round.
 * @param {Segments} segments @param {string[]} outputs
 * @returns {string[]}
 */
export function layoutOf({ sources, layout }, outputs) {
  return layout.map((between, index) => {
    if (!index || index === outputs.length) return between;
    const before = outputs[index - 1], isChanged = before !== sources[index - 1] || outputs[index] !== sources[index];
    if (!isChanged || !before) return between;
    if (!between && outputs[index] && before[before.length - 1] < WIDE) return ' ';
    return between === ' ' && WIDE_ENDS.includes(before[before.length - 1]) ? '' : between;
  });
}
