// Sentences and lines of a text, which are translated one by one. Sentences are those that the browser knows, put together
// again behind the abbreviations of heedful.text.sentences, which come as data.

/**
 * @typedef {object} SentenceFacts What the model usually saw in training, and abbreviations.
 * @property {number} usual number of sentences up to which a line stays whole; 0 = every line does
 * @property {string[]} abbreviations words whose final period ends no sentence, in lower case
 * @property {string} streets end of abbreviations of streets
 *
 * @typedef {object} Segments
 * @property {string[]} sources none of them blank
 * @property {string[]} layout characters before the first, between two, and after the last
 */

// Single letters joined by periods, and ordinals of two digits.
const INITIALS = /^(?:\p{L}(?:\.\p{L})*|\p{Nd}{1,2})$/u;
// First character of the scripts that are written without spaces, and the marks after which no space follows there.
const WIDE = '\u2e80', WIDE_ENDS = ['。', '！', '？', '」', '』'];

/**
 * Spans of the sentences of a line; together they cover it.
 * @param {string} text @param {SentenceFacts} facts @param {string} language code; empty = unknown
 * @returns {[number, number][]}
 */
export function sentenceSpans(text, facts, language) {
  if (typeof Intl.Segmenter === 'undefined') return [[0, text.length]];
  /** @type {[number, number][]} */
  const spans = [];
  let start = 0;
  for (const { index, segment } of segmenterOf(language).segment(text)) {
    const end = index + segment.length;
    if (end < text.length && !endsSentence(text.slice(start, end), text.slice(end), facts)) continue;
    spans.push([start, end]);
    start = end;
  }
  return spans;
}

function segmenterOf(/** @type {string} */ language) {
  const known = /^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(language) ? Intl.Segmenter.supportedLocalesOf([language]) : [];
  return new Intl.Segmenter(known, { granularity: 'sentence' });
}

function endsSentence(/** @type {string} */ sentence, /** @type {string} */ following, /** @type {SentenceFacts} */ facts) {
  if (/^[\s"'“‘([]*\p{Lowercase}/u.test(following)) return false;
  const period = /(\S*)\.\s*$/.exec(sentence);
  if (!period) return true;
  const plain = period[1].replace(/^["'“‘([«„]+/, ''), word = plain.toLowerCase();
  return !facts.abbreviations.includes(word) && !word.endsWith(facts.streets) && (plain === 'I' || !INITIALS.test(word));
}

/**
 * Split a text into lines, and lines with more sentences than the model usually saw into sentences.
 * @param {string} text @param {SentenceFacts} facts @param {string} language of the text
 * @returns {Segments}
 */
export function split(text, facts, language) {
  /** @type {Segments} */
  const segments = { sources: [], layout: [] };
  let last = 0;
  for (const line of text.matchAll(/[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+/g)) {
    const sentences = facts.usual ? sentenceSpans(line[0], facts, language).filter(([start, end]) => line[0].slice(start, end).trim()) : [];
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
