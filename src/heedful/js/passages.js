// Translation of texts segment by segment: spans that stay as they are, text in unusual case or of a part of a sentence, and outputs
// that are no translation; the twin of heedful.predictors.segment_decoding and heedful.predictors.reading.
import { decodedEntities } from './entities.js';
import { faultOf } from './faults.js';
import { capital, caseOf, firstWord, WORD, WordForms } from './forms.js';
import { hasWords, lift, outside, putBack, standOnce } from './kept.js';
import { Lexicon, linksOf } from './links.js';
import { searchOf } from './options.js';
import { CONJUNCTION, Segmenter } from './segments.js';
import { isBlank, SPACE, splitWords, strip } from './whitespace.js';

/**
 * @typedef {import('./model.js').Translation} Translation
 * @typedef {import('./options.js').SearchOptions} Options
 * @typedef {import('./segments.js').Segment} Segment
 * @typedef {Translation & { kept: import('./kept.js').Kept[], reading: string, fault: '' | 'loop' | 'length' | 'empty' }} SegmentTranslation `kept`: spans of the
 *   source that stay; `reading`: text that the model read in its place, empty where it read none; `fault`: that of all its outputs, for
 *   which the source stands.
 */

/**
 * @typedef {object} Reading Segment as the model reads it: with the usual forms of its words, and as a whole sentence.
 * @property {Segment} segment as it is read; that which was written where nothing changed
 * @property {boolean} isUpper whether the output will be in upper case
 * @property {boolean} isLower whether the output will begin in lower case
 * @property {string} mark that the output ends in because the reading does
 * @property {[string, string]} joint conjunction at the beginning, which is not read, and its translation
 */

