// The red banner over the whole width: the server does not answer, cannot work, or has almost no free
// disk space. While figures are old, the page is dimmed and the banner says how old they are.
import { h, setText } from './dom.js';
import { bytes, duration } from './format.js';
import { onLive, tryAgain } from './live.js';

const LEAST_FREE = 256 * 1024 * 1024; // bytes of disk; below this an operator must act, if no limit is set
const OLD = 15_000; // ms; figures come at least every ten seconds

/** The problem, in a sentence; null when there is no problem. */
export function trouble({ state, problem, stats }) {
  if (state === 'lost') return 'The server does not answer.';
  if (state === 'failed') return `The server cannot accept tasks or hand them out: ${problem}`;
  const free = stats?.data_free_bytes;
  const limit = stats?.data_min_free_bytes || 0;
  if (stats?.refuses_tasks) {
    return `The disk of the data folder is nearly full: ${bytes(free)} are free. The server refuses new tasks; workers can lease and complete tasks.`;
  }
  if (free !== undefined && free < (2 * limit || LEAST_FREE)) {
    const end = limit ? `The server refuses new tasks below ${bytes(limit)}.` : 'The server stops accepting tasks when no space is left.';
    return `The disk of the data folder is nearly full: ${bytes(free)} are free. ${end}`;
  }
  return null;
}

/** The age of the figures, and the time of the next request to the server. */
export function ageText({ state, seenAt, nextTryAt }, now = Date.now()) {
  const age = seenAt === null ? 'There are no figures yet' : `The figures are ${duration(Math.round((now - seenAt) / 1_000) * 1_000)} old`;
  const wait = Math.max(0, Math.ceil((nextTryAt - now) / 1_000));
  return state === 'lost' ? `${age}; next try in ${wait}\u00a0s.` : `${age}.`;
}

export function makeBanner() {
  const what = h('strong', { role: 'alert' });
  const age = h('span');
  const again = h('button', { type: 'button', onclick: tryAgain }, 'Try now');
  const banner = h('div', { class: 'banner', hidden: true }, what, age, again);
  let live = { state: 'connecting', seenAt: null };
  const draw = () => {
    const text = trouble(live);
    const isOld = live.state === 'lost' || (live.seenAt !== null && Date.now() - live.seenAt > OLD);
    banner.hidden = text === null;
    setText(what, text ?? '');
    age.hidden = !isOld;
    if (isOld) setText(age, ageText(live));
    again.hidden = live.state !== 'lost';
    document.body.classList.toggle('old', isOld && text !== null);
  };
  onLive((next) => {
    live = next;
    draw();
  });
  setInterval(draw, 1_000);
  return banner;
}
