// Source of the page's data: the server that sent the page, or the data inside an offline file.
const stored = document.getElementById('view-data');
export const offline = stored ? JSON.parse(stored.textContent) : null;

export class Refusal extends Error {}

async function ask(path, body) {
  const answer = await fetch(path, body ? { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) } : {});
  const result = await answer.json().catch(() => ({ error: answer.statusText }));
  if (!answer.ok) throw new Refusal(result.error ?? answer.statusText);
  return result;
}

export const models = () => (offline ? Promise.resolve({ models: [{ name: offline.model, languages: offline.languages }] }) : ask('page/models'));
export const view = (request) => (offline ? Promise.resolve(offline) : ask('page/view', request));
export const training = (model) => ask(`page/training?model=${encodeURIComponent(model)}`);
