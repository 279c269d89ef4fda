// Engine of the page: the model, in a worker, or in the page itself where the browser starts no worker.
// Messages to it: { open: { runtime, model } }, both in base64, then { id, request }. From it: { begun }, { opened }, and
// { id, view }; a message with `fault` in place of the result says why there is none.
import { bytesOf, gunzip } from '../../js/archive.js';
import { load } from '../../js/load.js';
import { ort } from '../../js/runtime/ort.js';
import { checkWebAssembly } from '../../js/runtimes.js';
import { VIEWS } from './views.js';

function serve(port) {
  let opened = null, running = null, before = Promise.resolve();

  async function answer(message, result, work) {
    try {
      port.postMessage({ ...message, [result]: await work() });
    } catch ({ name, code, message: fault }) {
      port.postMessage({ ...message, fault: { name, code, message: fault } });
    }
  }

  // One request at a time: a newer one ends the one before.
  function latest(request) {
    running?.abort();
    const controller = new AbortController(), after = before;
    running = controller;
    const work = async () => {
      await after;
      controller.signal.throwIfAborted();
      const model = await opened;
      return VIEWS[model.facts.task](model, request, controller.signal);
    };
    const result = work();
    before = result.catch(() => {});
    return result;
  }

  port.onmessage = ({ data: { open: files, id, request } }) => {
    if (files) opened = open(files);
    answer(files ? {} : { id }, files ? 'opened' : 'view', () => (files ? opened.then(() => true) : latest(request)));
  };
  port.postMessage({ begun: true });
}

async function open({ runtime, model }) {
  checkWebAssembly();
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = await gunzip(bytesOf(runtime));
  const result = await load(bytesOf(model), { ort });
  ort.env.wasm.wasmBinary = undefined;
  return result;
}

if (typeof document === 'undefined') {
  // What fails without an answer becomes an error of the worker, so that the page does not wait for ever.
  self.onunhandledrejection = ({ reason }) => { throw reason; };
  serve(self);
} else {
  addEventListener('heedful-engine', ({ detail: port }) => serve(port), { once: true });
}
