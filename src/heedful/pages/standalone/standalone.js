// Start of the page with a model inside its file.
import { gunzip } from '../../js/archive.js';
import { ModelError } from '../../js/errors.js';
import { load } from '../../js/load.js';
import { ort } from '../../js/runtime/ort.js';
import { useSource } from '../app/api.js';
import { start } from '../app/page.js';
import { localSource } from './local.js';

// Bytes of an element of the page, which is emptied.
function bytesOf(id) {
  const element = document.getElementById(id);
  if (!element) throw new ModelError('damaged', 'the file is cut; copy it again');
  let text;
  try {
    text = atob(element.textContent);
  } catch (error) {
    throw new ModelError('damaged', 'the file is cut or changed; copy it again', error);
  }
  element.remove();
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}

async function open() {
  await new Promise((go) => { setTimeout(go); }); // the page is drawn first
  if (typeof WebAssembly === 'undefined') throw new ModelError('runtime', 'WebAssembly is switched off');
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = await gunzip(bytesOf('runtime-data'));
  const model = await load(bytesOf('model-data'), { ort });
  ort.env.wasm.wasmBinary = undefined;
  return model;
}

const facts = JSON.parse(document.getElementById('model-facts').textContent);
useSource(localSource(facts, open()));
start();
