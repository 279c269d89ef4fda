// Views of models that classify and answer, computed by the page itself; the twin of heedful.predictors.label_views.
import { pauses } from '../../js/model.js';

// Limits of heedful.predictors.word_effects and heedful.predictors.label_views.
const MOST_WORDS = 200, FEWEST_WORDS = 5, FAITHFUL = 0.5, MOST_LABELS = 50, NUM_CAPTIONS = 5;
const WORD = '\\p{L}\\p{N}_\\p{M}', BLANK = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const UNIT = new RegExp(`[${WORD}]+|[^${WORD}${BLANK}]`, 'gu');

export async function classificationView(model, { text }, signal) {
  const result = await model.classifyOne(text), { label_kind: labelKind } = model.facts;
  const sentences = weightedSentences(model, text, result.attention ?? []), words = sentences.flat();
  const effects = await wordEffects(model, text, sentences, result, signal);
  const rows = words.map(([word, weight], index) => [word, weight, effects.get(index) ?? null]), chosen = [...effects.keys()];
  const correlation = result.attention ? rankCorrelation(chosen.map((index) => words[index][1]), chosen.map((index) => Math.abs(effects.get(index)))) : null;
  return {
    model: model.name, task: 'classification', labelKind, label: result.label, labels: result.labels, probability: result.probability, probabilities: result.probabilities.slice(0, MOST_LABELS),
    sentences: sentences.map((sentence) => rows.splice(0, sentence.length)), hasAttention: Boolean(result.attention), correlation, isFaithful: correlation !== null && correlation >= FAITHFUL, wasCut: result.wasCut,
  };
}

// Words of each sentence with their weights; last the weight of EOS, with an empty word.
function weightedSentences({ sentences, tokenizer, facts }, text, attention) {
  let place = 0;
  const next = () => attention[place++] ?? 0;
  return (sentences ? sentences.split(text) : [text]).map((sentence) => {
    const normal = tokenizer.normalize(sentence), ends = unitEnds(normal, facts.unspaced);
    ends[Math.max(0, ends.length - 1)] = normal.length;
    const words = ends.map((end, index) => [normal.slice(ends[index - 1] ?? 0, end), 0]);
    for (const [, end] of tokenizer.ranges(normal)) {
      const index = ends.findIndex((one) => one >= end); // a token belongs to the word of its last character
      words[index < 0 ? words.length - 1 : index][1] += next();
    }
    return [...words, ['', next()]];
  });
}

// Ends of the words and signs of a text; characters of scripts without spaces stand alone.
function unitEnds(text, unspaced) {
  const isUnspaced = (character) => unspaced.some(([first, last]) => character.codePointAt(0) >= first && character.codePointAt(0) <= last), ends = [];
  for (const { 0: unit, index } of text.matchAll(UNIT)) {
    let place = index, begun = index;
    for (const character of unit) {
      const before = place;
      place += character.length;
      if (!isUnspaced(character)) continue;
      if (begun < before) ends.push(before);
      ends.push(place);
      begun = place;
    }
    if (begun < place) ends.push(place);
  }
  return ends;
}

// Nats by which the label is less probable without a word, by the word's index.
async function wordEffects(model, text, sentences, result, signal) {
  const words = sentences.flat(), firsts = new Set([0]), space = text.trim().includes(' ') ? ' ' : '', effects = new Map();
  sentences.reduce((sum, sentence) => { firsts.add(sum + sentence.length); return sum + sentence.length; }, 0);
  const without = (left) => words.map(([word], index) => (index === left ? '' : (firsts.has(index) ? space : '') + word)).join('').trim();
  const measure = (other) => {
    if (model.facts.label_kind === 'number') return Number(other.label);
    const shares = new Map(other.probabilities);
    return result.labels.reduce((sum, label) => sum + Math.log(Math.max(shares.get(label), 1e-30)), 0);
  };
  const order = words.map((_, index) => index).filter((index) => words[index][0].trim()).sort((one, other) => words[other][1] - words[one][1]).slice(0, MOST_WORDS);
  if (!order.length) return effects;
  const whole = measure(await model.classifyOne(without(-1)));
  const pause = pauses();
  for (const index of order) {
    await pause();
    signal?.throwIfAborted();
    effects.set(index, whole - measure(await model.classifyOne(without(index))));
  }
  return effects;
}

// Spearman's rank correlation; null for fewer than five words, or where all are alike.
function rankCorrelation(one, other) {
  if (one.length < FEWEST_WORDS) return null;
  const scaled = [one, other].map((values) => {
    const ranks = values.map((value) => values.filter((each) => each < value).length + (values.filter((each) => each === value).length - 1) / 2);
    const mean = ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length, centred = ranks.map((rank) => rank - mean);
    const size = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0));
    return size ? centred.map((value) => value / size) : null;
  });
  return scaled[0] && scaled[1] ? scaled[0].reduce((sum, value, index) => sum + value * scaled[1][index], 0) : null;
}

export async function answerView(model, { text, question }, signal) {
  const facts = text.split('\n').map((line) => line.trim()).filter(Boolean);
  const [{ answer, probability, probabilities, weights, wasCut, span }] = await model.answer([{ facts, question }], { signal });
  return {
    model: model.name, task: 'answering', answer, probability, probabilities: probabilities.slice(0, MOST_LABELS), facts, wasCut, weights: weights ?? [],
    steps: span ? ['start', 'end'] : (weights ?? []).map((_, index) => `step ${index + 1}`), span: span && spanView(span),
  };
}

// A span as the server gives it, whose places count characters.
function spanView({ passage, start, end, tokens, attention, starts, ends }) {
  const points = (unit) => Array.from(passage.slice(0, unit)).length;
  return { passage, start: points(start), end: points(end), places: tokens.map((place) => place.map(points)), tokens: tokens.map(([one, other]) => passage.slice(one, other)), attention, start_weights: starts, end_weights: ends };
}

export async function captionView(model, { picture }, signal) {
  const { search, images: { height, width } } = model.facts;
  const [{ text, alternatives, pieces, attention, grid }] = await model.caption([picture.blob], { beam: Math.max(search.beam, NUM_CAPTIONS), nbest: NUM_CAPTIONS, attention: true, signal });
  return { model: model.name, task: 'captioning', text, alternatives: alternatives.map((one) => [one.text, one.logProb, one.score]), pieces: labelsOf(pieces), weights: attention ?? [], grid, size: [height, width] };
}

// Pieces as heedful.text.token_labels shows them, but for invisible characters.
function labelsOf(pieces) {
  const hasMarks = pieces.some((piece) => piece.startsWith('\u2581'));
  return pieces.map((piece, index) => (hasMarks && index && !piece.startsWith('\u2581') && /^\p{L}/u.test(piece) && /\p{L}$/u.test(pieces[index - 1]) ? '-' : '') + (piece.replace(/^\u2581/, '') || piece).replaceAll('\u2581', '\u2423').replace(/^ $/, '\u2423'));
}
