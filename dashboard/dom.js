// Builds the page's elements. Text from users, workers or other programs (payloads, keys, errors,
// names) becomes a text node or the value of an attribute, and is never parsed as markup. No other
// code in this folder makes elements; tests/browser checks this.

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

/** h('p', {class: 'note', onclick: f}, 'text', node, [more]); null and false are left out. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** h() for SVG. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Replaces the children of `element`. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** A name that can break into the next line after a dot, a hyphen, a slash or a colon, and within very long words. */
export const breakable = (name, at = /(?<=[.\-_/:])|(?<=[^.\-_/:]{16})/) => name.split(at).flatMap((part, i) => (i === 0 ? [part] : [h('wbr'), part]));

/** Sets a text only if it differs, to avoid a needless layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const outage = new EventTarget(); // 'over'
let isOut = false;
/** While the server does not answer, only the code that watches for it sends requests. */
export function setOut(isOutNow) {
  const isOver = isOut && !isOutNow;
  isOut = isOutNow;
  if (isOver) outage.dispatchEvent(new Event('over'));
}

/**
 * Calls `run` now and then every `period` ms, or after the number of ms that it returns. It does so
 * while the page is visible and the server answers, until `signal` aborts. Returns a function that
 * calls `run` immediately.
 */
export function every(period, signal, run, { always = false } = {}) {
  let timer = 0;
  let running = false;
  const tick = async () => {
    clearTimeout(timer);
    if (running || signal.aborted || document.hidden || (isOut && !always)) return;
    running = true;
    let wait;
    try {
      wait = await run();
    } finally {
      running = false;
    }
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(tick, typeof wait === 'number' ? wait : period);
  };
  document.addEventListener('visibilitychange', tick, { signal });
  outage.addEventListener('over', tick, { signal });
  signal.addEventListener('abort', () => clearTimeout(timer));
  tick();
  return tick;
}

/** A signal that aborts with `signal`, and while the page is hidden: a browser has few connections for all its tabs. */
export function whileVisible(signal) {
  const ended = new AbortController();
  const end = () => ended.abort();
  if (signal.aborted || document.hidden) end();
  signal.addEventListener('abort', end, { signal: ended.signal });
  document.addEventListener('visibilitychange', () => document.hidden && end(), { signal: ended.signal });
  return ended.signal;
}

/** Delays a call by `wait` ms. Of calls that follow each other faster, only the last runs. */
export function debounce(wait, run) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), wait);
  };
}
