// Now: is everything on time, and if not, why? Counts, rates, lateness and its causes, the store, and
// the last hour.
import { get } from './api.js';
import { every, h, replace, setText } from './dom.js';
import { compact, count, duration, plural, rate } from './format.js';
import { onLive } from './live.js';
import { makeCharts } from './now_charts.js';
import { firstSteps, NO_VISIBLE_TASKS, stateNode, tile } from './parts.js';
import { tasksOf } from './queue_actions.js';
import { lateTasks, whyQueueWaits } from './why.js';

export const title = 'Now';

const STATES = [
  ['scheduled', 'wait for their due time'],
  ['ready', 'waiting for a worker'],
  ['leased', 'are with a worker'],
  ['dead', 'are out of attempts'],
];
const LONG = 5_000; // ms that a ready task may wait before the page mentions it
const LOOKED_AT = 1_000; // number of requested queues: those whose tasks wait longest
const TOLD = 4; // number of queues with waiting tasks that are listed
const LATE_SPAN = 600_000; // ms; the page explains the late tasks of this time

/** {queues, isCut}: the queues whose tasks wait, the longest first. */
async function waitingQueues(signal) {
  const { queues } = await get(`/v1/queues?by=age&limit=${LOOKED_AT}`, signal);
  const waiting = queues.filter(({ oldest_ready_age_ms: age }) => age >= LONG);
  return { isCut: waiting.length === LOOKED_AT, queues: waiting };
}

const sumReady = (queues) => queues.reduce((sum, { ready }) => sum + ready, 0);
const readyLink = ({ queue }) => h('a', { href: tasksOf(queue, 'ready') }, queue);

/** "2 paused queues hold 43 tasks: a, b" */
function pausedPoint(paused) {
  if (paused.length === 0) return null;
  const names = paused.slice(0, TOLD).map((queue, i) => [i > 0 && ', ', readyLink(queue)]);
  const more = paused.length > TOLD && [' and ', h('a', { href: '#/queues?show=paused' }, plural(paused.length - TOLD, 'more queue'))];
  return h('li', {}, `${plural(paused.length, 'paused queue')} ${paused.length === 1 ? 'holds' : 'hold'} ${plural(sumReady(paused), 'ready task')}: `, names, more, '.');
}

/** The overall state, in words. */
export function verdictOf(live, { queues, isCut }) {
  const paused = queues.filter(({ settings }) => settings.paused);
  const waiting = queues.filter(({ settings }) => !settings.paused);
  const { dead } = live.now.totals;
  // Totals of the listed queues, unless there are more queues than requested.
  const due = isCut ? live.now.totals.ready - sumReady(paused) : sumReady(waiting);
  const deadPoint = dead > 0 ? h('li', {}, h('a', { href: '#/errors' }, plural(dead, 'task')),
    ` ${dead === 1 ? 'is' : 'are'} out of attempts and ${dead === 1 ? 'needs' : 'need'} you.`) : null;
  const whys = waiting.slice(0, TOLD).map((queue) => h('li', {}, readyLink(queue),
    `: ${plural(queue.ready, 'task')}, oldest waiting ${duration(queue.oldest_ready_age_ms)}; ${whyQueueWaits(queue)?.text ?? 'taken at this moment'}.`));
  if (waiting.length > TOLD) {
    whys.push(h('li', {}, isCut ? 'and at least ' : 'and ', h('a', { href: '#/queues?show=waiting' }, plural(waiting.length - TOLD, 'more queue')), '.'));
  }
  const lately = live.isLimited ? null : lateTasks(live.samples.filter(({ at }) => at >= live.now.at - LATE_SPAN));
  const late = live.now.lateness;
  const onTime = lately || paused.length > 0 ? 'Nothing is late at the moment.'
    : late?.p50 == null ? 'Everything is on time.'
    : `Everything is on time: half of the tasks fire within ${duration(late.p50)} of their due time, 99 of 100 within ${duration(late.p99)}.`;
  return { kind: waiting.length > 0 ? 'late' : '',
    headline: waiting.length > 0 ? `${plural(due, 'task')} ${due === 1 ? 'is' : 'are'} due and not taken.` : onTime,
    points: [...whys, pausedPoint(paused), lately && h('li', {}, `In the last ${duration(LATE_SPAN)} ${lately}`), deadPoint].filter(Boolean) };
}

function quantileTiles() {
  const small = (name) => tile(name, '', { isSmall: true });
  const tiles = { p50: small('lateness p50'), p99: small('lateness p99'), c50: small('store commit p50'), c99: small('store commit p99') };
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
  const states = Object.fromEntries(STATES.map(([name, hint]) => [name, tile(stateNode(name), hint, { link: '#/tasks?state=' + name })]));
  const rates = { scheduled: tile('accepted', 'new tasks', { isSmall: true }), fired: tile('fired', 'became due, including retries', { isSmall: true }),
    leased: tile('handed out', 'to workers', { isSmall: true }), completed: tile('completed', 'done and gone', { isSmall: true }) };
  const quantiles = quantileTiles();
  const verdict = h('section', { class: 'card verdict', 'aria-live': 'off' });
  const first = h('div', { hidden: true }, firstSteps());
  const charts = makeCharts(signal);
  const sub = h('span', { class: 'sub' });
  const rateTiles = h('div', { class: 'tiles' }, Object.values(rates).map(({ element }) => element));
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Now'), sub), verdict, first,
    h('div', { class: 'tiles' }, STATES.map(([name]) => states[name].element)), rateTiles,
    h('div', { class: 'tiles' }, quantiles.elements), charts.element);

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
    rateTiles.hidden = live.isLimited;
    const hasNone = Object.values(totals).every((n) => n === 0);
    const isEmpty = hasNone && !live.isLimited && stats.counters.scheduled === 0;
    first.hidden = !isEmpty;
    verdict.hidden = isEmpty;
    charts.element.hidden = isEmpty;
    if (hasNone && live.isLimited) {
      last = '';
      verdict.className = 'card verdict';
      replace(verdict, h('strong', {}, NO_VISIBLE_TASKS));
      return;
    }
    charts.draw(live);
    if (queues === null) return;
    const { kind, headline, points } = verdictOf(live, queues);
    const text = headline + points.map((point) => point.textContent).join();
    if (text === last) return; // otherwise a link would lose the focus
    last = text;
    verdict.className = `card verdict ${kind}`;
    replace(verdict, h('div', {}, h('strong', {}, headline), points.length > 0 && h('ul', {}, points)));
  }, signal);
}
