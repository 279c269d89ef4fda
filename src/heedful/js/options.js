// Options of all methods, checked in one place, so that none is ignored: a setting that is misspelt, or whose value a search
// cannot follow, is an error. Bounds are those of heedful.search.config.
import { ModelError } from './errors.js';

/**
 * @typedef {import('./search.js').SearchConfig} SearchConfig
 *
 * @typedef {object} SearchOptions Options of the methods that search.
 * @property {number} [beam] hypotheses per source; 0 = the model's own
 * @property {number} [nbest] outputs per source; a smaller beam grows to this number
 * @property {boolean} [attention] whether to return attention
 * @property {AbortSignal} [signal] ends the search; the method then rejects with the reason of the signal
 * @property {Partial<SearchConfig>} [search] other settings, by their names in Python
 * @property {string} [prefix] beginning of every output; of `translate` alone
 *
 * @typedef {{ expected: string, has: (value: any) => boolean }} Range Values of a setting.
 */

const MOST_HYPOTHESES = 1000, MOST = 1_000_000;

/** @param {number} least @param {number} most @returns {Range} */
const whole = (least, most) => ({ expected: `a whole number from ${least} to ${most}`, has: (value) => Number.isInteger(value) && value >= least && value <= most });
/** @param {number} least @param {number} most @returns {Range} */
const number = (least, most) => ({ expected: `a number from ${least} to ${most}`, has: (value) => Number.isFinite(value) && value >= least && value <= most });
/** @param {(string | boolean)[]} values @returns {Range} */
const oneOf = (...values) => ({ expected: `one of ${values.join(', ')}`, has: (value) => values.includes(value) });

/** @type {Record<string, Range>} */
const SETTINGS = {
  beam: whole(1, MOST_HYPOTHESES),
  nbest: whole(1, MOST_HYPOTHESES),
  length_penalty: oneOf('power', 'gnmt'),
  alpha: number(0, 100),
  length_reward: number(0, 1000),
  beta: number(0, 100),
  repetition_penalty: number(1, 1000),
  no_repeat_ngram_size: whole(0, MOST),
  max_length_ratio: number(0, 1000),
  max_length_offset: whole(0, MOST),
  min_length: whole(0, MOST),
  forbid_unknown: oneOf(true, false),
  stopping: oneOf('likely', 'full', 'certain'),
};
const NAMES = Object.keys(SETTINGS).join(', ');
const SEARCHING = ['beam', 'nbest', 'attention', 'signal', 'search'];

/**
 * Settings of a search: the model's own, and in their place those that are given.
 * @param {SearchConfig} own @param {SearchOptions} options @param {string} method name of the method, for the error
 * @param {readonly string[]} [further] options of the method besides those of all that search
 * @returns {SearchConfig} with a beam that has room for the outputs
 */
export function searchOf(own, options, method, further = []) {
  const { beam = 0, nbest, search: given = {} } = checkedOptions(options, method, [...SEARCHING, ...further]);
  if (given === null || typeof given !== 'object' || Array.isArray(given)) throw new ModelError('usage', `${method}: search is ${shown(given)}; expected an object with some of ${NAMES}`);
  /** @type {Partial<SearchConfig>} */
  const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  for (const [name, value] of Object.entries(settings)) {
    if (!Object.hasOwn(SETTINGS, name)) throw new ModelError('usage', `${method}: search.${name} is no setting of this package; it has ${NAMES}`);
    check(`${method}: search.${name}`, value, SETTINGS[name]);
  }
  check(`${method}: beam`, beam, whole(0, MOST_HYPOTHESES));
  if (nbest !== undefined) check(`${method}: nbest`, nbest, SETTINGS.nbest);
  const config = { ...own, ...settings }, outputs = nbest ?? settings.nbest ?? 1;
  return { ...config, beam: Math.max(beam || config.beam, outputs), nbest: outputs };
}

/** Name of the first setting of a model that no search can follow; empty = none. @param {Record<string, unknown> | undefined} own */
export function brokenSetting(own) {
  return Object.keys(SETTINGS).find((name) => !SETTINGS[name].has(own?.[name])) ?? '';
}

/**
 * Options of a method, which are an object with no other names than its own, and whose signal is one.
 * @template {{ signal?: AbortSignal }} Options
 * @param {Options} options @param {string} method @param {readonly string[]} [names] of its options
 * @returns {Options}
 */
export function checkedOptions(options, method, names = ['signal']) {
  if (options === null || typeof options !== 'object') throw new ModelError('usage', `${method}: the options are ${shown(options)}; expected an object such as { signal }`);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || names.includes(name)) continue;
    const place = names.includes('search') && Object.hasOwn(SETTINGS, name) ? `; ${name} is a setting of search: { search: { ${name} } }` : '';
    throw new ModelError('usage', `${method}: ${name} is no option of this method; it has ${names.join(', ')}${place}`);
  }
  const { signal } = options;
  if (signal && typeof signal.throwIfAborted !== 'function') throw new ModelError('usage', `${method}: signal is ${shown(signal)}; expected an AbortSignal`);
  return options;
}

/** @param {string} place @param {unknown} value @param {Range} range */
function check(place, value, { expected, has }) {
  if (!has(value)) throw new ModelError('usage', `${place} is ${shown(value)}; expected ${expected}`);
}

/** A value of any kind in a message. @param {unknown} value */
export function shown(value) {
  if (Array.isArray(value)) return 'a list';
  return value !== null && ['object', 'function'].includes(typeof value) ? `of type ${typeof value}` : typeof value === 'string' ? `'${value.slice(0, 50)}'` : String(value);
}
