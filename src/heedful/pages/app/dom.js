// Elements of HTML and SVG from a name, properties and children; text is always text, never markup.
const NAMESPACE = 'http://www.w3.org/2000/svg';

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.entries(value).forEach(([key, each]) => element.style.setProperty(key, each));
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function g(name, properties, ...children) {
  return fill(document.createElementNS(NAMESPACE, name), properties, children);
}

// What makes a button of an element whose text a reader can select, as in Firefox nobody can in a button.
export function pressable(act) {
  return { role: 'button', tabindex: 0, onclick: act, onkeydown: (event) => { if (['Enter', ' '].includes(event.key)) { event.preventDefault(); act(); } } };
}

export function segments(label, options, chosen, choose) {
  return h('div', { class: 'segments', role: 'group', 'aria-label': label }, options.map(([key, text]) =>
    h('button', { type: 'button', 'aria-pressed': String(key === chosen), onclick: () => choose(key) }, text)));
}

// change runs while the slider moves; settle once it stands still.
export function slider(label, { value, ...properties }, show, change, settle) {
  const output = h('output', {}, show(Number(value)));
  const input = h('input', { type: 'range', ...properties, value, oninput: () => {
    output.textContent = show(Number(input.value));
    change?.(Number(input.value));
  }, onchange: () => settle?.(Number(input.value)) });
  return h('label', {}, h('span', {}, label, ' ', output), input);
}
