// The page: its state, its address, and the view that is shown.
import { answerView } from './answer.js';
import { about, complaint, delay, KeyNeeded, MOST_CHARACTERS, models, offline, Refusal, storedKey, storeKey, usualTask, view, views } from './api.js';
import { captionView, Picture } from './caption.js';
import { classifyView } from './classify.js';
import { compareView } from './compare.js';
import { g, h, segments } from './dom.js';
import { evaluateView } from './evaluate.js';
import { insideView } from './inside.js';
import { learnView } from './learn.js';
import { searchView } from './search.js';
import { direction, setLanguage, t } from './text.js';
import { trainingView } from './training.js';
import { translateView } from './translate.js';

const VIEWS = { translate: translateView, classify: classifyView, answer: answerView, caption: captionView, inside: insideView, search: searchView, compare: compareView, evaluate: evaluateView, training: trainingView, learn: learnView };
// What the address carries; all else is lost with the tab.
const KEPT = { view: 'translate', text: '', question: '', model: '', colour: '', unit: 'word', role: 'cross', layer: -1, head: 'mean', beam: 5, alpha: 1, rank: 0, word: -1, second: '', branch: null, prefix: [], changes: [], cell: null, pruned: true, reference: '', metric: '', segment: 0, measure: offline?.measure ?? 'attention' };

function preference(name, otherwise) {
  try { return localStorage.getItem(`heedful.${name}`) ?? otherwise; } catch { return otherwise; }
}
function prefer(name, value) {
  try { localStorage.setItem(`heedful.${name}`, value); } catch { /* a file may have no storage */ }
}

