// Views of a model, computed by its graphs: what `heedful serve` answers, without a page.
import { faultOf } from '../../js/faults.js';
import { spansIn } from '../../js/kept.js';
import { ended } from '../../js/model.js';
import { choices, search } from '../../js/search.js';
import { layoutOf } from '../../js/segments.js';
import { strip } from '../../js/whitespace.js';
import { answerView, captionView, classificationView } from './labels.js';
import { wordsOf } from './words.js';

// Limits of heedful.predictors.sentence_view.
const NUM_OUTPUTS = 5, NUM_CHOICES = 6;

// By task: (model, request, signal) to the data of a view.
export const VIEWS = { translation: translationView, captioning: captionView, classification: classificationView, answering: answerView };

async function translationView(model, request, signal) {
  const { facts, passages } = model, parts = passages.segmenter.split(request.text);
  const beam = request.beam || Math.max(facts.search.beam, NUM_OUTPUTS), alpha = request.alpha ?? facts.search.alpha;
  const config = { ...facts.search, beam, nbest: Math.min(beam, NUM_OUTPUTS), alpha };
  const [only, ...others] = parts.segments, text = strip(request.text);
  if (!only) return { ...await sentenceView(model, request.text, request, config, signal), passage: null };
  // A sentence that is read as it is written is a passage only if its output has a fault.
  if (!others.length && passages.isRead(only, text)) {
    const view = await sentenceView(model, text, request, config, signal), best = view.outputs[0];
    if (request.prefix.length || !best || !facts.segments.reads_sentences || !faultOf(text, best.text)) return { ...view, passage: null };
  }
  const passage = await passageOf(model, parts, config, signal);
  const chosen = passage.parts[Math.min(request.segment, passage.parts.length - 1)];
  return { ...await sentenceView(model, chosen.reading, request, config, signal), passage };
}

async function sentenceView(model, text, request, config, signal) {
  const { engine, facts, sourceTokenizer, targetTokenizer, pause } = model;
  const { ids, wasCut } = sourceTokenizer.encodeSource(text, facts.max_tokens);
  const options = { maxLength: facts.max_tokens, prefix: request.prefix, needWeights: engine.hasWeights, signal, pause };
  const outputs = [], searches = [];
  if (ids.length > 1) {
    const trace = request.traced ? [] : undefined;
    for (const one of await search(engine, ids, config, { ...options, trace })) outputs.push(outputOf(targetTokenizer, one));
    const steps = outputs[0].ids.length ? await choices(engine, ids, outputs[0].ids, NUM_CHOICES, options) : [];
    outputs[0].choices = steps.map((step) => step.map(({ id, logProb }) => ({ token: id, piece: targetTokenizer.pieces([id])[0], logProb })));
    outputs[0].numForced = request.prefix.length;
    if (trace) searches.push(tracedSearch(targetTokenizer, trace, config.beam));
  }
  const maps = request.layers && outputs[0] ? await mapsOf(engine, facts, ids, outputs[0]) : [];
  return {
    model: facts.name, kind: facts.kind, languages: facts.languages, engine: 'onnx',
    source: { text, ids, ...wordsOf(sourceTokenizer, ids) }, wasCut, outputs,
    maps,
    measure: 'attention', measures: [], otherMaps: {}, searches, reference: '',
    isFixed: true, lengthPenalty: config.length_penalty, alpha: config.alpha, missing: missingIn(engine, facts, maps),
  };
}

// Attention of every layer and head; models with one attention report it while they generate.
async function mapsOf(engine, facts, ids, { ids: output, weights }) {
  const layers = await engine.attention(ids, output);
  const maps = layers.length ? layers : weights && facts.kind !== 'transformer' ? [{ role: 'cross', layer: 0, ...weights }] : [];
  return maps.map((one) => ({ hasRoot: false, tree: null, ...one }));
}

// Parts of a view that this file cannot give; a Transformer reports a mean while it translates.
function missingIn(engine, facts, maps) {
  if (!engine.hasWeights) return { attention: facts.name };
  return !engine.openLayers && !maps.length && facts.kind === 'transformer' ? { packed: `heedful export ${facts.name} --to html --layers` } : {};
}

function outputOf(tokenizer, hypothesis) {
  const ids = ended(hypothesis);
  return {
    text: tokenizer.decode(hypothesis.ids), ids, ...wordsOf(tokenizer, ids), tokenLogProbs: hypothesis.tokenLogProbs,
    logProb: hypothesis.logProb, score: hypothesis.score, weights: hypothesis.weights && packed(hypothesis.weights), choices: [], numForced: 0,
  };
}

// Rows of weights as the page unpacks them: one head.
function packed(rows) {
  const columns = rows[0]?.length ?? 0, values = new Float32Array(rows.length * columns);
  rows.forEach((row, index) => values.set(row, index * columns));
  return { shape: [1, rows.length, columns], values };
}

function tracedSearch(tokenizer, trace, beam) {
  const indices = new Map(trace.map((one, index) => [one, index]));
  const idsOf = (one) => (one.before ? [...idsOf(one.before), one.token] : []);
  const nodes = trace.map((one) => ({
    parent: indices.get(one.before) ?? -1, step: one.length - 1, piece: wordsOf(tokenizer, [one.token]).pieces[0], token: one.token,
    tokenLogProb: one.tokenLogProb, logProb: one.total, rank: one.rank, fate: one.fate, text: tokenizer.decode(idsOf(one)),
  }));
  const weights = trace.map((one) => one.weights);
  return { beam, nodes, attention: weights.length && weights.every(Boolean) ? packed(weights) : null, departure: null };
}

async function passageOf(model, segments, config, signal) {
  const translations = await model.passages.translate(segments.segments, { beam: config.beam, signal, search: config });
  const parts = translations.map(({ source, text, kept, reading, fault }) => {
    const spans = kept.map(({ start, end, kind }) => ({ text: source.slice(start, end), kind }));
    return { source, output: text, kept: inCharacters(source, kept), outputKept: inCharacters(text, spansIn(text, spans)), reading, fault };
  });
  return { parts, sourceLayout: segments.layout, outputLayout: layoutOf(segments, parts.map((one) => one.output)) };
}

// Places as the page counts them.
function inCharacters(text, spans) {
  const count = (end) => Array.from(text.slice(0, end)).length;
  return spans.map(({ start, end, kind }) => [count(start), count(end), kind]);
}
