// Probabilities of labels or answers as bars, the most probable first.
import { h } from './dom.js';
import { percent } from './numbers.js';

const MOST_SHOWN = 6;

export function shares(pairs) {
  return h('ul', { class: 'shares' }, pairs.slice(0, MOST_SHOWN).map(([name, share]) => h('li', {},
    h('span', { class: 'what', dir: 'auto' }, name || '∅'),
    h('span', { class: 'share' }, h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { style: { width: `${100 * share}%` } })), ' ', h('span', { class: 'number' }, percent(share))))));
}

// Word on a shade of its value: the accent for a positive one, the second colour for a negative one.
export function shaded(text, value, largest, properties = {}) {
  const core = text.trim(), size = largest > 0 ? Math.abs(value) / largest : 0;
  if (!core) return text;
  const colour = value < 0 ? '--against-shade' : '--accent-shade', strength = size < 0.05 ? 0 : Math.round(60 * size);
  const space = text.slice(0, text.length - text.trimStart().length);
  return [space, h('span', { class: 'weighed', style: { 'background-color': `color-mix(in srgb, var(${colour}) ${strength}%, transparent)` }, ...properties }, core)];
}