/** Kinds of kept spans that models may have learned to write. */
const READ = ['number', 'date', 'identifier', 'acronym'];
/** Search in place of a degenerate output: tokens in a row that come once only, and outputs. */
const NGRAM = 3, ALTERNATIVES = 5;
/** Character that stands for a kept span while words get their usual forms. */
const SPAN = '\ufffc';
const ENDED = new RegExp(`[.!?…:;,。！？：；，、؟।۔॥|]["'”’“»)\\]]*[${SPACE}]*$`);
/** Span that is a word of a sentence, no tag, emoji or number of it. */
const WORD_LIKE = /^(?![<([（]).*[\p{L}\p{N}]/su;
/** Word that has a capital within sentences, too. */
const FIRST_PERSON = /^I(?:['’]|$)/;

export class Passages {
  /** @param {import('./model.js').TranslationModel} model @param {Map<string, Uint8Array>} files */
  constructor(model, files) {
    const lexicon = files.get('lexicon.tsv');
    this.model = model;
    this.facts = model.facts.segments;
    this.forms = new WordForms(files.get('forms.txt'), model.sourceTokenizer);
    this.segmenter = new Segmenter(this.facts, model.sourceTokenizer, model.facts.max_tokens, this.forms);
    this.lexicon = lexicon ? new Lexicon(lexicon) : null;
    // A model of an earlier version does not tell; where its sources begin with capitals, they end in marks.
    this.finalMarks = this.facts.final_marks ?? (this.forms.usualForms.size && this.forms.hasCapitals ? ['.', '.'] : ['', '']);
  }

  /**
   * Translate segments.
   * @param {readonly Segment[]} segments @param {Options} options
   * @returns {Promise<SegmentTranslation[]>}
   */
  async translate(segments, options) {
    const { beam, nbest } = searchOf(this.model.facts.search, options, 'translateText');
    if (!this.facts.reads_sentences) return (await this.model.translate(segments.map(({ source }) => source), options)).map((one) => ({ ...one, kept: [], reading: one.source, fault: '' }));
    const texts = segments.filter((one) => hasWords(one.reading, one.kept)), outputs = await this.outputs(texts, options);
    const faulty = texts.flatMap((one, row) => (faultOf(one.reading, outputs[row].text) && !isBlank(outputs[row].source) ? [row] : []));
    if (faulty.length) {
      const width = Math.max(beam, ALTERNATIVES), search = { ...options.search, no_repeat_ngram_size: NGRAM, min_length: 1 };
      const others = await this.outputs(faulty.map((row) => texts[row]), { ...options, beam: width, nbest: width, search });
      faulty.forEach((row, index) => {
        const sound = others[index].alternatives.filter((one) => !faultOf(texts[row].reading, one.text));
        outputs[row] = sound.length ? { ...others[index], ...sound[0], alternatives: sound.slice(0, nbest) } : { ...unchanged(texts[row]), reading: texts[row].reading, fault: faultOf(texts[row].reading, outputs[row].text) };
      });
    }
    const found = new Map(texts.map((one, row) => [one, outputs[row]]));
    return segments.map((one) => found.get(one) ?? unchanged(one));
  }

  /** Outputs with kept spans and in the case of the segments. @param {readonly Segment[]} segments @param {Options} options @returns {Promise<SegmentTranslation[]>} */
  async outputs(segments, options) {
    const readings = segments.map((one) => this.read(one)), outputs = await this.keeping(readings.map(({ segment }) => segment), options);
    return outputs.map((output, row) => {
      const { reading: source, kept } = segments[row];
      const written = readings[row].segment === segments[row] ? output : withTexts(output, output.alternatives.map(({ text }) => writtenAs(readings[row], source, text, (word) => this.isName(word))));
      return { ...written, source, kept, fault: '' };
    });
  }

  /** Whether the model reads a text as a segment. @param {Segment} segment @param {string} text */
  isRead(segment, text) {
    const { reading, kept } = segment;
    return reading === text && (!this.facts.reads_sentences || (!kept.length && hasWords(reading, kept) && this.read(segment).segment === segment));
  }

  /** Segment as the model reads it. @param {Segment} segment @returns {Reading} */
  read(segment) {
    const { reading, kept } = segment, joint = this.jointOf(segment), start = joint[0].length, { forms } = this;
    const spans = kept.map((one) => ({ ...one, start: one.start - start, end: one.end - start })), parts = outside(reading.slice(start), spans), plain = parts.join(SPAN);
    const same = { segment, isUpper: false, isLower: false, mark: '', joint };
    if (plain.split(SPAN).length !== kept.length + 1) return same;
    const marks = ENDED.test(plain) || !this.finalMarks[0] ? ['', ''] : this.finalMarks, isBegun = forms.beginsInLowerCase(plain);
    const words = forms.restored(plain) + marks[0], restored = isBegun ? capital(words) : words;
    if (restored === plain && !start) return same;
    const read = restored.split(SPAN);
    let text = read[0];
    const places = kept.map(({ start: first, end, kind }, index) => {
      const place = { start: text.length, end: text.length + end - first, kind };
      text += reading.slice(first, end) + read[index + 1];
      return place;
    });
    // A whole sentence without capitals was written in a hurry.
    const isLower = isBegun && (!!segment.isInner || !!marks[0] || start > 0 || caseOf(plain) !== 'lower');
    return { segment: { source: text, reading: text, kept: places }, isUpper: caseOf(plain) === 'upper', isLower, mark: marks[1], joint };
  }

  /** Conjunction at the beginning of a text and its translation; both empty where it is read with the text, or stays. @param {Segment} segment @returns {[string, string]} */
  jointOf({ reading, kept }) {
    const [joint] = (this.forms.hasCapitals && CONJUNCTION.exec(reading)) || [''], isKept = kept.some(({ start }) => start < joint.length);
    const target = joint && !isKept && this.lexicon?.best(strip(joint).toLowerCase());
    return target ? [joint, `${/\p{Lowercase}/u.test(joint) ? target : target.toUpperCase()} `] : ['', ''];
  }

  /** Whether a target word takes fewer tokens with its capital than without, such as nouns of German. @param {string} word */
  isName(word) {
    const { targetTokenizer } = this.model, [first] = word;
    return targetTokenizer.encode(word).length < targetTokenizer.encode(first.toLowerCase() + word.slice(first.length)).length;
  }

  /**
   * Outputs in which each kept span stands once: numbers where the model wrote them, all others beside the translations of the
   * words that they stood beside.
   * @param {readonly Segment[]} segments @param {Options} options
   * @returns {Promise<(Translation & { reading: string })[]>}
   */
  async keeping(segments, options) {
    const read = segments.filter(({ kept }) => kept.every(({ kind }) => READ.includes(kind)));
    const written = (await this.model.translate(read.map(({ reading }) => reading), options)).map(withoutEntities);
    const outputs = new Map(read.map((one, index) => /** @type {const} */ ([one, { ...written[index], reading: one.reading }])).filter(([one, output]) => hasAll(output, one)));
    const rest = segments.filter((one) => !outputs.has(one)), lifted = rest.map(({ reading, kept }) => lift(reading, kept));
    const again = await this.model.translate(lifted.map(({ text }) => text), { ...options, attention: rest.length > 0 && this.model.engine.hasWeights });
    rest.forEach((one, index) => outputs.set(one, { ...this.withSpans(this.begun(again[index], lifted[index], one.reading), lifted[index]), source: one.reading }));
    return segments.map((one) => /** @type {Translation & { reading: string }} */ (outputs.get(one)));
  }

  /** Output without a capital where a word such as a number stood before its text, as in "12 dogs run". @param {Translation} output @param {import('./kept.js').Lifted} lifted @param {string} source */
  begun(output, { text, start }, source) {
    const word = firstWord(text), { forms } = this, before = source.slice(0, start), last = isBlank(before.slice(-1)) ? splitWords(before).at(-1) ?? '' : '';
    if (!word || !forms.usualForms.size || !forms.hasCapitals || forms.usual(word) !== word || !WORD_LIKE.test(last)) return output;
    return withTexts(output, output.alternatives.map((one) => lowered(one.text, source, (name) => this.isName(name))));
  }

  /** Output for a text without its kept spans, with them. @param {Translation} output @param {import('./kept.js').Lifted} lifted */
  withSpans(output, lifted) {
    const { lexicon, segmenter: { scripts } } = this, { attention } = output;
    const texts = output.alternatives.map(({ text }, rank) => {
      const read = attention && rank === 0 ? { ...output, attention: attention.slice(this.facts.alignment_shift) } : null;
      const plain = decodedEntities(lifted.text, text), links = linksOf(lifted.text, text, read, lexicon, scripts);
      return putBack(lifted, plain.text, links.map((link) => ({ ...link, target: [plain.indices[link.target[0]], plain.indices[link.target[1] - 1] + 1] })), scripts);
    });
    return { ...withTexts(output, texts), attention: null, reading: lifted.text };
  }
}

/** @param {Segment} segment @returns {SegmentTranslation} */
function unchanged({ reading: text, kept }) {
  return { source: text, text, logProb: 0, score: 0, alternatives: [{ text, logProb: 0, score: 0 }], wasCut: false, sourcePieces: [], targetPieces: [], attention: null, kept, reading: '', fault: '' };
}

/** Whether each kept span stands in each alternative as often as in its segment, and no other number does. @param {Translation} output @param {Segment} segment */
function hasAll({ alternatives }, { reading, kept }) {
  const spans = kept.map(({ start, end }) => reading.slice(start, end));
  return !spans.length || alternatives.every(({ text }) => standOnce(spans, reading, text));
}

/** Output for a plain text, without entities that this lacks. @param {Translation} output */
function withoutEntities(output) {
  const texts = output.alternatives.map(({ text }) => decodedEntities(output.source, text).text);
  return texts.every((text, rank) => text === output.alternatives[rank].text) ? output : withTexts(output, texts);
}

/** Output for a segment as it was written. @param {Reading} reading @param {string} source @param {string} text @param {(word: string) => boolean} isName */
function writtenAs({ segment, isUpper, isLower, mark, joint }, source, text, isName) {
  const spans = segment.kept.map(({ start, end }) => segment.reading.slice(start, end));
  const unmarked = mark && text.length > mark.length && text.endsWith(mark) ? text.slice(0, -mark.length) : text;
  return joint[1] + (isUpper ? raised(unmarked, spans) : isLower ? lowered(unmarked, source, isName) : unmarked);
}

/** Output that begins in lower case, unless its first word has a capital wherever it stands, as names do. @param {string} text @param {string} source @param {(word: string) => boolean} isName */
function lowered(text, source, isName) {
  const word = firstWord(text), rest = word.slice(1);
  if (!word || FIRST_PERSON.test(word) || rest !== rest.toLowerCase() || source.match(WORD)?.includes(word) || isName(word)) return text;
  const [first] = text;
  return Array.from(first.toLowerCase()).length === 1 ? first.toLowerCase() + text.slice(first.length) : text;
}

/** Text in upper case outside its kept spans. @param {string} text @param {readonly string[]} spans */
function raised(text, spans) {
  if (!spans.length) return text.toUpperCase();
  const patterns = [...spans].sort((one, other) => other.length - one.length).map((span) => span.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return text.split(new RegExp(`(${patterns.join('|')})`)).map((part, index) => (index % 2 ? part : part.toUpperCase())).join('');
}

/** Output with other texts of its alternatives, each once; blank ones are left out. @template {Translation} T @param {T} output @param {readonly string[]} texts @returns {T} */
function withTexts(output, texts) {
  const others = output.alternatives.map((one, index) => ({ ...one, text: texts[index] })).filter(({ text }) => text);
  const alternatives = others.filter(({ text }, index) => others.findIndex((one) => one.text === text) === index);
  const [first = output.alternatives[0]] = alternatives;
  return { ...output, text: first.text, alternatives: alternatives.length ? alternatives : output.alternatives };
}
