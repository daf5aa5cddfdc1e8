// Small elements that several views use.
import { access, whyNoChange } from './api.js';
import { h, setText } from './dom.js';
import { icon } from './icons.js';
import { tell } from './dialog.js';

export const stateNode = (state) => h('span', { class: 'state', 'data-state': state }, state);

/** A line of a list of facts (dl.facts). */
export const fact = (name, ...value) => [h('dt', {}, name), h('dd', {}, value)];

/** A figure with its name: {element, set(text, title)}. */
export function tile(name, hint, { link = null, isSmall = false } = {}) {
  const value = h('span', { class: 'value' }, '–');
  const element = h(link ? 'a' : 'div', { class: isSmall ? 'card tile small' : 'card tile', href: link },
    h('span', { class: 'name' }, name), value, hint !== '' && h('span', { class: 'hint' }, hint));
  return { element, set(text, full) {
    setText(value, text);
    if (full) value.title = full;
  } };
}

/** A row of buttons of which one is pressed: {element, press(value)}. `choices`: [value, text]. */
export function tabs(label, choices, onChoice) {
  const buttons = choices.map(([value, text]) => h('button', { type: 'button', onclick: () => {
    press(value);
    onChoice(value);
  } }, text));
  const press = (value) => buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(choices[i][0] === value)));
  press(choices[0][0]);
  return { element: h('div', { class: 'tabs', role: 'group', 'aria-label': label }, buttons), press };
}

/** Text that can be copied with one click. */
export function copyable(text, label) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      tell('Copied.');
    } catch {
      getSelection().selectAllChildren(pre);
      tell('It is selected: copy it with your keyboard.');
    }
  };
  const pre = h('pre', {}, h('code', {}, text));
  return h('div', { class: 'copyable' }, pre,
    h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: copy }, label ?? 'Copy')));
}

/** Keeps a button disabled while the token or the server allows no change. Returns a function that checks again. */
export function offWhenRefused(button, { title = null, signal = null } = {}) {
  const look = () => {
    button.disabled = whyNoChange() !== null;
    button.title = whyNoChange() ?? title ?? '';
  };
  look();
  access.addEventListener('change', look, signal ? { signal } : undefined);
  return look;
}

/** A button that changes something. */
export function action(label, run, { kind = null, title = null, signal = null } = {}) {
  const button = h('button', { type: 'button', class: kind, onclick: async () => {
    button.disabled = true;
    try {
      await run();
    } finally {
      look();
    }
  } }, label);
  const look = offWhenRefused(button, { title, signal });
  return button;
}

/** The actions of a line of a table: in a row, or in a menu where the table needs the room (style.css). */
export function actionMenu(name, buttons) {
  const list = h('div', { class: 'buttons', popover: 'auto', onclick: () => list.hidePopover() }, buttons);
  const open = h('button', { type: 'button', class: 'quiet', 'aria-label': `Actions of ${name}` }, icon('menu'));
  open.popoverTargetElement = list;
  list.addEventListener('toggle', () => {
    const { right, bottom } = open.getBoundingClientRect();
    list.style.left = `${Math.max(8, right - list.offsetWidth)}px`;
    list.style.top = `${Math.min(bottom + 4, innerHeight - list.offsetHeight - 8)}px`;
  });
  return h('div', { class: 'menu' }, open, list);
}

/** Shown if the queues that the token may read have no tasks. */
export const NO_VISIBLE_TASKS = 'No tasks in the queues that this token may see.';

/** Shown for an empty server: the first steps. */
export function firstSteps() {
  const here = location.origin;
  return h('section', { class: 'card' }, h('h2', {}, 'Nothing here yet. Schedule a first task:'),
    h('p', { class: 'lead' }, 'A task waits on disk until it is due. Then a worker takes it, and reports when it is done.'),
    h('ol', { class: 'steps' },
      h('li', {}, h('p', {}, 'A task that is due in 30 seconds'),
        copyable(`curl -s ${here}/v1/tasks -d '{"queue":"mail","payload":{"to":"ada"},"delay":"30s"}'`)),
      h('li', {}, h('p', {}, 'Be its worker: wait for it'),
        copyable(`curl -s ${here}/v1/queues/mail/lease -d '{"wait":"60s","worker":"me"}'`)),
      h('li', {}, h('p', {}, 'Report that it is done, with the lease from the answer'),
        copyable(`curl -s ${here}/v1/leases/complete -d '{"leases":["LEASE"]}'`))),
    h('p', { class: 'note' }, 'This page shows each step as it happens. Watch the ',
      h('a', { href: '#/wheel' }, 'wheel'), ' meanwhile.'));
}
