// The figures of one queue over time, while its page is open. The events of the past are the server's
// history of the queue. The number of ready tasks has no history. The page keeps the numbers since it was
// opened, for the queues that were opened last.
import { get, withQuery } from './api.js';
import { every } from './dom.js';
import { perSecond } from './histogram.js';
import { pathOf } from './queue_actions.js';

const PERIOD = 2_000;
const HOUR = 3_600_000;
const STEP = 10_000; // the finest step of the history
const MOST_QUEUES = 8; // whose ready tasks are kept

const RATES = [['scheduled', 'accepted'], ['leased', 'leased'], ['completed', 'completed'], ['died', 'died']];

/** {at, rates, late} of a point of /v1/stats/history?queue=. An expired lease is a failed attempt. */
export function sampleOf(point) {
  const rates = Object.fromEntries(RATES.map(([rate, member]) => [rate, perSecond(point[member], point.span_ms)]));
  rates.failed = perSecond(point.failed + point.expired, point.span_ms);
  return { at: new Date(point.at).getTime(), rates, late: point.lateness_ms };
}

/** {samples, since} of the last `span` ms. */
async function fetchHistory(queue, span, signal) {
  const { points, since } = await get(withQuery('/v1/stats/history', { queue, span: `${span}ms` }), signal);
  return { samples: points.map(sampleOf), since: new Date(since).getTime() };
}

const kept = new Map(); // queue → {at, ready}, oldest first

function readyOf(name) {
  const seen = kept.get(name) ?? [];
  kept.delete(name);
  kept.set(name, seen); // the latest at the end
  if (kept.size > MOST_QUEUES) kept.delete(kept.keys().next().value);
  if (seen.length > 0) seen.push({ at: seen.at(-1).at + 1, ready: null }); // a gap in the line
  return seen;
}

/**
 * Calls `on({queue, ready, error})` every two seconds and `onHistory({samples, since})` every ten
 * seconds, until `signal`. `spanOf()` is the wanted span in ms. Returns {reload(), loadHistory()}.
 */
export function followQueue(name, signal, { spanOf, on, onHistory }) {
  const ready = readyOf(name);
  const reload = every(PERIOD, signal, async () => {
    try {
      const queue = await get(pathOf(name), signal);
      const now = Date.now();
      ready.push({ at: now, ready: queue.ready });
      while (ready[0].at < now - HOUR) ready.shift();
      on({ queue, ready, error: null });
    } catch (error) {
      if (error.name !== 'AbortError') on({ queue: null, ready, error });
    }
  });
  const loadHistory = every(STEP, signal, async () => {
    const span = spanOf();
    const history = await fetchHistory(name, span, signal).catch(() => null);
    if (span !== spanOf()) return 0; // another range was chosen during the call
    if (history) onHistory(history);
    return span > HOUR ? 6 * STEP : STEP;
  });
  return { reload, loadHistory };
}
