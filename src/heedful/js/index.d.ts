// Types of the npm package `heedful`. The modules say more in comments, whose types are the same, by test.

export type Code = 'damaged' | 'newer' | 'kind' | 'unreachable' | 'runtime' | 'usage' | 'nonfinite' | 'picture' | 'memory';

export class ModelError extends Error {
  constructor(code: Code, message: string, cause?: unknown);
  code: Code;
}

/** What the package needs of ONNX Runtime. */
export interface Runtime {
  Tensor: new (type: any, data: any, dims: any) => any;
  InferenceSession: { create(graph: Uint8Array, options?: object): Promise<any> };
}

export interface LoadOptions {
  /** ONNX Runtime: the module `onnxruntime-node` or `onnxruntime-web`; by default the one that is found, in Node in this order. */
  ort?: Runtime;
  /** Ends the loading; `load` then rejects with the reason of the signal. */
  signal?: AbortSignal;
}

/**
 * Load a model from an archive of `heedful export MODEL --to js`, by its address or its bytes.
 * The kind of the model is that of its task; a caller who knows it names it: `load<ClassificationModel>('reviews.tgz')`.
 */
export function load<M extends Model = TranslationModel>(source: string | URL | ArrayBuffer | Uint8Array | Blob, options?: LoadOptions): Promise<M>;

export type Model = TranslationModel | ClassificationModel | AnswerModel | CaptionModel;

interface Named {
  readonly name: string;
  /** Free the memory of the runtime. */
  release(): Promise<void>;
}

/** Settings of a search, by their names in Python. */
export interface SearchConfig {
  beam: number;
  nbest: number;
  length_penalty: 'power' | 'gnmt';
  alpha: number;
  length_reward: number;
  beta: number;
  repetition_penalty: number;
  no_repeat_ngram_size: number;
  max_length_ratio: number;
  max_length_offset: number;
  min_length: number;
  forbid_unknown: boolean;
  stopping: 'likely' | 'full' | 'certain';
}

export interface SearchOptions {
  /** Hypotheses per source; 0 = the model's own. */
  beam?: number;
  /** Outputs per source; a smaller beam grows to this number. */
  nbest?: number;
  attention?: boolean;
  /** Ends the search; the method then rejects with the reason of the signal. */
  signal?: AbortSignal;
  /** Other settings. */
  search?: Partial<SearchConfig>;
  /** Beginning of every output; of `translate` alone. */
  prefix?: string;
}

export interface Alternative {
  text: string;
  logProb: number;
  score: number;
}

export interface Translation extends Alternative {
  source: string;
  /** All outputs, best first, the best one included. */
  alternatives: Alternative[];
  wasCut: boolean;
  sourcePieces: string[];
  targetPieces: string[];
  /** [target piece][source piece] */
  attention: number[][] | null;
}

/** Translation of a part of a text. */
export interface SegmentTranslation extends Translation {
  /** Spans of the source that stay as they are. */
  kept: { start: number; end: number; kind: string }[];
  /** Text that the model read in place of the source: without its kept spans, with the usual forms of its words; empty = none. */
  reading: string;
  /** Fault of all outputs, for which the source stands; empty = none. */
  fault: '' | 'loop' | 'length' | 'empty';
}

export interface TranslationModel extends Named {
  readonly languages: [string, string];
  translate(texts: readonly string[], options?: SearchOptions): Promise<Translation[]>;
  translateText(text: string, options?: SearchOptions): Promise<{ source: string; text: string; segments: SegmentTranslation[] }>;
}

export interface Classification {
  text: string;
  label: string;
  labels: string[];
  probability: number;
  /** All labels, the most probable first. */
  probabilities: [string, number][];
  pieces: string[];
  /** Weight of each piece. */
  attention: number[] | null;
  wasCut: boolean;
}

export interface ClassificationModel extends Named {
  classify(texts: readonly string[], options?: { signal?: AbortSignal }): Promise<Classification[]>;
  encode(texts: readonly string[], options?: { signal?: AbortSignal }): Promise<Float32Array[]>;
}

export interface Answer {
  answer: string;
  probability: number;
  probabilities: [string, number][];
  /** [step][fact] */
  weights: number[][] | null;
  wasCut: boolean;
  span: { passage: string; start: number; end: number; tokens: [number, number][]; attention: number[]; starts: number[]; ends: number[] } | null;
}

export interface AnswerModel extends Named {
  answer(stories: readonly { facts: readonly string[]; question: string }[], options?: { signal?: AbortSignal }): Promise<Answer[]>;
}

export interface Caption extends Alternative {
  alternatives: Alternative[];
  pieces: string[];
  /** [piece][region], regions row by row */
  attention: number[][] | null;
  /** Rows and columns of regions. */
  grid: [number, number];
}

export interface CaptionModel extends Named {
  caption(pictures: readonly (Blob | { data: Uint8Array | Uint8ClampedArray; width: number; height: number })[], options?: SearchOptions): Promise<Caption[]>;
}
