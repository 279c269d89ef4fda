// Segments of a text: the sentences or lines that a model translates, and the layout between them; the twin of
// heedful.text.segments.
import { Sentences } from './documents.js';
import { withoutEdges } from './edges.js';
import { capital, caseOf } from './forms.js';
import { KeptRules, lift } from './kept.js';
import { Scripts } from './scripts.js';
import { isBlank, SPACE, splitWords, strip, stripEnd, stripStart } from './whitespace.js';

/**
 * @typedef {object} SegmentFacts What the model reads at once.
 * @property {boolean} is_whole whether it reads a text as a whole
 * @property {boolean} reads_sentences whether it reads sentences; if not, lines
 * @property {number} usual number of sentences up to which a line stays whole
 * @property {number | null} [usual_characters] up to which a sentence stays whole
 * @property {string[]} [openings] words whose capital tells that a sentence begins
 * @property {[string, string] | null} [final_marks] marks that sources and targets end in, empty where many have none; null of models of
 *   earlier versions
 * @property {number} alignment_shift number of steps between the one that predicts a token and the one whose attention aligns it
 * @property {import('./documents.js').SentenceRules} [rules] of models that read sentences, as are all that follow
 * @property {import('./kept.js').KeptFacts} [kept]
 * @property {import('./scripts.js').ScriptFacts} [scripts]
 *
 * @typedef {object} Segment
 * @property {string} source characters of the text, line breaks of hard-wrapped text included
 * @property {string} reading the same on one line, as a model reads it
 * @property {import('./kept.js').Kept[]} kept spans of the reading that stay as they are
 * @property {boolean} [isInner] whether it is a part of a longer sentence that does not begin it
 *
 * @typedef {object} Segments Sources and layout together are the text.
 * @property {Segment[]} segments
 * @property {string[]} layout characters before the first, between two, and after the last
 */

