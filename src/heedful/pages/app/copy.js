// Button that copies a text.
import { h } from './dom.js';
import { t } from './text.js';

const SHOWN = 1500; // milliseconds

// `find` gives the element that shows the text.
export function copyButton(text, find) {
  const button = h('button', { type: 'button', class: 'quiet copy', 'aria-label': t('copyOutput'), onclick: async () => {
    button.textContent = t(await copied(text, find()) ? 'copied' : 'selected');
    button.removeAttribute('aria-label'); // which would hide what it says now
    setTimeout(() => { button.textContent = t('copy'); button.setAttribute('aria-label', t('copyOutput')); }, SHOWN);
  } }, t('copy'));
  return button;
}

// A page that came by http has no clipboard: there the text is selected, and the browser may still copy what is.
async function copied(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand('copy');
  }
}
