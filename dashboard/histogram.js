// Histograms as /metrics has them (Prometheus text): cumulative counts by upper bound. Pure.

/** {name: {bounds: [ms…], counts: [cumulative…], count}} of the histograms with these names. */
export function readHistograms(text, names) {
  const found = {};
  for (const name of names) found[name] = { bounds: [], counts: [], count: 0 };
  for (const line of text.split('\n')) {
    const match = /^(\w+)_bucket\{le="([^"]+)"\} (\S+)$/.exec(line);
    const histogram = match && found[match[1]];
    if (!histogram) continue;
    const bound = match[2] === '+Inf' ? Infinity : Number(match[2]) * 1_000;
    histogram.bounds.push(bound);
    histogram.counts.push(Number(match[3]));
    if (bound === Infinity) histogram.count = Number(match[3]);
  }
  return found;
}

/** What was added between two states of one histogram. */
export function since(now, before) {
  return { bounds: now.bounds, counts: now.counts.map((n, i) => n - (before.counts[i] ?? 0)),
    count: now.count - before.count };
}

/** The value that a part `q` of all stays under, in ms, interpolated in its bucket; null of none. */
export function quantile({ bounds, counts, count }, q) {
  if (count === 0) return null;
  const rank = q * count;
  const at = counts.findIndex((cumulative) => cumulative >= rank);
  if (at < 0 || bounds[at] === Infinity) return bounds.at(-2) ?? null;
  const below = at === 0 ? 0 : counts[at - 1];
  const from = at === 0 ? 0 : bounds[at - 1];
  const part = counts[at] === below ? 1 : (rank - below) / (counts[at] - below);
  return from + (bounds[at] - from) * part;
}

export const perSecond = (n, ms) => (ms <= 0 ? null : Math.max(0, (n * 1_000) / ms));
