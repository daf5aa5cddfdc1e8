// The present figures of the server and those of the last hour: one source for all views.
//
// While the page is visible, it requests /v1/stats every two seconds. It requests the last hour once
// (/v1/stats/history), and then reads the figures of each second from /v1/events. While this stream
// is open, it requests stats less often, for figures that the stream does not have. A token for only
// some queues cannot read the hour and the stream: then the page works without them.
//
// Every two seconds it also requests /readyz, because a server whose store has failed still sends
// figures. If the server does not answer, the page tries again after 1, 2, 4, … 30 s, and sends no
// other requests until then.
import { call, get, setOutage, stream } from './api.js';
import { every, setOut, whileVisible } from './dom.js';
import { ofCounts, perSecond, quantile, since } from './histogram.js';
import { CAUSES } from './why.js';

const PERIOD = 2_000;
const PERIOD_BESIDE_STREAM = 10_000;
const HOUR = 3_600_000;
const WINDOW = 60_000; // of quantiles, if the server does not send them
const PATIENCE = 10_000; // ms for an answer
const FIRST_RETRY = 1_000;
const LONGEST_RETRY = 30_000;
const OUTAGES = { lost: 'The server does not answer', failed: 'The server does not accept changes now' };

const listeners = new Set();
const samples = []; // {at, spanMs, totals, rates, late, lateness, commit}, oldest first
const polls = []; // {at, stats, lateness} of the last minutes
let state = 'connecting'; // then 'live', 'failed' (it answers that it cannot work), 'lost' or 'refused'
let problem = null;
let seenAt = null; // when the last figures came
let nextTryAt = null; // only in state 'lost'
let lookNow = () => {};
let isStreaming = false;
let isLimited = false; // true if the token is not for all queues

/** Calls `listener(live)` now, if there are figures, and for all new figures, until `signal`. */
export function onLive(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener('abort', () => listeners.delete(listener));
  if (polls.length > 0 || state === 'lost' || state === 'failed') listener(view());
}

const view = () => {
  const last = polls.at(-1);
  return { state, problem, seenAt, nextTryAt, isLimited, samples, now: samples.at(-1) ?? null, stats: last?.stats ?? null,
    startedAt: last ? last.at - last.stats.uptime_ms : null };
};

const tell = () => { for (const listener of listeners) listener(view()); };

function add(sample) {
  samples.push(sample);
  while (samples[0].at < sample.at - HOUR) samples.shift();
}

// ---- figures from the server: a point of /v1/stats/history or of a stats event ----

/** Each rate, its member of a point, and its counter of /v1/stats. */
const RATES = [['scheduled', 'accepted', 'scheduled'], ['fired', 'fired', 'fired'], ['leased', 'leased', 'leased'],
  ['completed', 'completed', 'completed'], ['failed', 'failed', 'failed'], ['died', 'died', 'dead']];

const quantilesIn = (us) => us && { p50: us.p50 / 1_000, p99: us.p99 / 1_000, isRecent: true };

function sampleOf(point, recent = point) {
  const rates = {};
  for (const [name, member] of RATES) rates[name] = perSecond(point[member], point.span_ms);
  return { at: new Date(point.at).getTime(), spanMs: point.span_ms, totals: point.tasks, rates, late: point.late,
    lateness: quantilesIn(recent.lateness_us), commit: quantilesIn(recent.commit_us) };
}

/** The samples of the last day, in steps of five minutes. */
export const fetchDay = async (signal) =>
  (await get('/v1/stats/history?span=24h&step=5m', signal)).points.map((point) => sampleOf(point));

async function follow(signal) {
  if (isStreaming || isLimited) return;
  isStreaming = true;
  try {
    const { points } = await get('/v1/stats/history?span=1h', signal);
    const past = points.map((point) => sampleOf(point));
    samples.splice(0, samples.length, ...past);
    await stream('/v1/events?types=stats', whileVisible(signal), (name, data) => {
      if (name !== 'stats') return;
      const sample = sampleOf(data, data.recent);
      // A quiet second has no latencies: the last known ones stay.
      sample.lateness ??= overall();
      sample.commit ??= samples.at(-1)?.commit ?? null;
      add(sample);
      seenAt = Date.now();
      if (state === 'lost') lookNow();
      tell();
    });
  } catch (error) {
    isLimited ||= error.status === 403;
    // Polling continues by itself, and reports if the server does not answer.
  } finally {
    isStreaming = false;
  }
}

// ---- figures that the page computes from /v1/stats ----

/** Quantiles since the server started. */
function overall() {
  const all = polls.at(-1)?.lateness;
  return all ? { p50: quantile(all, 0.5), p99: quantile(all, 0.99), isRecent: false } : null;
}

/** Quantiles of the last minute; since the start if that minute was quiet. */
function recentLateness() {
  const recent = since(polls.at(-1).lateness, polls[0].lateness);
  return recent.count > 0 ? { p50: quantile(recent, 0.5), p99: quantile(recent, 0.99), isRecent: true } : overall();
}

function ratesBetween(before, now) {
  return Object.fromEntries(RATES.map(([name, , counter]) => [name, before?.stats.counters && !isLimited
    ? perSecond(now.stats.counters[counter] - before.stats.counters[counter], now.at - before.at) : null]));
}

const lateBetween = (before, now) => Object.fromEntries(CAUSES.map((cause) => [cause,
  before?.stats.late && !isLimited ? now.stats.late.tasks[cause] - before.stats.late.tasks[cause] : 0]));

async function poll() {
  const stats = await call('GET', '/v1/stats?queues=0', { patience: PATIENCE });
  isLimited = stats.counters === undefined; // the server leaves figures of the whole server out
  const last = polls.at(-1);
  const now = { at: Date.now(), stats, lateness: ofCounts(stats.lateness_counts ?? []) };
  // If counters went back, another process has started: the earlier samples are of no use.
  if (last && stats.uptime_ms < last.stats.uptime_ms) polls.length = samples.length = 0;
  const before = polls.at(-1);
  polls.push(now);
  seenAt = now.at;
  while (polls.length > 2 && polls[1].at < now.at - WINDOW) polls.shift();
  if (!isStreaming || samples.length === 0) {
    add({ at: now.at, spanMs: before ? now.at - before.at : PERIOD, totals: stats.tasks, rates: ratesBetween(before, now), late: lateBetween(before, now),
      lateness: recentLateness(), commit: null });
  }
}

/** The state after a failed request. A node of a cluster may be not ready for a moment. */
function stateAfter(error, failures) {
  if (error.status === undefined) return 'lost';
  if (error.status === 403) return 'refused';
  return failures > 1 ? 'failed' : state;
}

export function startLive(signal) {
  let next = 0; // time of the next request for stats while the stream is open
  let failures = 0; // in a row
  lookNow = every(PERIOD, signal, async () => {
    try {
      await call('GET', '/readyz', { patience: PATIENCE });
      if (!isStreaming || Date.now() >= next || state !== 'live') {
        next = Date.now() + PERIOD_BESIDE_STREAM - PERIOD / 2;
        await poll();
        follow(signal);
      }
      failures = 0;
      state = 'live';
      problem = null;
    } catch (error) {
      state = stateAfter(error, ++failures);
      problem = state === 'lost' ? 'The server does not answer.' : error.message;
    }
    const wait = state === 'lost' ? Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** (failures - 1)) : PERIOD;
    nextTryAt = Date.now() + wait;
    setOut(state === 'lost');
    setOutage(OUTAGES[state] ?? null);
    tell();
    return wait;
  }, { always: true });
}

/** Requests a lost server immediately, without the rest of its pause. */
export const tryAgain = () => lookNow();
