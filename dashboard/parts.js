// Small elements that several views use.
import { access, whyNoChange } from './api.js';
import { h } from './dom.js';
import { tell } from './dialog.js';

export const stateNode = (state) => h('span', { class: 'state', 'data-state': state }, state);

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