const page = {
  state: { ...KEPT, node: -1 }, data: null, picture: null, models: [], isLive: !offline, isBusy: false, isBroken: false, fault: null, language: 'en', theme: 'auto', earlier: null,
  cache: new Map(), links: new Map(), isLinking: false,

  set(patch) {
    Object.assign(this.state, patch);
    this.writeAddress();
    this.draw();
  },
  output() {
    if (!this.data?.outputs?.length) return null;
    if (this.state.branch) {
      const [step, token] = this.state.branch;
      const branch = this.data.outputs[0].choices[step]?.find((choice) => choice.token === token)?.output;
      if (branch) return branch;
    }
    return this.data.outputs[Math.min(this.state.rank, this.data.outputs.length - 1)];
  },
  before() { return this.state.branch && this.data ? this.data.outputs[0] : this.earlier; },
  isElsewhere() { return Boolean(this.state.branch || this.state.rank || this.state.prefix.length); },
  goOn(output, step, choice) {
    if (choice.output) { this.set({ branch: [step, choice.token], word: -1, rank: 0 }); return; }
    this.earlier = output;
    this.state.prefix = [...output.ids.slice(0, step), choice.token];
    this.set({ word: -1, rank: 0, branch: null });
    this.load();
  },
  backToBest() {
    const wasForced = this.state.prefix.length > 0;
    this.earlier = null;
    this.set({ branch: null, rank: 0, prefix: [], word: -1 });
    if (wasForced) this.load();
  },
  // A sentence of a test set with its reference, in the first view.
  open(text, reference, question = '') {
    this.earlier = null;
    this.set({ view: this.views()[0], text, question, reference, segment: 0, prefix: [], changes: [], branch: null, rank: 0, word: -1, cell: null, node: -1 });
    this.sourceBox().value = text;
    this.questionBox().value = question;
    this.load();
    window.scrollTo({ top: 0 });
  },
  openSegment(segment) {
    this.earlier = null;
    this.set({ segment, prefix: [], changes: [], branch: null, rank: 0, word: -1, cell: null, node: -1 });
    this.load();
  },
  async begin() {
    try {
      const answer = await models();
      this.models = answer.models;
      this.takesLinks = Boolean(answer.takesLinks);
      if (!this.models.some((one) => one.name === this.state.model)) this.state.model = this.models[0]?.name ?? '';
      this.settleView();
    } catch (error) {
      this.needsKey = error instanceof KeyNeeded;
      this.fault = this.needsKey ? null : error;
      this.isBroken = Boolean(usualTask()); // a file does not mend itself, as a server may
    }
    this.draw();
    if (!this.needsKey) await this.load();
  },
  task() { return this.models.find((one) => one.name === this.state.model)?.task ?? (usualTask() || 'translation'); },
  chooseModel(model) {
    const before = this.task();
    this.state.model = model;
    if (this.task() !== before) Object.assign(this, { data: null, fault: null });
    this.set({ view: this.views().includes(this.state.view) ? this.state.view : this.views()[0], prefix: [], changes: [], branch: null, rank: 0, word: -1 });
    this.load();
  },
  take(blob) {
    if (!blob || this.isBroken) return;
    if (this.picture) URL.revokeObjectURL(this.picture.url);
    this.picture = new Picture(blob);
    this.data = null;
    this.set({ word: -1 });
    this.load();
  },
  askKey() { this.needsKey = true; this.draw(); },
  change(changes) { this.set({ changes }); this.load(); },
  request() {
    const { text, question, model, segment, prefix, beam, alpha, changes, reference, measure } = this.state;
    if (this.task() === 'classification') return { model, text };
    if (this.task() === 'answering') return { model, text, question };
    if (this.task() === 'captioning') return { model, picture: this.picture };
    return { text, model, segment, prefix, beam, alpha, changes, reference, traced: this.state.view === 'search', layers: this.state.view === 'inside', measure };
  },
  isEmpty() {
    const { text, question } = this.state;
    return this.task() === 'captioning' ? !this.picture : !text.trim() || (this.task() === 'answering' && !question.trim());
  },
  async load() {
    if (!this.isLive) return;
    // A newer call ends the one before, which may have asked for the same.
    const asked = JSON.stringify(this.request()), turn = this.turn = (this.turn ?? 0) + 1;
    if (this.isEmpty()) { this.data = null; this.isBusy = false; this.draw(); return; }
    this.isBusy = true;
    if (this.data) this.refreshBusy(); else this.draw();
    try {
      const data = this.cache.get(asked) ?? await view(this.request());
      this.cache.set(asked, data);
      if (this.cache.size > 50) this.cache.delete(this.cache.keys().next().value);
      if (this.turn !== turn) return;
      this.data = data;
      this.fault = null;
    } catch (error) {
      if (this.turn !== turn) return;
      if (error instanceof KeyNeeded) this.needsKey = true;
      this.fault = error;
      if (!(error instanceof Refusal || error instanceof TypeError)) throw error;
    } finally {
      if (this.turn === turn) { this.isBusy = false; this.draw(); }
    }
  },
  refreshBusy() { document.getElementById('output')?.classList.add('busy'); },
  notice() {
    if (this.fault) return h('p', { class: 'notice', role: 'alert' }, complaint(this.fault));
    if (this.data?.wasCut) return h('p', { class: 'notice' }, t('cut'));
    return this.state.prefix.length ? h('p', { class: 'notice' }, t('prefixKept')) : null;
  },
  // Text in place of a result.
  placeholder(key) { return this.isBroken ? null : h('p', { class: 'faint' }, t(this.isBusy ? 'working' : key)); },
  // One element for the whole life of the page, so that drawing does not disturb typing.
  sourceBox() {
    this.box ??= this.field('textarea', 'text', { id: 'source' });
    this.box.setAttribute('aria-label', t({ classification: 'textToLabel', answering: 'facts' }[this.task()] ?? 'source'));
    this.box.placeholder = this.isBroken ? '' : t({ classification: 'typeText', answering: 'typeFacts' }[this.task()] ?? 'type');
    this.box.readOnly = !this.isLive;
    this.box.disabled = this.isBroken;
    return this.box;
  },
  questionBox() {
    this.asking ??= this.field('input', 'question', { id: 'question', type: 'text', autocomplete: 'off' });
    this.asking.placeholder = this.isBroken ? '' : t('typeQuestion');
    this.asking.disabled = this.isBroken;
    return this.asking;
  },
  // A field whose text is a part of the state, and of the next request.
  field(name, key, properties) {
    const node = h(name, { spellcheck: 'false', dir: 'auto', ...properties, oninput: () => {
      this.earlier = this.data?.outputs?.[0] ?? null;
      Object.assign(this.state, { [key]: node.value, reference: '', segment: 0, prefix: [], changes: [], branch: null, rank: 0, word: -1, cell: null, node: -1 });
      this.writeAddress();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.load(), delay());
    } });
    node.value = this.state[key];
    return node;
  },
  modelChooser() {
    const name = (one) => [one.name, direction(one.languages)].filter(Boolean).join(' · ');
    if (this.models.length < 2) return h('span', {}, this.models.length ? name(this.models[0]) : '');
    return h('select', { 'aria-label': t('model'), onchange: (event) => this.chooseModel(event.target.value) },
      this.models.map((one) => h('option', { value: one.name, selected: one.name === this.state.model }, name(one))));
  },
  writeAddress() {
    const parts = new URLSearchParams();
    for (const [key, otherwise] of Object.entries(KEPT)) {
      const value = this.state[key];
      if (JSON.stringify(value) !== JSON.stringify(otherwise)) parts.set(key, typeof otherwise === 'string' ? value : JSON.stringify(value));
    }
    try { history.replaceState(null, '', `#${parts}`); } catch { /* a page within another has no address of its own */ }
  },
  readAddress() {
    const parts = new URLSearchParams(location.hash.slice(1));
    for (const [key, otherwise] of Object.entries(KEPT)) {
      this.state[key] = otherwise;
      if (!parts.has(key)) continue;
      try { this.state[key] = typeof otherwise === 'string' ? parts.get(key).slice(0, MOST_CHARACTERS + 1) : JSON.parse(parts.get(key)); } catch { /* a broken link shows the default */ }
    }
    this.settleView();
    for (const key of ['prefix', 'changes']) if (!Array.isArray(this.state[key])) this.state[key] = [];
    if (this.box) this.box.value = this.state.text;
    if (this.asking) this.asking.value = this.state.question;
  },
  views() { return views(this.task()); },
  // The view of the address, if the model has it; which models there are is not known at the beginning.
  settleView() {
    const { view } = this.state, isKnown = this.models.length || offline || usualTask() ? this.views().includes(view) : Object.hasOwn(VIEWS, view);
    if (!isKnown) this.state.view = this.views()[0];
  },
  setTheme(theme) {
    this.theme = theme;
    prefer('theme', theme);
    const isDark = theme === 'dark' || (theme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  },
  tab(key) {
    return h('button', { type: 'button', role: 'tab', id: `tab-${key}`, 'aria-selected': String(key === this.state.view), 'aria-controls': 'view', tabindex: key === this.state.view ? 0 : -1,
      onclick: () => { this.set({ view: key }); this.load(); document.getElementById(`tab-${key}`).focus(); },
      onkeydown: (event) => {
        const keys = this.views(), move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!move) return;
        event.preventDefault();
        const next = keys[(keys.indexOf(key) + move + keys.length) % keys.length];
        this.set({ view: next });
        this.load();
        document.getElementById(`tab-${next}`).focus();
      } }, t(key));
  },
  draw() {
    setLanguage(this.language);
    document.title = `${t(this.state.view)} · heedful`;
    const focus = document.activeElement?.id, typed = [this.box, this.asking].find((field) => field && field === document.activeElement), held = [typed?.selectionStart, typed?.selectionEnd];
    const tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': t('views') }, this.views().map((key) => this.tab(key)));
    const view = h('div', { id: 'view', role: 'tabpanel', 'aria-labelledby': `tab-${this.state.view}` });
    const top = h('header', { class: 'top' }, h('h1', { class: 'brand' }, logo(), 'heedful'), h('div', { class: 'tools' },
      segments(t('theme'), [['auto', t('themeAuto')], ['light', t('themeLight')], ['dark', t('themeDark')]], this.theme, (theme) => { this.setTheme(theme); this.draw(); }),
      h('button', { type: 'button', class: 'quiet', id: 'language', lang: this.language === 'zh' ? 'en' : 'zh', onclick: () => { this.language = this.language === 'zh' ? 'en' : 'zh'; prefer('language', this.language); this.draw(); } }, t('language'))));
    document.getElementById('page').replaceChildren(h('div', { class: 'frame' }, top, h('nav', { 'aria-label': t('views') }, tabs), h('main', {}, view), about()));
    view.append(this.needsKey ? keyForm(this) : needsSentence(this) ? missingSentence(this) : VIEWS[this.state.view](this));
    if (typed?.isConnected) { typed.focus(); typed.setSelectionRange(...held); } else if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  },
};

