// The figures of one queue over time, while its page is open. The server keeps no history of a single
// queue. So the page counts the changes of the queue's tasks from /v1/events, and requests the queue
// every two seconds. It keeps the figures of the last hour for the queues that were looked at last.
import { get, stream, withQuery } from './api.js';
import { every, whileVisible } from './dom.js';
import { perSecond } from './histogram.js';
import { pathOf } from './queue_actions.js';

const PERIOD = 2_000;
const HOUR = 3_600_000;
const MOST_QUEUES = 8; // whose figures are kept

/** The figures, and the changes of tasks that they count. */
export const FIGURES = { scheduled: ['scheduled'], leased: ['leased'], completed: ['completed'], failed: ['failed', 'expired'], died: ['dead'] };
const FIGURE_OF = Object.fromEntries(Object.entries(FIGURES).flatMap(([figure, changes]) => changes.map((change) => [change, figure])));
const none = () => Object.fromEntries(Object.keys(FIGURES).map((figure) => [figure, 0]));

/**
 * The events of a span, counted by figure. The server sends at most 200 changes a second, and the
 * number of changes that it left out. These count in proportion to the changes that it sent.
 */
export class ChangeCount {
  #counts = none();
  #seen = 0;
  #missed = 0;

  add(name, data) {
    if (name === 'missed') this.#missed += data.missed ?? 0;
    if (name !== 'task') return;
    ++this.#seen;
    if (data.change in FIGURE_OF) ++this.#counts[FIGURE_OF[data.change]];
  }

  /** {rates, isEstimate}, and begins again. */
  take(ms) {
    const scale = this.#seen === 0 ? 1 : (this.#seen + this.#missed) / this.#seen;
    const rates = Object.fromEntries(Object.entries(this.#counts).map(([figure, n]) => [figure, perSecond(n * scale, ms)]));
    const isEstimate = this.#missed > 0;
    this.#counts = none();
    this.#seen = this.#missed = 0;
    return { rates, isEstimate };
  }
}

const kept = new Map(); // queue → samples {at, rates, isEstimate, age, ready}, oldest first
const NO_RATES = Object.fromEntries(Object.keys(FIGURES).map((figure) => [figure, null]));

function samplesOf(name) {
  const samples = kept.get(name) ?? [];
  kept.delete(name);
  kept.set(name, samples); // the latest at the end
  if (kept.size > MOST_QUEUES) kept.delete(kept.keys().next().value);
  if (samples.length > 0) samples.push({ at: samples.at(-1).at + 1, rates: NO_RATES, age: null, ready: null }); // a gap in the lines
  return samples;
}

/** Calls `on({queue, samples, error})` every two seconds, until `signal`. Returns a function that requests the queue now. */
export function followQueue(name, signal, on) {
  const samples = samplesOf(name);
  const counted = new ChangeCount();
  let isOpen = false;
  let isRefused = false; // the token may not read events
  let last = Date.now();
  every(PERIOD, signal, async () => {
    if (isRefused) return;
    isOpen = true;
    try {
      await stream(withQuery('/v1/events', { types: 'task', queue: name }), whileVisible(signal), (event, data) => counted.add(event, data));
    } catch (error) {
      isRefused = error.status === 403;
    } finally {
      isOpen = false;
    }
  });
  return every(PERIOD, signal, async () => {
    try {
      const queue = await get(pathOf(name), signal);
      const now = Date.now();
      const { rates, isEstimate } = counted.take(now - last);
      last = now;
      samples.push({ at: now, rates: isOpen ? rates : NO_RATES, isEstimate, age: queue.oldest_ready_age_ms ?? 0, ready: queue.ready });
      while (samples[0].at < now - HOUR) samples.shift();
      on({ queue, samples, error: null });
    } catch (error) {
      if (error.name !== 'AbortError') on({ queue: null, samples, error });
    }
  });
}
