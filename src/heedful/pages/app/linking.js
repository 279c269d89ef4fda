// Editor of word links: drawn and removed by drag, by click, or by keyboard; saved as Pharaoh lines.
import { complaint, KeyNeeded, Refusal, sendLinks } from './api.js';
import { g, h } from './dom.js';
import { download } from './exporting.js';
import { merge, matrix } from './numbers.js';
import { anchor, arrange, follow, isUpright } from './rows.js';
import { SIGNS } from './sentence.js';
import { t } from './text.js';

// Words of a text, with the index that each has among all labels.
function wordsOf(text) {
  return text.words.flatMap((word, index) => (SIGNS.includes(word) ? [] : [{ text: word.replaceAll(/\s/g, ''), index }]));
}

// Each target word linked to the source word that it attends to most, as `heedful align` does.
export function suggested(weights, sources, targets) {
  const links = new Set();
  targets.forEach(({ index: row }, target) => {
    let best = -1, most = 0;
    sources.forEach(({ index: column }, source) => {
      const weight = weights.values[row * weights.columns + column] ?? 0;
      if (weight > most) [best, most] = [source, weight];
    });
    if (best >= 0) links.add(`${best}-${target}`);
  });
  return links;
}

export function pharaoh(links) {
  return [...links].map((link) => link.split('-').map(Number)).sort((one, other) => one[0] - other[0] || one[1] - other[1]).map((pair) => pair.join('-')).join(' ');
}

// Button that opens and closes the editor.
export function linkButton(page) {
  return h('button', { type: 'button', class: 'plain', id: 'correct', 'aria-pressed': String(page.isLinking), onclick: () => { page.isLinking = !page.isLinking; page.draw(); } }, t(page.isLinking ? 'linkingDone' : 'linking'));
}

