// Now: is everything on time, and if not, why? Counts, rates, lateness and its causes, the store, and
// the last hour.
import { get } from './api.js';
import { makeChart } from './chart.js';
import { every, h, replace, setText } from './dom.js';
import { compact, count, duration, plural, rate } from './format.js';
import { onLive } from './live.js';
import { firstSteps, NO_VISIBLE_TASKS, stateNode } from './parts.js';
import { CAUSES, CAUSE_NAMES, lateTasks, whyQueueWaits } from './why.js';

export const title = 'Now';

const STATES = [
  ['scheduled', 'wait for their due time'],
  ['ready', 'are due, may be taken'],
  ['leased', 'are with a worker'],
  ['dead', 'are out of attempts'],
];
const LONG = 5_000; // ms that a ready task may wait before the page mentions it
const LOOKED_AT = 1_000; // number of requested queues: those whose tasks wait longest
const TOLD = 4; // number of queues with waiting tasks that are listed
const LATE_SPAN = 600_000; // ms; the page explains the late tasks of this time

/** {queues, isCut}: the queues whose tasks wait, the longest first, some with their settings. */
async function waitingQueues(signal) {
  const { queues } = await get(`/v1/stats?by=age&queues=${LOOKED_AT}`, signal);
  const waiting = queues.filter(({ oldest_ready_age_ms: age }) => age >= LONG);
  return { isCut: waiting.length === LOOKED_AT, queues: await Promise.all(waiting.map((queue, i) => (i >= TOLD ? queue
    : get(`/v1/queues/${encodeURIComponent(queue.queue)}`, signal).catch(() => queue)))) };
}

function tile(name, hint, link) {
  const value = h('span', { class: 'value' }, '–');
  const element = h(link ? 'a' : 'div', { class: 'card tile', href: link },
    h('span', { class: 'name' }, name), value, h('span', { class: 'hint' }, hint));
  return { element, set(text, full) {
    setText(value, text);
    if (full) value.title = full;
  } };
}

/** The overall state, in words. */
export function verdictOf(live, { queues, isCut }) {
  const waiting = queues.map((queue) => ({ queue, why: whyQueueWaits(queue) })).filter(({ why }) => why);
  const { dead } = live.now.totals;
  // Totals of the listed queues, unless there are more queues than requested.
  const due = isCut ? live.now.totals.ready : waiting.reduce((sum, { queue }) => sum + queue.ready, 0);
  const deadPoint = dead > 0 ? h('li', {}, h('a', { href: '#/tasks?state=dead' }, plural(dead, 'task')),
    ` ${dead === 1 ? 'is' : 'are'} out of attempts and ${dead === 1 ? 'needs' : 'need'} you.`) : null;
  const whys = waiting.slice(0, TOLD).map(({ queue, why }) => h('li', {},
    h('a', { href: '#/tasks?' + new URLSearchParams({ queue: queue.queue, state: 'ready' }) }, queue.queue),
    `: ${plural(queue.ready, 'task')}, the first for ${duration(queue.oldest_ready_age_ms)}; ${why.text}.`));
  if (waiting.length > TOLD) {
    whys.push(h('li', {}, isCut ? 'and at least ' : 'and ', h('a', { href: '#/queues' }, plural(waiting.length - TOLD, 'more queue')), '.'));
  }
  const lately = live.isLimited ? null : lateTasks(live.samples.filter(({ at }) => at >= live.now.at - LATE_SPAN));
  const late = live.now.lateness;
  const onTime = lately ? 'Nothing is late at the moment.'
    : late?.p50 == null ? 'Everything is on time.'
    : `Everything is on time: half of the tasks fire within ${duration(late.p50)} of their due time, 99 of 100 within ${duration(late.p99)}.`;
  return { kind: waiting.length > 0 ? 'late' : '',
    headline: waiting.length > 0 ? `${plural(due, 'task')} ${due === 1 ? 'is' : 'are'} due and not taken.` : onTime,
    points: [...whys, lately && h('li', {}, `In the last ${duration(LATE_SPAN)} ${lately}`), deadPoint].filter(Boolean) };
}

function quantileTiles() {
  const tiles = { p50: tile('lateness p50', 'half fire sooner'), p99: tile('lateness p99', '99 of 100 fire sooner'),
    c50: tile('store commit p50', 'one write and its sync'), c99: tile('store commit p99', '') };
  for (const { element } of Object.values(tiles)) element.classList.add('small');
  return { elements: Object.values(tiles).map(({ element }) => element), set({ now: { lateness, commit }, isLimited }) {
    const over = (quantiles) => (quantiles?.isRecent ? 'in the last minute' : 'since the server started');
    tiles.p50.set(duration(lateness?.p50), over(lateness));
    tiles.p99.set(duration(lateness?.p99), over(lateness));
    tiles.c50.set(duration(commit?.p50), over(commit));
    tiles.c99.set(duration(commit?.p99), over(commit));
    for (const { element } of Object.values(tiles)) element.hidden = isLimited;
  } };
}

