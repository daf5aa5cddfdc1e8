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

const outage = new EventTarget(); // 'over'
let isOut = false;
/** While the server does not answer, only who watches for it asks it anything. */
export function setOut(isOutNow) {
  const isOver = isOut && !isOutNow;
  isOut = isOutNow;
  if (isOver) outage.dispatchEvent(new Event('over'));
}

/**
 * Calls `run` now and every `period` ms, or after the ms that it returns, while the page is looked at
 * and the server answers, until `signal` aborts. Returns what calls it at once, out of turn.
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

/** The last call of a row of calls, `wait` ms after it. */
export function debounce(wait, run) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), wait);
  };
}
