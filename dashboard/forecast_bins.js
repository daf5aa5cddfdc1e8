// The bins of a forecast: the number of due tasks in each part of a span of time. The server counts the
// tasks of all queues or of one queue, by the minute.
import { get, withQuery } from './api.js';

export const MINUTE = 60_000;
const MOST_BINS = 10_000; // that the server returns in one answer

/** Bins within [from, until) of a forecast: {first, bin_ms, counts, overdue, before, later, coarse, counted_to}. No queue: all queues. */
export async function fetchBins(queue, { from, until, bins }, signal) {
  const now = Date.now();
  const start = Math.max(0, from - now);
  const finest = Math.max((until - Math.max(from, now)) / bins, (until - now) / MOST_BINS);
  const width = Math.max(1, Math.ceil(finest / MINUTE)) * MINUTE;
  const asked = Math.min(MOST_BINS, Math.max(1, Math.ceil((until - now) / width)));
  const forecast = await get(withQuery('/v1/forecast', { queue, bins: asked, span: `${Math.max(MINUTE, asked * width)}ms` }), signal);
  const skipped = Math.floor(start / forecast.bin_ms);
  const first = new Date(forecast.from).getTime() + skipped * forecast.bin_ms;
  return { ...forecast, first, counts: forecast.counts.slice(skipped),
    before: forecast.counts.slice(0, skipped).reduce((sum, n) => sum + n, 0) };
}
