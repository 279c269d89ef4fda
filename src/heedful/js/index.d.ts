// Types of the npm package `heedful`. The modules say more in comments.

export type Code = 'damaged' | 'newer' | 'kind' | 'unreachable' | 'runtime' | 'usage' | 'nonfinite' | 'picture' | 'memory';

export class ModelError extends Error {
  code: Code;
}

export interface LoadOptions {
  /** ONNX Runtime: the module `onnxruntime-node` or, by default, `onnxruntime-web`. */
  ort?: unknown;
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

export interface SearchOptions {
  /** Hypotheses per source; 0 = the model's own. */
  beam?: number;
  /** Outputs per source. */
  nbest?: number;
  attention?: boolean;
  signal?: AbortSignal;
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
  translate(texts: readonly string[], options?: SearchOptions & { search?: Record<string, unknown> }): Promise<Translation[]>;
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
  encode(texts: readonly string[]): Promise<Float32Array[]>;
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
