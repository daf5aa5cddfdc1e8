// Builds the page's elements. Whatever a user, a worker or another program has written (payloads,
// keys, errors, names) becomes a text node or an attribute's value and is never read as markup:
// there is no other way to make elements in this folder, and tests/browser looks that there is none.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'selected') element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** h('p', {class: 'note', onclick: f}, 'text', node, [more]); what is null or false is left out. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Gives `element` these children instead of those it has. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** A name that may go on in the next line behind a dot, a hyphen, a slash or a colon. */
export const breakable = (name) => name.split(/(?<=[.\-_/:])/).flatMap((part, i) => (i === 0 ? [part] : [h('wbr'), part]));

/** Sets a text only when it differs, so that nothing is laid out anew for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Calls `run` now and every `period` ms while the page is looked at, until `signal` aborts. */
export function every(period, signal, run) {
  let timer = 0;
  let running = false;
  const tick = async () => {
    clearTimeout(timer);
    if (running || signal.aborted || document.hidden) return;
    running = true;
    try {
      await run();
    } finally {
      running = false;
    }
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(tick, period);
  };
  document.addEventListener('visibilitychange', tick, { signal });
  signal.addEventListener('abort', () => clearTimeout(timer));
  return tick();
}

/** The last call of a row of calls, `wait` ms after it. */
export function debounce(wait, run) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), wait);
  };
}
