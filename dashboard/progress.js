// A dialog for work that takes a while: how far it is, and a button that stops it.
import { openDialog } from './dialog.js';
import { h, setText } from './dom.js';

/**
 * Shows the dialog while `run({tell, signal})` works, and resolves with its result. tell(text, part)
 * shows a text, and a bar if `part` (0 to 1) is known. “Stop” and Escape abort `signal`; then the work
 * ends with what it has done. Rejects as `run` does.
 */
export async function withProgress(title, run) {
  const stop = new AbortController();
  const text = h('p', { role: 'status' });
  const bar = h('progress', { max: 1, 'aria-label': title });
  let close = null;
  openDialog(title, (done) => {
    close = done;
    return [text, bar, h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => stop.abort() }, 'Stop'))];
  }).then(() => stop.abort());
  try {
    return await run({ signal: stop.signal, tell(words, part = null) {
      setText(text, words);
      if (part !== null) bar.value = part;
    } });
  } finally {
    close();
  }
}
