// Small pieces that several views show.
import { access, mayChange } from './api.js';
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

/** A button that changes something: off when the token is known not to allow that. */
export function action(label, run, { kind = null, title = null, signal = null } = {}) {
  const button = h('button', { type: 'button', class: kind, title, onclick: async () => {
    button.disabled = true;
    try {
      await run();
    } finally {
      allow();
    }
  } }, label);
  const allow = () => {
    button.disabled = !mayChange();
    button.title = mayChange() ? title ?? '' : 'Your token allows you to look, not to change anything';
  };
  allow();
  access.addEventListener('change', allow, signal ? { signal } : undefined);
  return button;
}

/** For who sees an empty server: what to do first. */
export function firstSteps() {
  const here = location.origin;
  return h('section', { class: 'card' }, h('h2', {}, 'Nothing here yet. Schedule a first task:'),
    h('p', { class: 'lead' }, 'A task waits on disk until it is due; then a worker takes it, and says when it is done.'),
    h('ol', { class: 'steps' },
      h('li', {}, h('p', {}, 'A task that is due in 30 seconds'),
        copyable(`curl -s ${here}/v1/tasks -d '{"queue":"mail","payload":{"to":"ada"},"delay":"30s"}'`)),
      h('li', {}, h('p', {}, 'Be its worker: wait for it'),
        copyable(`curl -s ${here}/v1/queues/mail/lease -d '{"wait":"60s","worker":"me"}'`)),
      h('li', {}, h('p', {}, 'Say that it is done, with the lease from the answer'),
        copyable(`curl -s ${here}/v1/leases/complete -d '{"leases":["LEASE"]}'`))),
    h('p', { class: 'note' }, 'This page shows each step as it happens. Watch the ',
      h('a', { href: '#/wheel' }, 'wheel'), ' meanwhile.'));
}
