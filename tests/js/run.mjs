// Calls of the package in Node, for tests: a request in JSON on standard input, the answers on standard output.
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const { runtime, runs } = JSON.parse(await text(process.stdin));
const module = (folder, name) => import(pathToFileURL(`${folder}/${name}`));
const { ort } = await module(runtime, 'ort.js');

// Engine whose log probabilities and weights are a table's, by step and token.
class TableEngine {
  constructor(logProbs, weights) { Object.assign(this, { logProbs, table: weights, hasWeights: true }); }

  async start() { return 0; }

  async step(step, tokens, parents, needWeights) {
    const rows = tokens.map((token) => this.logProbs[step][token]), weights = tokens.map((token) => this.table[step][token]);
    return [{ logProbs: Float32Array.from(rows.flat(), (each) => each ?? -Infinity), vocabularySize: rows[0].length, weights: needWeights ? Float32Array.from(weights.flat()) : null, width: weights[0].length }, step + 1];
  }
}

function reversed(words, dictionary, { nbest, attention }, shift) {
  const output = words.map((word) => dictionary[word] ?? word).reverse(), size = words.length;
  const alternatives = Array.from({ length: nbest }, (_, rank) => ({ text: output.slice(rank).join(' '), logProb: -1, score: -1 }));
  const rows = output.map((_, row) => [...words.map((__, column) => (column === size - 1 - row ? 0.9 : 0.1 / size)), 0]), before = Array.from({ length: shift }, () => new Array(size + 1).fill(1));
  return { source: words.join(' '), ...alternatives[0], alternatives, wasCut: false, sourcePieces: [...words, '<eos>'], targetPieces: [...output, '<eos>'], attention: attention ? [...before, ...rows] : null };
}

const pixels = ({ data, width, height }) => ({ data: Uint8Array.from(Buffer.from(data, 'base64')), width, height });

// A text and its segments to compare: what stands between segments may be divided in another way.
const whole = ([layout, rows]) => JSON.stringify([layout.map((between, index) => between + (rows[index]?.[1][0] ?? '')).join(''), rows]);

// Result of a call whose signal is aborted before it, or while it runs.
async function aborted(when, work) {
  const controller = new AbortController(), abort = () => controller.abort(new Error('enough'));
  if (when === 'before') abort();
  const running = work(controller.signal);
  abort();
  return running;
}

