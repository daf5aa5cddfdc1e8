// Histograms of durations in the form of /v1/stats: counts by upper bound, which doubles. Pure.

const FIRST_BOUND = 0.001; // ms
const BOUNDS = 34;

/** {bounds: [ms…], counts: [cumulative…], count} of `lateness_counts`, which omits zeros at the end. */
export function ofCounts(given) {
  let count = 0;
  const counts = given.map((n) => (count += n));
  return { bounds: given.map((_, i) => (i < BOUNDS ? FIRST_BOUND * 2 ** i : Infinity)), counts, count };
}

/** The difference between two states of one histogram. */
export function since(now, before) {
  return { bounds: now.bounds, counts: now.counts.map((n, i) => n - (before.counts[i] ?? before.count)),
    count: now.count - before.count };
}

/** The quantile `q` in ms, interpolated in its bucket; null for an empty histogram. */
export function quantile({ bounds, counts, count }, q) {
  if (count === 0) return null;
  const rank = q * count;
  const at = counts.findIndex((cumulative) => cumulative >= rank);
  if (bounds[at] === Infinity) return bounds[at - 1];
  const below = at === 0 ? 0 : counts[at - 1];
  const from = at === 0 ? 0 : bounds[at - 1];
  const part = counts[at] === below ? 1 : (rank - below) / (counts[at] - below);
  return from + (bounds[at] - from) * part;
}

export const perSecond = (n, ms) => (ms <= 0 ? null : Math.max(0, (n * 1_000) / ms));