export function show(root, route, signal) {
  const states = Object.fromEntries(STATES.map(([name, hint]) => [name, tile(stateNode(name), hint, '#/tasks?state=' + name)]));
  const rates = { scheduled: tile('accepted', 'new tasks'), fired: tile('fired', 'became due, including retries'),
    leased: tile('handed out', 'to workers'), completed: tile('completed', 'done and gone') };
  for (const { element } of Object.values(rates)) element.classList.add('small');
  const quantiles = quantileTiles();
  const verdict = h('section', { class: 'card verdict', 'aria-live': 'off' });
  const first = h('div', { hidden: true }, firstSteps());
  const rateChart = makeChart({ label: 'Tasks a second over the last hour', format: rate, step: 0.1, series: [
    { label: 'accepted', stroke: '--muted', dash: [4, 3] }, { label: 'fired', stroke: '--second' },
    { label: 'completed', stroke: '--accent', fill: '--accent' }] }, signal);
  const stateChart = makeChart({ label: 'Tasks by state over the last hour', format: compact, series: [
    { label: 'ready', stroke: '--accent', fill: '--accent' }, { label: 'leased', stroke: '--second' },
    { label: 'dead', stroke: '--danger' }] }, signal);
  const lateChart = makeChart({ label: 'Tasks handed out more than a second late, a second, by cause', format: rate, step: 0.1,
    series: CAUSES.map((cause, i) => ({ label: CAUSE_NAMES[cause], stroke: ['--muted', '--danger', '--second', '--accent'][i] })) }, signal);
  const sub = h('span', { class: 'sub' });
  const span = h('span', { class: 'sub' });
  const ofServer = [ // of all queues together
    h('section', { class: 'card' }, h('h2', {}, 'Tasks a second', span), rateChart.element),
    h('section', { class: 'card' }, h('h2', {}, 'Late, by cause', h('span', { class: 'sub' }, 'a second')), lateChart.element),
    h('div', { class: 'tiles' }, Object.values(rates).map(({ element }) => element))];
  const full = h('div', { class: 'grid', hidden: true }, ofServer[0],
    h('section', { class: 'card' }, h('h2', {}, 'Due, in work, dead'), stateChart.element), ofServer[1]);
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Now'), sub), verdict, first,
    h('div', { class: 'tiles' }, STATES.map(([name]) => states[name].element)), full,
    ofServer[2], h('div', { class: 'tiles' }, quantiles.elements));

  let queues = null;
  let last = '';
  every(4_000, signal, async () => {
    queues = await waitingQueues(signal).catch(() => queues);
  });
  onLive((live) => {
    if (!live.now || !live.stats) {
      replace(verdict, h('strong', {}, live.problem ?? 'The server does not answer.'));
      return;
    }
    const { stats, now: { totals } } = live;
    setText(sub, [`up for ${duration(stats.uptime_ms)}`, plural(stats.queue_count, 'queue'),
      live.isLimited ? null : plural(stats.waiting_workers, 'waiting worker')].filter(Boolean).join(' · '));
    for (const [name] of STATES) states[name].set(compact(totals[name]), count(totals[name]));
    for (const name in rates) rates[name].set(rate(live.now.rates[name]));
    quantiles.set(live);
    for (const element of ofServer) element.hidden = live.isLimited;
    const hasNone = Object.values(totals).every((n) => n === 0);
    const isEmpty = hasNone && !live.isLimited && stats.counters.scheduled === 0;
    first.hidden = !isEmpty;
    verdict.hidden = isEmpty;
    full.hidden = isEmpty;
    if (hasNone && live.isLimited) {
      last = '';
      verdict.className = 'card verdict';
      replace(verdict, h('strong', {}, NO_VISIBLE_TASKS));
      return;
    }
    setText(span, 'the last ' + duration(live.now.at - live.samples[0].at));
    const times = live.samples.map(({ at }) => at / 1_000);
    const column = (of) => live.samples.map(of);
    rateChart.setData([times, ...['scheduled', 'fired', 'completed'].map((name) => column(({ rates: r }) => r[name]))]);
    stateChart.setData([times, ...['ready', 'leased', 'dead'].map((name) => column(({ totals: t }) => t[name]))]);
    lateChart.setData([times, ...CAUSES.map((cause) => column(({ late, spanMs }) => (late ? late[cause] * 1_000 / spanMs : null)))]);
    if (queues === null) return;
    const { kind, headline, points } = verdictOf(live, queues);
    const text = headline + points.map((point) => point.textContent).join();
    if (text === last) return; // otherwise a link would lose the focus
    last = text;
    verdict.className = `card verdict ${kind}`;
    replace(verdict, h('div', {}, h('strong', {}, headline), points.length > 0 && h('ul', {}, points)));
  }, signal);
}
