// Connection of the page with its engine, which runs in a worker, so that the page answers while the model computes.
import { ModelError } from '../../js/errors.js';
import { Refusal } from '../app/api.js';

// Start the engine and open the model. `script` is the engine's; `files` are the runtime and the model, in base64.
export async function connect(script, files) {
  const connection = new Connection(await inWorker(script) ?? await here(script));
  connection.port.postMessage({ open: files });
  await connection.opened;
  return connection;
}

class Connection {
  constructor(port) {
    this.port = port;
    this.asked = new Map();
    this.count = 0;
    this.opened = new Promise((...settle) => { this.asked.set(undefined, settle); });
    port.onmessage = ({ data }) => this.take(data);
    // A worker ends by itself where there is no memory left.
    port.onerror = ({ message }) => { for (const id of [...this.asked.keys()]) this.take({ id, fault: new ModelError('runtime', message ?? 'the worker ended') }); };
  }

  ask(request) {
    this.count += 1;
    return new Promise((...settle) => {
      this.asked.set(this.count, settle);
      this.port.postMessage({ id: this.count, request: { ...request } });
    });
  }

  take({ id, view, opened, fault }) {
    const [resolve, reject] = this.asked.get(id) ?? [];
    this.asked.delete(id);
    if (fault) reject?.(said(fault)); else resolve?.(view ?? opened);
  }
}

// An error of the engine as the page says it.
export function said({ name, code, message }) {
  if (code === 'runtime') console.warn(message); // in words of the browser, which help its developers alone
  return name === 'AbortError' ? Object.assign(new Error(message), { name }) : new Refusal(message, 0, `fault_${code ?? 'other'}`);
}

// The engine in a worker; null where the browser starts none.
function inWorker(script) {
  return new Promise((resolve) => {
    let worker;
    const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    const end = (result) => { URL.revokeObjectURL(address); resolve(result); };
    try {
      worker = new Worker(address);
    } catch {
      end(null);
      return;
    }
    worker.onmessage = () => end(worker);
    worker.onerror = (event) => { event.preventDefault(); worker.terminate(); end(null); };
  });
}

// The engine in the page, which draws between the steps of a search.
function here(script) {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel(), element = document.createElement('script');
    port1.onmessage = () => resolve(port1);
    element.textContent = script;
    document.head.append(element); // it runs at once
    dispatchEvent(new CustomEvent('heedful-engine', { detail: port2 }));
  });
}
