// What the server is doing now and what it did in the last hour: one source for all views.
//
// It asks /v1/stats and /metrics every two seconds while the page is looked at. A server that keeps
// a history of its figures (its stats have `tasks`) is asked for the last hour once, and then tells
// its figures each second by itself (/v1/events); while that stream is there, stats are asked for
// less often, for what the stream does not have.
import { get, getText, stream } from './api.js';
import { every } from './dom.js';
import { perSecond, quantile, readHistograms, since } from './histogram.js';

const PERIOD = 2_000;
const PERIOD_BESIDE_STREAM = 10_000;
const HOUR = 3_600_000;
const WINDOW = 60_000; // of quantiles, where the server does not tell them
const LATENESS = 'detent_lateness_seconds';
const COMMIT = 'detent_store_commit_seconds';

const listeners = new Set();
const samples = []; // {at, totals, rates, lateness, commit}, oldest first
const polls = []; // {at, stats, histograms} of the last minutes
let state = 'connecting'; // then 'live', 'lost' or 'refused'
let problem = null;
let isStreaming = false;

/** Calls `listener(live)` now, if there is something, and whenever there is more, until `signal`. */
export function onLive(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener('abort', () => listeners.delete(listener));
  if (polls.length > 0 || state === 'lost') listener(view());
}

const view = () => {
  const last = polls.at(-1);
  return { state, problem, samples, now: samples.at(-1) ?? null, stats: last?.stats ?? null,
    startedAt: last ? last.at - last.stats.uptime_ms : null };
};

const tell = () => { for (const listener of listeners) listener(view()); };

function add(sample) {
  samples.push(sample);
  while (samples[0].at < sample.at - HOUR) samples.shift();
}

// ---- what the server tells: a point of /v1/stats/history or of a stats event ----

const RATES = { scheduled: 'accepted', fired: 'fired', leased: 'leased', completed: 'completed', failed: 'failed' };

const quantilesIn = (us) => us && { p50: us.p50 / 1_000, p99: us.p99 / 1_000, isRecent: true };

function sampleOf(point, recent = point) {
  const rates = {};
  for (const [name, member] of Object.entries(RATES)) rates[name] = perSecond(point[member], point.span_ms);
  return { at: new Date(point.at).getTime(), totals: point.tasks, rates,
    lateness: quantilesIn(recent.lateness_us), commit: quantilesIn(recent.commit_us) };
}

async function follow(signal) {
  if (isStreaming) return;
  isStreaming = true;
  try {
    const { points } = await get('/v1/stats/history?span=1h', signal);
    const past = points.map((point) => sampleOf(point));
    samples.splice(0, samples.length, ...past);
    await stream('/v1/events', signal, (name, data) => {
      if (name !== 'stats') return;
      const sample = sampleOf(data, data.recent);
      // A quiet second has no lateness of its own: what was known last stands.
      sample.lateness ??= overall(LATENESS);
      sample.commit ??= overall(COMMIT);
      add(sample);
      state = 'live';
      tell();
    });
  } catch {
    // Polling goes on by itself, and says so when nothing answers.
  } finally {
    isStreaming = false;
  }
}

// ---- what the page reckons from /v1/stats and /metrics ----

function totalsOf(stats) {
  if (stats.tasks) return stats.tasks;
  const sum = { scheduled: 0, ready: 0, leased: 0, dead: 0 };
  for (const queue of stats.queues) for (const name in sum) sum[name] += queue[name];
  return sum;
}

/** Quantiles since the server started. */
function overall(name) {
  const all = polls.at(-1)?.histograms[name];
  return all ? { p50: quantile(all, 0.5), p99: quantile(all, 0.99), isRecent: false } : null;
}

/** Quantiles of the last minute, or since the start when it was quiet. */
function quantilesOf(name) {
  const now = polls.at(-1).histograms[name];
  const recent = since(now, polls[0].histograms[name]);
  return recent.count > 0 ? { p50: quantile(recent, 0.5), p99: quantile(recent, 0.99), isRecent: true } : overall(name);
}

function ratesBetween(before, now) {
  return Object.fromEntries(Object.keys(RATES).map((name) => [name, before
    ? perSecond(now.stats.counters[name] - before.stats.counters[name], now.at - before.at) : null]));
}

async function poll() {
  const [stats, metrics] = await Promise.all([get('/v1/stats'), getText('/metrics')]);
  const last = polls.at(-1);
  const now = { at: Date.now(), stats, histograms: readHistograms(metrics, [LATENESS, COMMIT]) };
  // Counters that went back are those of another process: what was before is of no use.
  if (last && stats.uptime_ms < last.stats.uptime_ms) polls.length = samples.length = 0;
  const rates = ratesBetween(polls.at(-1), now);
  polls.push(now);
  while (polls.length > 2 && polls[1].at < now.at - WINDOW) polls.shift();
  if (!isStreaming || samples.length === 0) {
    add({ at: now.at, totals: totalsOf(stats), rates, lateness: quantilesOf(LATENESS), commit: quantilesOf(COMMIT) });
  }
}

export function startLive(signal) {
  let next = 0;
  every(PERIOD, signal, async () => {
    if (isStreaming && Date.now() < next) return;
    next = Date.now() + PERIOD_BESIDE_STREAM - PERIOD / 2;
    try {
      await poll();
      state = 'live';
      problem = null;
      if (polls.at(-1).stats.tasks) follow(signal);
    } catch (error) {
      state = error.status === 403 ? 'refused' : 'lost';
      problem = error.message;
    }
    tell();
  });
}