// Editor that begins with the links of `packed`, attention of the output over the source, of one head or of the mean.
export function linkEditor(page, output, packed, head = 'mean') {
  const { source } = page.data;
  const sources = wordsOf(source), targets = wordsOf(output);
  const weights = packed ? merge(matrix(packed, head), output.wordOf, source.wordOf) : null;
  const texts = [sources, targets].map((words) => words.map((word) => word.text).join(' '));
  const key = texts.join('\t');
  const initial = () => (weights ? suggested(weights, sources, targets) : new Set());
  // Corrections of all pairs of this visit, by their words.
  const links = page.links.get(key) ?? initial();
  let picked = null, dragged = null;

  const svg = g('svg', { 'aria-hidden': 'true' });
  const rubber = g('path', { class: 'rubber', visibility: 'hidden' });
  const rows = [sources, targets].map((words, side) => words.map((word, index) => h('button', {
    type: 'button', class: 'word', 'data-side': side, 'data-index': index, tabindex: index ? -1 : 0, 'aria-pressed': 'false',
    onclick: () => press(side, index), onpointerdown: (event) => begin(event, side, index), onkeydown: (event) => steer(event, side, index),
  }, word.text)));
  const node = h('div', { class: 'links editing', id: 'linking' }, svg,
    h('div', { class: 'row', role: 'group', 'aria-label': t('source'), dir: 'auto' }, rows[0]), h('div', { class: 'row lower', role: 'group', 'aria-label': t('output'), dir: 'auto' }, rows[1]));
  const line = h('code', { id: 'pharaoh' }), said = h('span', { role: 'status', class: 'small faint' });
  const send = page.takesLinks ? h('button', { type: 'button', class: 'plain', 'data-links': 'send', onclick: store }, t('linksSend')) : null;

  function toggle(from, to) {
    if (from.side === to.side) return false;
    const [one, other] = from.side === 0 ? [from.index, to.index] : [to.index, from.index];
    const link = `${one}-${other}`;
    const was = links.delete(link);
    if (!was) links.add(link);
    page.links.set(key, links);
    said.textContent = t(was ? 'linkGone' : 'linkMade', sources[one].text, targets[other].text);
    return true;
  }
  function pick(place) {
    picked = place;
    rows.forEach((words, side) => words.forEach((word, index) => word.setAttribute('aria-pressed', String(Boolean(picked) && picked.side === side && picked.index === index))));
    if (picked) said.textContent = t('linkPicked', rows[picked.side][picked.index].textContent);
  }
  function press(side, index) {
    const place = { side, index };
    if (picked && toggle(picked, place)) { pick(null); draw(); }
    else pick(picked && picked.side === side && picked.index === index ? null : place);
  }
  function steer(event, side, index) {
    const words = rows[side];
    const [back, on, ...across] = isUpright(node) ? ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'] : ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'];
    const move = { [back]: index - 1, [on]: index + 1, Home: 0, End: words.length - 1 }[event.key];
    if (event.key === 'Escape') { pick(null); said.textContent = ''; }
    if (across.includes(event.key)) {
      event.preventDefault();
      const other = rows[1 - side];
      other[Math.min(index, other.length - 1)]?.focus();
    }
    if (move !== undefined) { event.preventDefault(); words[Math.min(Math.max(move, 0), words.length - 1)].focus(); }
  }
  function begin(event, side, index) {
    if (event.button) return;
    event.target.releasePointerCapture?.(event.pointerId);
    dragged = { side, index };
    const pull = (moved) => {
      const box = node.getBoundingClientRect(), from = anchor(node, rows[dragged.side][dragged.index], dragged.side);
      rubber.setAttribute('visibility', 'visible');
      rubber.setAttribute('d', `M${from.x} ${from.y}L${moved.clientX - box.left} ${moved.clientY - box.top}`);
    };
    const end = (ended) => {
      document.removeEventListener('pointermove', pull);
      document.removeEventListener('pointerup', end);
      document.removeEventListener('pointercancel', end);
      rubber.setAttribute('visibility', 'hidden');
      const word = ended.type === 'pointerup' ? document.elementFromPoint(ended.clientX, ended.clientY)?.closest?.('#linking .word') : null;
      if (word && toggle(dragged, { side: Number(word.dataset.side), index: Number(word.dataset.index) })) { pick(null); draw(); }
      dragged = null;
    };
    document.addEventListener('pointermove', pull);
    document.addEventListener('pointerup', end);
    document.addEventListener('pointercancel', end);
  }
  function draw() {
    arrange(node, rows);
    svg.replaceChildren(...[...links].map((link) => {
      const [one, other] = link.split('-').map(Number), above = anchor(node, rows[0][one], 0), below = anchor(node, rows[1][other], 1);
      return g('path', { 'data-link': link, d: `M${above.x} ${above.y}L${below.x} ${below.y}`, 'stroke-width': 2.4 });
    }), rubber);
    line.textContent = pharaoh(links) || '–';
    if (send) send.disabled = !links.size;
  }
  async function store() {
    try {
      await sendLinks({ source: texts[0], target: texts[1], links: pharaoh(links) });
      said.textContent = t('linksSent');
    } catch (error) {
      if (error instanceof KeyNeeded) { page.askKey(); return; }
      if (!(error instanceof Refusal || error instanceof TypeError)) throw error;
      said.textContent = complaint(error);
    }
  }
  function save() {
    page.links.set(key, links);
    const lines = [...page.links].map(([pair, each]) => `${pair}\t${pharaoh(each)}\n`);
    download('links.tsv', new Blob(lines, { type: 'text/tab-separated-values;charset=utf-8' }));
  }
  function change(others) {
    links.clear();
    others.forEach((link) => links.add(link));
    page.links.set(key, links);
    pick(null);
    draw();
  }
  follow(node, draw);
  return h('div', {}, h('p', { class: 'small faint' }, t('linkingNote')), node,
    h('p', { class: 'pharaoh' }, line, ' ', said),
    h('div', { class: 'end-row' },
      h('button', { type: 'button', class: 'plain', 'data-links': 'attention', onclick: () => change(initial()) }, t('linksFromAttention')),
      h('button', { type: 'button', class: 'plain', 'data-links': 'clear', onclick: () => change([]) }, t('linksClear')),
      h('button', { type: 'button', class: 'plain', 'data-links': 'save', onclick: save }, t('linksSave')), send));
}
