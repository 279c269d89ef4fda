// Start of the page with a model inside its file.
import { bytesOf, gunzip } from '../../js/archive.js';
import { ModelError } from '../../js/errors.js';
import { useSource } from '../app/api.js';
import { start } from '../app/page.js';
import { connect, said } from './connection.js';
import { localSource } from './local.js';

// Text of an element of the page, which is removed.
function taken(id) {
  const element = document.getElementById(id);
  if (!element) throw new ModelError('damaged', 'the file is cut; copy it again');
  const text = element.textContent;
  element.remove();
  return text;
}

async function open() {
  await new Promise((go) => { setTimeout(go); }); // the page is drawn first
  try {
    const [script, model, runtime] = ['engine-script', 'model-data', 'runtime-data'].map(taken);
    const connection = await connect(new TextDecoder().decode(await gunzip(bytesOf(script))), { model, runtime });
    performance.mark('heedful-ready');
    return connection;
  } catch (error) {
    throw error instanceof ModelError ? said(error) : error;
  }
}

const facts = JSON.parse(document.getElementById('model-facts').textContent);
useSource(localSource(facts, open()));
start();
