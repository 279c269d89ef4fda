// The types that the package declares are those of its modules: TypeScript finds an error in this file where they differ.
// `declared` is a copy of index.d.ts under another name, because TypeScript would take that in place of index.js.
import type { AnswerModel } from './answers.js';
import type { CaptionModel } from './captions.js';
import * as declared from './declared.js';
import * as actual from './index.js';
import type { ClassificationModel } from './labels.js';
import type { TranslationModel } from './model.js';

type Leaf = Promise<unknown> | AbortSignal | Blob | URL | ArrayBuffer | Uint8Array | Uint8ClampedArray | Float32Array;
// A type without its names and without intersections, so that types of the same members are the same.
type Plain<T> = T extends Promise<infer R> ? Promise<Plain<R>>
  : T extends Leaf ? T
  : T extends abstract new (...given: infer A) => infer R ? abstract new (...given: Plain<A>) => R
  : T extends (...given: infer A) => infer R ? (...given: Plain<A>) => Plain<R>
  : T extends object ? { [K in keyof T]: Plain<T[K]> }
  : T;
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
// Members of a class that are declared; the others are for the package itself.
type Declared<D, A> = Same<Plain<D>, Plain<Pick<A, keyof D & keyof A>>>;

export const checks: Record<string, true> = {
  exports: true as Same<keyof typeof declared, keyof typeof actual>,
  ModelError: true as Declared<declared.ModelError, actual.ModelError>,
  constructor_of_ModelError: true as Same<ConstructorParameters<typeof declared.ModelError>, ConstructorParameters<typeof actual.ModelError>>,
  load: true as Same<Plain<Parameters<typeof declared.load>>, Plain<Parameters<typeof actual.load>>>,
  TranslationModel: true as Declared<declared.TranslationModel, TranslationModel>,
  ClassificationModel: true as Declared<declared.ClassificationModel, ClassificationModel>,
  AnswerModel: true as Declared<declared.AnswerModel, AnswerModel>,
  CaptionModel: true as Declared<declared.CaptionModel, CaptionModel>,
};

// What a program of a caller does with one is what it may do with the other.
export async function translated(): Promise<declared.TranslationModel> {
  const usual: TranslationModel = await actual.load('model.tgz');
  const model = await actual.load('model.tgz', { signal: AbortSignal.timeout(1000) });
  const text: string = (await model.translateText('a', { beam: 5, search: { alpha: 0.6, stopping: 'full' } })).segments[0].text;
  const named: declared.CaptionModel = await actual.load<CaptionModel>('model.tgz');
  return text || named.name ? usual : model;
}

export async function refused(): Promise<void> {
  // @ts-expect-error: a model that translates classifies nothing
  await (await actual.load('model.tgz')).classify(['a']);
  // @ts-expect-error: the same as it is declared
  await (await declared.load('model.tgz')).classify(['a']);
  // @ts-expect-error: there is no such setting
  await (await declared.load('model.tgz')).translate(['a'], { search: { alpah: 0.6 } });
}
