// The bins of a forecast: the number of due tasks in each part of a span of time. The server counts all
// queues together, by the minute. For one queue, the page counts the tasks that the server lists.
import { get, withQuery } from './api.js';
import { readAll } from './task_search.js';

export const MINUTE = 60_000;
const MOST_BINS = 10_000; // that the server returns in one answer
const MOST_TASKS = 50_000; // that the page counts

/** Bins within [from, until) of a forecast: {first, bin_ms, counts, overdue, before, later, coarse}. */
export async function fetchBins({ from, until, bins }, signal) {
  const now = Date.now();
  const start = Math.max(0, from - now);
  const finest = Math.max((until - Math.max(from, now)) / bins, (until - now) / MOST_BINS);
  const width = Math.max(1, Math.ceil(finest / MINUTE)) * MINUTE;
  const asked = Math.min(MOST_BINS, Math.max(1, Math.ceil((until - now) / width)));
  const forecast = await get(withQuery('/v1/forecast', { bins: asked, span: `${Math.max(MINUTE, asked * width)}ms` }), signal);
  const skipped = Math.floor(start / forecast.bin_ms);
  const first = new Date(forecast.from).getTime() + skipped * forecast.bin_ms;
  return { ...forecast, first, counts: forecast.counts.slice(skipped),
    before: forecast.counts.slice(0, skipped).reduce((sum, n) => sum + n, 0) };
}

/** The number of due times in each bin of `width` ms. Due times outside the bins do not count. */
export function countInBins(times, { first, width, bins }) {
  const counts = Array(bins).fill(0);
  for (const time of times) {
    const i = Math.floor((time - first) / width);
    if (i >= 0 && i < bins) ++counts[i];
  }
  return counts;
}

/** The same as fetchBins() for one queue; `isCut` if the queue has more tasks than the page counts. */
export async function countQueue(queue, { from, until, bins }, { tell, signal }) {
  const first = Math.floor(from / MINUTE) * MINUTE;
  const width = Math.max(1, Math.ceil((until - first) / bins / MINUTE)) * MINUTE;
  const end = first + bins * width;
  const parameters = { queue, state: 'scheduled', due_after: new Date(first).toISOString(), due_before: new Date(end).toISOString() };
  const { tasks, isCut } = await readAll({ parameters, matches: () => true }, { most: MOST_TASKS, tell, signal });
  const counts = countInBins(tasks.map(({ due_at: due }) => new Date(due).getTime()), { first, width, bins });
  return { first, bin_ms: width, counts, overdue: 0, before: 0, later: null, coarse: 0, isCut };
}