const answers = [];
for (const { folder, archive, calls } of runs) {
  const { gunzip } = await module(folder, 'archive.js');
  const { load } = await module(folder, 'load.js');
  const { search } = await module(folder, 'search.js');
  const { searchAll } = await module(folder, 'batch.js');
  const { layoutOf } = await module(folder, 'segments.js');
  const { Passages } = await module(folder, 'passages.js');
  const { splitWords } = await module(folder, 'whitespace.js');
  const { openTokenizer } = await module(folder, 'marian.js');
  const { Sentences } = await module(folder, 'documents.js');
  const { folder: makeFold } = await module(folder, 'folding.js');
  const { fitted, sizeOf } = await module(folder, 'pictures.js');
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary ??= await gunzip(await readFile(`${runtime}/ort.wasm.gz`));
  const writer = (model, { dictionary, tables, hasWeights }) => {
    const files = new Map(Object.entries(tables).map(([name, text]) => [name, new TextEncoder().encode(text)]));
    const passages = new Passages({ ...model, targetTokenizer: { encode: (word) => (word === 'end' ? [1, 2] : [1]) }, engine: { hasWeights }, translate: async (texts, options) => texts.map((one) => reversed(splitWords(one), dictionary, options, model.facts.segments.alignment_shift)) }, files);
    return async (text) => {
      const parts = passages.segmenter.split(text), outputs = await passages.translate(parts.segments, { nbest: 2 });
      return [layoutOf(parts, outputs.map((one) => one.text)), outputs.map((one) => [one.source, one.alternatives.map(({ text: output }) => output), one.kept.map(({ start, end, kind }) => [one.source.slice(start, end), kind]), one.reading, one.fault])];
    };
  };
  const known = {
    translate: (model, texts, options) => model.translate(texts, options),
    search: (model, source, settings, options) => search(model.engine, source, { ...model.facts.search, ...settings }, { maxLength: model.facts.max_tokens, needWeights: model.engine.hasWeights, ...options }),
    searchAll: (model, sources, settings) => searchAll(model.engine, sources, { ...model.facts.search, ...settings }, { maxLength: model.facts.max_tokens, needWeights: model.engine.hasWeights }),
    attention: (model, source, output) => model.engine.attention(source, output),
    table: (model, logProbs, weights, source, settings, options) => search(new TableEngine(logProbs, weights), source, settings, { maxLength: logProbs.length, needWeights: true, ...options }),
    encode: (model, each) => each.map((one) => model.sourceTokenizer.encodeSource(one, model.facts.max_tokens)),
    decode: (model, each) => each.map((one) => model.sourceTokenizer.decode(one)),
    load: (model, value) => load(value, { ort }),
    call: (model, method, given, options) => model[method](given, options),
    loadWith: async (model, path, options) => load(await readFile(path), options),
    // With an ONNX Runtime that fails at its beginning, or when it computes.
    failing: async (model, path, message, texts) => {
      const fail = async () => { throw new Error(message); };
      const create = async (...values) => Object.assign(await ort.InferenceSession.create(...values), { run: fail });
      const other = await load(await readFile(path), { ort: { ...ort, InferenceSession: { create: texts ? create : fail } } });
      return other.classify(texts);
    },
    // By another ONNX Runtime than that for browsers.
    translateBy: async (model, runtimePath, path, texts, options) => {
      const other = await load(await readFile(path), { ort: (await import(pathToFileURL(runtimePath))).default });
      return other.translate(texts, options).finally(() => other.release());
    },
    text: (model, text, options) => model.translateText(text, options),
    // Milliseconds that a text takes which repeats a unit, for each of two sizes, and number of outputs of the second.
    timed: async (model, method, unit, sizes) => {
      const works = {
        split: (text) => model.passages.segmenter.split(text).segments,
        translate: (text) => model.translate([text], { beam: 1 }),
        translateText: async (text) => (await model.translateText(text, { beam: 1 })).segments,
      };
      const times = [];
      let count = 0;
      for (const size of sizes) {
        const text = unit.repeat(Math.ceil(size / unit.length)).slice(0, size), begun = performance.now();
        count = (await works[method](text)).length;
        times.push(performance.now() - begun);
      }
      return { times, count };
    },
    // Segments and their outputs by a model that writes the words of a source in the opposite order.
    passages: async (model, given, each) => Promise.all(each.map(writer(model, given))),
    // Index of the first text whose segments or outputs are others than those that an earlier call gave, or null.
    differing: async (model, given, each, call) => {
      const write = writer(model, given);
      for (const [index, text] of each.entries()) if (whole(await write(text)) !== whole(answers[call][index])) return index;
      return null;
    },
    classify: (model, texts, options) => model.classify(texts, options),
    encodeTexts: (model, texts, options) => model.encode(texts, options),
    ngrams: (model, texts) => texts.map((one) => model.ngrams.scores(one)),
    // Bytes that the linear model holds of words of long texts, one word of each.
    wordBytes: (model, count, size) => {
      setFlagsFromString('--expose-gc');
      const gc = runInNewContext('gc'), used = () => { gc(); return process.memoryUsage().heapUsed; };
      const before = used();
      for (let index = 0; index < count; index++) model.ngrams.code(`a long text ${index} `.repeat(size).slice(-100_000).slice(0, 50 + 10_000 * (index % 2)));
      return used() - before;
    },
    caption: (model, pictures, options) => model.caption(pictures.map(pixels), options),
    // Pictures as they are, but for those with a number of white bytes.
    captionRaw: (model, pictures, options) => {
      const made = (one) => (one?.bytes === undefined ? one : { ...one, data: new Uint8ClampedArray(one.bytes).fill(255) });
      return model.caption(Array.isArray(pictures) ? pictures.map(made) : pictures, options);
    },
    captionFiles: (model, contents) => model.caption(contents.map((bytes) => new Blob([Uint8Array.from(bytes)]))),
    fit: (model, picture, facts) => fitted({ ...picture, data: Uint8Array.from(Buffer.from(picture.data, 'base64')) }, facts),
    size: (model, bytes) => sizeOf(Uint8Array.from(bytes)),
    answer: (model, stories, options) => model.answer(stories, options),
    split: (model, rules, each) => each.map((one) => new Sentences(rules).split(one)),
    fold: (model, tables, each) => each.map(makeFold(tables)),
    ranges: (model, each) => each.map((one) => model.sourceTokenizer.ranges(model.sourceTokenizer.normalize(one))),
    words: (model, each) => each.map((one) => model.sourceTokenizer.wordIndices(one)),
    cancel: async (model, texts) => {
      const controller = new AbortController();
      const running = model.translate(texts, { signal: controller.signal });
      controller.abort(new Error('enough'));
      return running;
    },
    aborted: (model, when, method, given) => aborted(when, (signal) => model[method](given, { signal })),
    abortedCaption: (model, when, picture) => aborted(when, (signal) => model.caption([pixels(picture), pixels(picture)], { signal })),
    // Also the number of graphs that are left open.
    abortedLoad: async (model, when, path, kind) => {
      const bytes = await readFile(path), names = when === 'after step.onnx' ? 2 : 1;
      let open = 0, made = 0;
      const controller = new AbortController();
      const create = async (...values) => {
        const session = await ort.InferenceSession.create(...values), release = session.release.bind(session);
        open += 1;
        made += 1;
        if (when.startsWith('after') && made === names) controller.abort(new Error('enough'));
        return Object.assign(session, { release: async () => { open -= 1; return release(); } });
      };
      const work = (signal) => load(kind === 'Blob' ? new Blob([bytes]) : bytes, { ort: { ...ort, InferenceSession: { create } }, signal });
      const result = await answer(() => (when.startsWith('after') ? work(controller.signal) : aborted(when, work)));
      return { ...result, open };
    },
  };
  const replace = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
  const answer = async (work) => {
    try { return JSON.parse(JSON.stringify(await work() ?? null, replace)); } catch (error) { return { error: error.code ?? error.name, message: error.message }; }
  };
  let model;
  const failed = await answer(async () => {
    if (archive.tokens) model = { sourceTokenizer: openTokenizer(archive), facts: { max_tokens: archive.most, ...archive.facts }, release() {} };
    else model = await load(archive.includes('://') ? archive : await readFile(archive), { ort });
  });
  for (const [name, ...values] of calls) answers.push(failed ?? await answer(() => known[name](model, ...values)));
  await model?.release();
}
process.stdout.write(JSON.stringify(answers));
