// Source of the page's data: the server that sent the page, the data inside an offline file, or the model inside one.
import { t } from './text.js';

const stored = document.getElementById('view-data');
// Views of models that do not translate, by task.
export const TASK_VIEWS = { classification: 'classify', answering: 'answer', captioning: 'caption' };
// Longest text that the page takes, as in heedful.predictors.page_requests.
export const MOST_CHARACTERS = 5000;
export const offline = stored ? JSON.parse(stored.textContent) : null;

export class Refusal extends Error {
  // The key of a text of the page, if one says what the message says.
  constructor(message, status, key = '') {
    super(message);
    this.status = status;
    this.key = key;
  }
}
// The server wants a key, and has refused the one sent, or none was sent.
export class KeyNeeded extends Refusal {}

const KEY = 'heedful.key';

// The key lives in the session of this tab alone: never in the address, nor on disk.
export function storedKey() {
  try { return sessionStorage.getItem(KEY) ?? ''; } catch { return ''; }
}
export function storeKey(key) {
  try { if (key) sessionStorage.setItem(KEY, key); else sessionStorage.removeItem(KEY); } catch { /* without storage the page asks again */ }
}

async function ask(path, body) {
  const key = storedKey(), isPicture = body instanceof Blob;
  const kind = !isPicture ? 'application/json' : body.type.startsWith('image/') ? body.type : 'application/octet-stream';
  const headers = { ...(body ? { 'Content-Type': kind } : {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const answer = await fetch(path, body ? { method: 'POST', headers, body: isPicture ? body : JSON.stringify(body) } : { headers });
  const result = await answer.json().catch(() => ({ error: answer.statusText }));
  if (answer.status === 403 && /api key/i.test(result.error ?? '')) throw new KeyNeeded(result.error, answer.status);
  if (!answer.ok) throw new Refusal(result.error ?? answer.statusText, answer.status);
  return result;
}

// What the reader sees of an error. Messages of the server are English, so another language has the status instead.
export function complaint(error) {
  if (error instanceof Refusal) return error.key ? t(error.key, error.message) : t('failed', error.message, error.status);
  return t('unreachable');
}

// Whole texts are refused, so that nobody takes the translation of a part for that of all.
export function refuseLong(request) {
  if (request.text?.length > MOST_CHARACTERS || request.question?.length > MOST_CHARACTERS) throw new Refusal('', 0, 'tooLong');
}

const server = {
  views: (task) => (task === 'translation' ? ['translate', 'inside', 'search', 'compare', 'evaluate', 'training', 'learn'] : [TASK_VIEWS[task], 'training', 'learn']),
  models: () => ask('page/models'),
  view: async (request) => {
    refuseLong(request);
    return request.picture ? ask(`page/view?model=${encodeURIComponent(request.model)}`, request.picture.blob) : ask('page/view', request);
  },
  evaluation: (model) => ask(`page/evaluation?model=${encodeURIComponent(model)}`),
  training: (model) => ask(`page/training?model=${encodeURIComponent(model)}`),
  sendLinks: (links) => ask('page/links', links),
};
const file = {
  views: () => ['translate', 'inside', ...(offline.searches.length ? ['search'] : []), ...(offline.evaluation?.metrics.length ? ['evaluate'] : []), 'learn'],
  models: async () => ({ models: [{ name: offline.model, languages: offline.languages }] }),
  view: async () => offline,
  evaluation: async () => offline.evaluation,
};
let source = offline ? file : server;

// A third source is a model inside the file (heedful/pages/standalone).
export function useSource(other) { source = other; }
// Task of the only model, where it is known before the models are listed; empty = it is not.
export const usualTask = () => source.task ?? '';
export const views = (task) => source.views(task);
export const models = () => source.models();
// A request of a captioner has a picture, others have texts.
export const view = (request) => source.view(request);
export const evaluation = (model) => source.evaluation(model);
export const training = (model) => source.training(model);
export const sendLinks = (links) => source.sendLinks(links);
// Milliseconds without a key after which a text is translated.
export const delay = () => source.delay ?? 300;
// Line about the model below the page, where the source has one.
export const about = () => source.about?.() ?? null;