function needsSentence({ state, data }) {
  return ['inside', 'search'].includes(state.view) && !data?.outputs?.length;
}

function keyForm(page) {
  const field = h('input', { type: 'password', id: 'key', autocomplete: 'off', spellcheck: 'false', required: true, 'aria-describedby': 'key-note' });
  const wasRefused = Boolean(storedKey());
  return h('form', { class: 'card key', onsubmit: (event) => {
    event.preventDefault();
    storeKey(field.value.trim());
    page.needsKey = false;
    page.fault = null;
    page.cache.clear();
    page.begin();
  } }, h('div', { class: 'head' }, h('h2', {}, t('keyTitle'))),
  wasRefused ? h('p', { class: 'notice', role: 'alert' }, t('keyWrong')) : null,
  h('label', { for: 'key', class: 'small faint' }, t('keyLabel')), h('div', { class: 'key-row' }, field, h('button', { type: 'submit', class: 'plain' }, t('keySend'))),
  h('p', { class: 'small faint', id: 'key-note' }, t('keyNote')));
}

function missingSentence(page) {
  if (page.isBusy) return h('p', { class: 'faint' }, t('working'));
  return h('div', { class: 'stack' }, page.notice() ?? h('p', { class: 'notice' }, t('empty', t('translate'))));
}

function logo() {
  return g('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' },
    g('path', { d: 'M4 4C4 12 20 12 20 20M12 4C12 12 4 12 4 20M20 4C20 12 12 12 12 20', fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2.2, 'stroke-linecap': 'round' }));
}

export async function start() {
  const asked = new URLSearchParams(location.hash.slice(1)).get('language');  // of a site that holds the page
  page.language = ['en', 'zh'].includes(asked) ? asked : preference('language', navigator.language?.startsWith('zh') ? 'zh' : 'en');
  page.setTheme(preference('theme', 'auto'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { page.setTheme(page.theme); page.draw(); });
  page.readAddress();
  if (offline) { page.data = offline; page.state.text = offline.source.text; page.state.alpha = location.hash.includes('alpha=') ? page.state.alpha : offline.alpha; }
  page.draw();
  window.addEventListener('hashchange', () => { page.readAddress(); page.draw(); page.load(); });
  await page.begin();
}
