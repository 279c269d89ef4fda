// Source of the page's data: the server that sent the page, or the data inside an offline file.
import { t } from './text.js';

const stored = document.getElementById('view-data');
export const offline = stored ? JSON.parse(stored.textContent) : null;

export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
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
  const key = storedKey();
  const headers = { ...(body ? { 'Content-Type': 'application/json' } : {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const answer = await fetch(path, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
  const result = await answer.json().catch(() => ({ error: answer.statusText }));
  if (answer.status === 403 && /api key/i.test(result.error ?? '')) throw new KeyNeeded(result.error, answer.status);
  if (!answer.ok) throw new Refusal(result.error ?? answer.statusText, answer.status);
  return result;
}

// What the reader sees of an error. Messages of the server are English, so another language has the status instead.
export const complaint = (error) => (error instanceof Refusal ? t('failed', error.message, error.status) : t('unreachable'));

export const models = () => (offline ? Promise.resolve({ models: [{ name: offline.model, languages: offline.languages }] }) : ask('page/models'));
export const view = (request) => (offline ? Promise.resolve(offline) : ask('page/view', request));
export const evaluation = (model) => (offline ? Promise.resolve(offline.evaluation) : ask(`page/evaluation?model=${encodeURIComponent(model)}`));
export const sendLinks = (links) => ask('page/links', links);
export const training = (model) => ask(`page/training?model=${encodeURIComponent(model)}`);
