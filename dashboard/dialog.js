// Questions to the viewer (native <dialog>: the focus stays inside, Escape closes) and short messages.
import { h, replace } from './dom.js';

/** Shows `content` as a dialog; resolves with the argument of its close(), null when dismissed. */
export function openDialog(title, makeContent) {
  return new Promise((resolve) => {
    let answer = null;
    const close = (value = null) => {
      answer = value;
      dialog.close();
    };
    const heading = h('h2', { id: 'dialog-title' }, title);
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, heading);
    dialog.append(...[makeContent(close)].flat());
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const buttons = (close, verb, kind) => h('div', { class: 'buttons' },
  h('button', { type: 'button', onclick: () => close(null) }, 'Cancel'),
  h('button', { type: 'submit', class: kind }, verb));

/** A form with a verb. It resolves with the result of `read`, which throws (or rejects) on wrong input. */
export function askForm(title, verb, { kind = 'primary', fields, read }) {
  return openDialog(title, (close) => {
    const wrong = h('p', { class: 'wrong', role: 'alert' });
    const submit = async (event) => {
      event.preventDefault();
      try {
        close(await read());
      } catch (error) {
        replace(wrong, error.message);
      }
    };
    return h('form', { method: 'dialog', onsubmit: submit }, fields, wrong, buttons(close, verb, kind));
  });
}

/** Resolves with true when the viewer agrees. With `typed`, the viewer must first type this text. */
export async function confirmed(title, text, verb, { typed = null, kind = 'danger' } = {}) {
  const input = typed === null ? null
    : h('input', { autocomplete: 'off', spellcheck: 'false', 'aria-label': `Type ${typed} to confirm` });
  const answer = await askForm(title, verb, {
    kind,
    fields: [
      h('p', {}, text),
      input && h('label', {}, h('span', {}, 'Type ', h('code', {}, typed), ' to confirm'), input),
    ],
    read: () => {
      if (input && input.value !== typed) throw new Error('This is a different name.');
      return true;
    },
  });
  return answer === true;
}

/** Asks the viewer for a token, until there is one. */
export async function askForToken(wasRefused) {
  for (;;) {
    const input = h('input', { type: 'password', autocomplete: 'current-password', name: 'token',
      'aria-label': 'Token', required: true });
    const token = await askForm('This server asks for a token', 'Sign in', {
      fields: [
        h('p', {}, wasRefused ? 'That token is not valid here, or not any more.'
          : 'It is kept for this tab, and sent to this server only.'),
        h('label', {}, h('span', {}, 'Token'), input),
      ],
      read: () => input.value.trim(),
    });
    if (token) return token;
  }
}

/** A message that disappears after some seconds; a failure stays until it is dismissed. */
export function tell(text, { failed = false } = {}) {
  const box = document.getElementById('messages');
  const message = h('div', { class: failed ? 'message failed' : 'message', role: failed ? 'alert' : 'status' },
    h('span', {}, text),
    h('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', onclick: () => message.remove() }, '×'));
  box.append(message);
  while (box.children.length > 3) box.firstElementChild.remove();
  if (!failed) setTimeout(() => message.remove(), 5_000);
}

/** Runs an action of the viewer and shows an error if it fails. Returns whether it succeeded. */
export async function attempt(run, done) {
  try {
    const result = await run();
    if (done) tell(typeof done === 'function' ? done(result) : done);
    return true;
  } catch (error) {
    if (error.name !== 'AbortError') tell(error.message, { failed: true });
    return false;
  }
}