const BREAK = '(?:\\r\\n|[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029])', BREAKS = new RegExp(BREAK, 'g');
/** Marks at the beginning of a quoted line, as in e-mails. */
const QUOTE = `(?:(?:[ \\t]*>)+(?=[${SPACE}]|$))?`, QUOTES = new RegExp(`^${QUOTE}`), QUOTED_BREAKS = new RegExp(`${BREAK}${QUOTE}`, 'g');
const SOFT_BREAK = new RegExp(`(?:(?<![ \\t])[ \\t]+)?${BREAK}${QUOTE}[ \\t]*`, 'g');
const MARKER = new RegExp(`^[${SPACE}]*(?:[-*+•‣▪◦·–—] +|\\(?(?:\\p{Nd}{1,3}|[a-z])\\) +|(?<number>\\p{Nd}{1,3})\\. +)(?=[^${SPACE}])`, 'u');
const CLAUSE_ENDS = new RegExp(`[;:,)\\]–—][${SPACE}]+|[、，；：）]+|[${SPACE}][–—][${SPACE}]`, 'g'), SPACES = new RegExp(`[${SPACE}]+`, 'g');
const END_MARKS = ['.', '!', '?', '…', ':', ';', '。', '！', '？', '：', '؟', '।', '|'];
/** Word at the beginning, and word behind a mark without a space between them. */
const FIRST_WORD = /^[\p{L}\p{N}_]+/u, GLUED = /(?:(?<=[\p{L}\p{Nl}\p{No}]{2}[.!?])|(?<=[\p{L}\p{Nl}\p{No}][)\]"”»][.!?]))[\p{L}\p{Nl}\p{No}]+/gu;
const CONJUNCTIONS = 'und|oder|aber|and|or|but|et|ou|mais|pero|или|но', JOINT = `(?:${CONJUNCTIONS}|y|o|и|а|${CONJUNCTIONS.toUpperCase()})[${SPACE}]+(?=[\\p{L}\\p{N}_])`;
/** Word that joins clauses, in lower or upper case. */
export const CONJUNCTION = new RegExp(`^${JOINT}`, 'u');
const BEFORE_CONJUNCTIONS = new RegExp(`[${SPACE}]+(?=${JOINT})`, 'gu');
/** Word with a word and a space before it. */
const NEXT_WORD = /(?<=[\p{L}\p{N}_] )[\p{L}\p{N}_]+/gu;
/** Kinds of kept spans that tell where sentences end. */
const READ = ['number', 'date', 'identifier', 'emoji', 'script'];
/** Width from which on lines that are full are taken for hard-wrapped text, and lines of like width whose sentences go on in lower case. */
const SHORTEST_WRAPPED = 40, LEAST_WRAPPED = 20;
/** Smallest width of such a line in that of the widest one. */
const LIKE = 0.7;
/** Article, preposition or conjunction at the end of a line, behind which no sentence ends, and character between the cells of a row. */
const UNENDED = new RegExp(`(?:^|[${SPACE}])(?:der|die|das|dem|den|des|eine?[mnrs]?|im|am|zum|zur|vom|beim|und|oder|an|the|of|and|or|le|la|les|une?|des?|aux?|et|ou|el|los|las|una|del|al)$`);
const MID_SENTENCE = /[\p{L}\p{N},-]$/u, CELL_END = new RegExp(`\\t|[${SPACE}]\\|[${SPACE}]`);
const COLONS = /[:：]$/;
/** Characters around the middle of a long segment in which the end of a clause is looked for. */
const MOST_AROUND = 500;
const LONGEST_PIECE = 16;
/** Largest size of a sentence in that of the usual ones; of longer ones, models leave most words out. */
const MOST_UNUSUAL = 3;
/** Largest size of a clause of a longer sentence that is not cut further, in that of the usual sentences. */
const MOST_SHORT = 0.2;
// First character of the scripts that are written without spaces, and the marks after which no space follows there.
const WIDE = '\u2e80', WIDE_ENDS = ['。', '！', '？', '」', '』'];

const sizeOf = (/** @type {string} */ text) => Array.from(text).length;

export class Segmenter {
  /** @param {SegmentFacts} facts @param {import('./tokenizers.js').Tokenizer} tokenizer @param {number} mostTokens of a source @param {import('./forms.js').WordForms} forms */
  constructor(facts, tokenizer, mostTokens, forms) {
    this.facts = facts;
    this.openings = new Set(facts.openings ?? []);
    this.tokenizer = tokenizer;
    this.mostTokens = mostTokens - 1; // room for EOS
    this.mostUsual = facts.usual_characters ?? Infinity;
    this.scripts = new Scripts(facts.scripts ?? { blocks: [], unspaced: [] });
    this.sentences = facts.rules && new Sentences(facts.rules);
    this.kept = facts.kept && new KeptRules(facts.kept, this.scripts, (word) => forms.lacks(word));
  }

  /**
   * Split a text as the model reads it.
   * @param {string} text
   * @returns {Segments}
   */
  split(text) {
    const { is_whole: isWhole, reads_sentences: readsSentences } = this.facts;
    if (isWhole || !(readsSentences || text.includes('\n'))) return { segments: [{ source: text, reading: this.onOneLine(text), kept: [] }], layout: ['', ''] };
    /** @type {Segments} */
    const result = { segments: [], layout: [] };
    let last = 0;
    for (const [start, end, isInner] of readsSentences ? this.sentencesOf(text) : linesOf(text)) {
      const part = text.slice(start, end), source = strip(part);
      if (!source) continue;
      const place = start + part.length - stripStart(part).length, reading = this.onOneLine(source);
      result.segments.push({ source, reading, kept: this.kept?.find(reading) ?? [], isInner });
      result.layout.push(text.slice(last, place));
      last = place + source.length;
    }
    result.layout.push(text.slice(last));
    return result;
  }

  /** Spans of the sentences of a text, cut where they are too long for the model, and whether they do not begin a sentence. @param {string} text @returns {Generator<[number, number, boolean?]>} */
  *sentencesOf(text) {
    const { kept, sentences } = /** @type {{ kept: KeptRules, sentences: Sentences }} */ (this);
    for (const [start, end] of this.paragraphs(text)) {
      // Line breaks within a paragraph are spaces, and addresses and placeholders a word, of the same length.
      const line = masked(text.slice(start, end).replace(QUOTED_BREAKS, (one) => ' '.repeat(one.length)), (plain) => kept.find(plain).filter(({ kind }) => !READ.includes(kind)));
      const ends = Array.from(line.matchAll(GLUED)).filter(([word]) => this.openings.has(word)).map(({ index }) => index);
      const spans = [...divided(sentences.spans(line), ends)].filter(([first, last]) => !isBlank(line.slice(first, last)));
      for (const [first, last] of spans.length > this.facts.usual || (spans.length > 1 && !this.isUsual(line)) ? spans : [[0, line.length]]) {
        for (const [from, to] of this.cut(text, line, start, start + first, start + last)) {
          const part = line.slice(from - start, to - start), begin = to - stripStart(part).length;
          const [left, right] = withoutEdges(strip(part));
          yield [begin + left, begin + right, from > start + first];
        }
      }
    }
  }

  /** Lines without the marks of quotes and list items; lines of hard-wrapped text together. @param {string} text */
  *paragraphs(text) {
    const quotes = linesOf(text).map(([start, end]) => /** @type {RegExpExecArray} */ (QUOTES.exec(text.slice(start, end)))[0]);
    const lines = linesOf(text).map(([start, end], index) => /** @type {[number, number]} */ ([start + quotes[index].length, end]));
    const starts = itemStarts(text, lines, this.openings), levels = quotes.map((quote) => quote.split('>').length);
    /** @type {[number, number][]} */
    let block = []; // consecutive lines of one quote that are not blank, and no items but the first
    for (const [index, [lineStart, lineEnd]] of lines.entries()) {
      const isLineBlank = isBlank(text.slice(lineStart, lineEnd));
      if (block.length && (isLineBlank || starts[index] > lineStart || levels[index] !== levels[index - 1])) {
        yield* this.unwrapped(text, block);
        block = [];
      }
      if (!isLineBlank) block.push([starts[index], lineEnd]);
    }
    yield* this.unwrapped(text, block);
  }

  /**
   * Lines, those together that were wrapped: that the first word of the next line would have made too long.
   * @param {string} text @param {[number, number][]} lines
   * @returns {Generator<[number, number]>}
   */
  *unwrapped(text, lines) {
    if (!lines.length) return;
    const parts = lines.map(([start, end]) => strip(text.slice(start, end)));
    const width = lines.reduce((most, [start, end]) => Math.max(most, sizeOf(stripEnd(text.slice(start, end)))), 0); // of any number of lines
    const isJoined = this.joins(parts, width);
    let [begin] = lines[0];
    for (let index = 1; index < lines.length; index++) {
      if (isJoined[index - 1]) continue;
      yield [begin, lines[index - 1][1]];
      [begin] = lines[index];
    }
    yield [begin, lines[lines.length - 1][1]];
  }

  /** Which lines go on in the next one: full ones, and those in whose middle of a sentence the next begins. @param {string[]} lines @param {number} width */
  joins(lines, width) {
    const isEnded = lines.map((line) => END_MARKS.some((mark) => line.endsWith(mark))), isGoing = going(lines, isEnded);
    return this.full(lines, width, isEnded).map((isFull, index) => isFull || isGoing[index]);
  }

  /** Which lines are full; what a colon ends, such as who wrote an e-mail, does not go on. @param {string[]} lines @param {number} width @param {boolean[]} isEnded */
  full(lines, width, isEnded) {
    const rest = lines.slice(1), added = rest.map((line) => (this.scripts.isUnspaced(line) ? 1 : 1 + sizeOf(splitWords(line)[0])));
    const isWide = width >= SHORTEST_WRAPPED;
    const isFull = added.map((size, index) => sizeOf(lines[index]) + size > width || (!isWide && sizeOf(lines[index]) >= LIKE * width));
    const isLower = rest.filter((_, index) => !isEnded[index]).map(beginsLower), isBegun = isEnded[lines.length - 1] || (lines.length > 2 && !beginsLower(lines[0]));
    const isEven = isFull.every((full, index) => full || isEnded[index]);
    const isWrapped = width >= LEAST_WRAPPED && isEven && isBegun && isLower.length > 0 && 2 * isLower.filter(Boolean).length >= isLower.length;
    return isFull.map((full, index) => (isWide || isWrapped) && full && !COLONS.test(lines[index]) && (!isEnded[index] || lines.length > 2));
  }

  /**
   * A segment, or its pieces where it is too long: cut where a sentence or a clause begins, near the middle.
   * @param {string} text @param {string} line without spaces within kept spans @param {number} offset of the line @param {number} start @param {number} end
   * @returns {Generator<[number, number]>}
   */
  *cut(text, line, offset, start, end) {
    const waiting = [[start, end]], whole = end - start;
    for (let span = waiting.pop(); span; span = waiting.pop()) {
      [start, end] = span;
      const source = text.slice(start, end), isLearned = this.isUsual(source);
      if (end - start < 2 || (isLearned && (end - start === whole || this.isShort(source)))) {
        yield [start, end];
        continue;
      }
      const middle = Math.floor((start + end) / 2) - offset, around = Math.min(Math.floor((end - start) / 4), MOST_AROUND), first = Math.max(0, middle - around);
      const [ends, spaces, joints] = [CLAUSE_ENDS, SPACES, BEFORE_CONJUNCTIONS].map((pattern) => Array.from(line.slice(first, middle + around).matchAll(pattern), (match) => first + match.index + match[0].length));
      const likely = [...ends, ...joints].filter((place) => this.beginsClause(line.slice(place)));
      const clauses = likely.length || isLearned ? likely : ends.length ? ends : joints;
      // Where all words have capitals, these tell nothing.
      const starts = caseOf(source) ? [] : this.openingsWithin(line, first, middle + around);
      if (!(starts.length || clauses.length) && (isLearned || this.fits(source))) {
        yield [start, end];
        continue;
      }
      const places = [starts, clauses, spaces, [middle]].find(({ length }) => length) ?? [];
      let cut = places.reduce((best, one) => (Math.abs(one - middle) < Math.abs(best - middle) ? one : best));
      cut = Math.min(Math.max(cut + offset, start + 1), end - 1);
      if (/[\udc00-\udfff]/.test(text[cut]) && cut - 1 > start) cut -= 1; // no character is cut
      waiting.push([cut, end], [start, cut]);
    }
  }

  /** Places of words whose capital tells that a sentence begins. @param {string} line @param {number} first @param {number} end @returns {number[]} */
  openingsWithin(line, first, end) {
    const begin = Math.max(0, first - 2); // the word before is of one character at least
    return Array.from(line.slice(begin, end).matchAll(NEXT_WORD)).filter(({ 0: word, index }) => begin + index >= first && this.openings.has(word)).map(({ index }) => begin + index);
  }

  /** Whether a word that begins sentences stands at the beginning of a text, behind a conjunction or not. @param {string} text */
  beginsClause(text) {
    const [joint = ''] = CONJUNCTION.exec(text) ?? [], [word = ''] = FIRST_WORD.exec(text.slice(joint.length)) ?? [];
    return this.openings.has(capital(word.toLowerCase()));
  }

  /** Whether a clause of a longer sentence is not cut further. @param {string} clause */
  isShort(clause) {
    return this.hasSize(clause, MOST_SHORT * this.mostUsual);
  }

  /** Whether the model takes a sentence, and has learned sentences as long. @param {string} sentence */
  isUsual(sentence) {
    return this.hasSize(sentence, this.mostUsual);
  }

  /** Whether the model takes a sentence without cutting it, and leaves nothing out. @param {string} sentence */
  fits(sentence) {
    return this.hasSize(sentence, MOST_UNUSUAL * this.mostUsual);
  }

  /** Whether the model takes a sentence, which without what stays as it is has a number of characters. @param {string} sentence @param {number} size */
  hasSize(sentence, size) {
    const most = this.mostTokens;
    const isRead = sentence.length <= most >> 2 || (sizeOf(sentence) <= LONGEST_PIECE * most && this.tokenizer.encode(sentence).length <= most);
    return isRead && (sizeOf(sentence) <= size || (!!this.kept && sizeOf(lift(sentence, this.kept.find(sentence)).text) <= size));
  }

  /** A text without line breaks: each is a space, or nothing in scripts without spaces. @param {string} text */
  onOneLine(text) {
    return text.replace(SOFT_BREAK, (found, /** @type {number} */ place) => {
      const before = Array.from(text.slice(Math.max(0, place - 2), place)).at(-1) ?? '', after = text.slice(place + found.length);
      return before && after && this.scripts.isUnspaced(before) && this.scripts.isUnspaced(after) ? '' : ' ';
    });
  }
}

const beginsLower = (/** @type {string} */ text) => /^\p{Lowercase}/u.test(text);

/**
 * Which lines go on in the next one, however long they are: it begins in lower case, and their sentence has a capital at its
 * beginning and a mark at its end, as items of lists have not; or no sentence ends in the last word of the line.
 * @param {string[]} lines @param {boolean[]} isEnded
 */
function going(lines, isEnded) {
  const isOpen = lines.map((line) => UNENDED.test(line)), joins = /** @type {boolean[]} */ ([]);
  let start = 0;
  for (const [index, line] of lines.entries()) {
    const rest = lines[index + 1] ?? '', isRow = CELL_END.test(line) || CELL_END.test(rest);
    if (rest && !isEnded[index] && !isRow && MID_SENTENCE.test(line) && (isOpen[index] || beginsLower(rest))) continue;
    const isSentence = isEnded[index] && !beginsLower(lines[start]);
    for (; start < index; start++) joins[start] = isSentence || isOpen[start];
    start = index + 1;
  }
  return joins;
}

/** Spans of sentences, divided at further ends of sentences. @param {Iterable<[number, number]>} spans @param {number[]} ends @returns {Generator<[number, number]>} */
function* divided(spans, ends) {
  let next = 0;
  for (let [start, end] of spans) {
    for (; next < ends.length && ends[next] < end; next++) {
      if (ends[next] <= start) continue;
      yield [start, ends[next]];
      start = ends[next];
    }
    yield [start, end];
  }
}

/** Text whose spans are a word each, of the same length. @param {string} line @param {(line: string) => import('./kept.js').Kept[]} find */
function masked(line, find) {
  const spans = find(line), parts = spans.flatMap(({ start, end }, index) => [line.slice(index ? spans[index - 1].end : 0, start), 'X'.repeat(end - start)]);
  return parts.join('') + line.slice(spans.at(-1)?.end ?? 0);
}

/** @returns {[number, number][]} */
function linesOf(/** @type {string} */ text) {
  const breaks = [...text.matchAll(BREAKS)];
  return [...breaks.map(({ index }) => index), text.length].map((end, index) => [index ? breaks[index - 1].index + breaks[index - 1][0].length : 0, end]);
}

/**
 * Start of each line, behind its bullet or number. A number with a period may be an ordinal, as in "3. Mai"; it is a mark where
 * the number before or after it stands at another line, or where a sentence begins behind it.
 * @param {string} text @param {[number, number][]} lines @param {Set<string>} openings
 */
function itemStarts(text, lines, openings) {
  const markers = lines.map(([start, end]) => MARKER.exec(text.slice(start, end)));
  const numberOf = (/** @type {RegExpExecArray | null} */ marker) => (marker?.groups?.number ? Array.from(marker.groups.number).reduce((number, digit) => 10 * number + valueOf(digit), 0) : null);
  const numbers = new Set(markers.map(numberOf));
  return lines.map(([start], index) => {
    const marker = markers[index], number = numberOf(marker);
    const [word = ''] = marker ? (FIRST_WORD.exec(text.slice(start + marker[0].length, lines[index][1])) ?? []) : [];
    return marker && (number === null || numbers.has(number - 1) || numbers.has(number + 1) || openings.has(word)) ? start + marker[0].length : start;
  });
}

/** Value of a digit of any script: digits are ten code points in a row. */
function valueOf(/** @type {string} */ digit) {
  const code = /** @type {number} */ (digit.codePointAt(0));
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value += 1;
  return value;
}

/**
 * Layout of a translation: sentences without a space between them get one in scripts that use spaces, and the other way round.
 * @param {Segments} parts @param {readonly string[]} outputs
 * @returns {string[]}
 */
export function layoutOf({ segments, layout }, outputs) {
  return layout.map((between, index) => {
    if (!index || index === outputs.length) return between;
    const before = outputs[index - 1], isChanged = before !== segments[index - 1].source || outputs[index] !== segments[index].source;
    if (!isChanged || !before) return between;
    if (!between && outputs[index] && before[before.length - 1] < WIDE) return ' ';
    return between === ' ' && WIDE_ENDS.includes(before[before.length - 1]) ? '' : between;
  });
}

/** The whole text of outputs. @param {Segments} parts @param {readonly string[]} outputs */
export function joined(parts, outputs) {
  return layoutOf(parts, outputs).map((between, index) => between + (outputs[index] ?? '')).join('');
}
