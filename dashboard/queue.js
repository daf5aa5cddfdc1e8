// One queue: why its tasks wait, its figures over time, its settings, its workers and its receiver.
import { makeChart } from './chart.js';
import { h, replace, setText } from './dom.js';
import { bytes, compact, count, duration, localTime, plural, rate } from './format.js';
import { followQueue } from './queue_feed.js';
import { queueActions, tasksOf } from './queue_actions.js';
import { action, stateNode, tabs, tile } from './parts.js';
import { editSettings, settingFacts } from './queue_settings.js';
import { makeWorkers } from './workers.js';
import { errorsOf } from './errors.js';
import { whyQueueWaits } from './why.js';

export const title = 'Queue';
const STATES = ['scheduled', 'ready', 'leased', 'dead'];
const ERRORS_PERIOD = 10_000; // ms; grouping reads all dead tasks of the queue
const SPANS = [[900_000, '15 min'], [3_600_000, '1 h'], [86_400_000, '24 h']];

/** {kind, text}: why the tasks of the queue wait, or that no task waits. */
function verdictOf(queue) {
  const why = whyQueueWaits(queue);
  if (!why) return { kind: queue.settings.paused ? 'late' : '', text: queue.settings.paused ? 'The queue is paused. No task is ready.' : 'No task is ready and waiting.' };
  const isLate = queue.oldest_ready_age_ms > 5_000;
  return { kind: isLate ? 'late' : '', text: `${plural(queue.ready, 'task')} ${queue.ready === 1 ? 'is' : 'are'} ready, the oldest for ${duration(queue.oldest_ready_age_ms)}: ${why.text}.` };
}

function makeCharts(signal) {
  const throughput = makeChart({ label: 'Tasks per second of this queue', format: rate, step: 0.1, series: [
    { label: 'scheduled', stroke: '--muted', dash: [4, 3] }, { label: 'handed out', stroke: '--second' },
    { label: 'completed', stroke: '--accent', fill: '--accent' }] }, signal);
  const failures = makeChart({ label: 'Failed attempts and deaths per second of this queue', format: rate, step: 0.1, series: [
    { label: 'failed attempts', stroke: '--second', fill: '--second' }, { label: 'died', stroke: '--danger', fill: '--danger' }] }, signal);
  const lateness = makeChart({ label: 'Time from due to handed out of this queue', format: duration, series: [
    { label: 'mean', stroke: '--accent', fill: '--accent' }, { label: 'longest', stroke: '--danger', dash: [4, 3] }] }, signal);
  const ready = makeChart({ label: 'Ready tasks of this queue', format: compact, series: [{ label: 'ready', stroke: '--accent', fill: '--accent' }] }, signal);
  const card = (name, chart, more) => h('section', { class: 'card' }, h('h2', {}, name, more && h('span', { class: 'sub' }, more)), chart.element);
  const element = h('div', { class: 'grid two' }, card('Tasks per second', throughput), card('Failures per second', failures),
    card('Lateness: from due to handed out', lateness), card('Ready tasks ', ready, 'since the page was opened'));
  return { element, drawHistory(samples) {
    const times = samples.map(({ at }) => at / 1_000);
    const column = (of) => samples.map(of);
    throughput.setData([times, ...['scheduled', 'leased', 'completed'].map((name) => column(({ rates }) => rates[name]))]);
    failures.setData([times, ...['failed', 'died'].map((name) => column(({ rates }) => rates[name]))]);
    lateness.setData([times, ...['mean', 'max'].map((name) => column(({ late }) => late?.[name] ?? null))]);
  }, drawReady(seen) {
    ready.setData([seen.map(({ at }) => at / 1_000), seen.map((sample) => sample.ready)]);
  } };
}

export function show(root, route, signal) {
  const [name] = route.rest;
  const head = h('div', { class: 'head' }, h('h1', {}, name));
  const verdictText = h('strong');
  const verdict = h('section', { class: 'card verdict', 'aria-live': 'off' }, verdictText);
  const tiles = Object.fromEntries(STATES.map((state) => [state, tile(stateNode(state), '', { link: tasksOf(name, state), isSmall: true })]));
  const served = tile('last handed out', '', { isSmall: true });
  const size = tile('payloads', '', { isSmall: true });
  const charts = makeCharts(signal);
  const facts = h('dl', { class: 'facts' });
  const since = h('span', { class: 'sub' });
  const errors = h('div', { hidden: true });
  let span = SPANS[0][0];
  let latest = null; // the queue
  let groups = null; // of errors, once a task is dead
  const grouped = { dead: 0, at: 0 }; // when they were grouped, and of how many tasks
  let seen = '';
  const range = tabs('Time range', SPANS, (chosen) => {
    span = chosen;
    feed.loadHistory();
  });
  range.press(span);
  const body = h('div', { class: 'stack' }, h('div', { class: 'tiles six' }, [...Object.values(tiles), served, size].map(({ element }) => element)),
    errors, h('div', { class: 'head' }, h('h2', {}, 'Over time ', since), range.element), charts.element,
    h('div', { class: 'grid two' }, h('section', { class: 'card stack' }, h('h2', {}, 'Settings and limits'), facts,
      h('div', { class: 'buttons' }, action('Edit settings …', async () => { if (latest && await editSettings(latest)) await feed.reload(); }, { signal }))),
    h('section', { class: 'stack' }, h('h2', {}, 'Workers with a task'), makeWorkers(name, signal).element)));
  replace(root, head, verdict, body);

  function drawQueue(queue) {
    for (const state of STATES) tiles[state].set(compact(queue[state]), count(queue[state]));
    const age = queue.last_handed_out_age_ms;
    served.set(age === null || age === undefined ? 'not yet' : `${duration(age)} ago`);
    size.set(bytes(queue.bytes));
    const { kind, text } = verdictOf(queue);
    verdict.className = `card verdict ${kind === '' && queue.dead > 0 ? 'bad' : kind}`;
    setText(verdictText, queue.dead > 0 ? `${text} ${plural(queue.dead, 'task')} ${queue.dead === 1 ? 'is' : 'are'} dead.` : text);
    drawErrors(queue);
    const now = JSON.stringify([queue.settings, STATES.map((state) => queue[state] > 0), queue.leased, queue.bytes]);
    if (now === seen) return; // a button would lose the focus
    seen = now;
    const isHeld = head.contains(document.activeElement);
    replace(head, h('h1', {}, name), queue.settings.paused && stateNode('paused'), h('div', { class: 'buttons' }, queueActions(queue, () => feed.reload(), signal, { isWhole: true }),
      h('a', { class: 'button', href: tasksOf(name) }, 'Tasks')));
    if (isHeld) head.querySelector('button')?.focus();
    replace(facts, settingFacts(queue));
  }
  function drawErrors({ dead }) {
    errors.hidden = dead === 0;
    if (dead === grouped.dead || Date.now() - grouped.at < ERRORS_PERIOD) return;
    Object.assign(grouped, { dead, at: Date.now() });
    if (groups) groups.load();
    else {
      groups = errorsOf(name, signal);
      replace(errors, groups.element);
    }
  }
  function drawHistory({ samples, since: from }) {
    charts.drawHistory(samples);
    const isWhole = Date.now() - from >= span;
    setText(since, isWhole ? '' : `since ${localTime(from)}, when the server began to count the events of this queue`);
  }
  const feed = followQueue(name, signal, { spanOf: () => span, onHistory: drawHistory, on({ queue, ready, error }) {
    body.hidden = queue === null && latest === null;
    if (error) {
      if (latest === null || error.status === 404) {
        body.hidden = true;
        replace(head, h('h1', {}, name));
        verdict.className = 'card verdict';
        setText(verdictText, error.status === 404 ? 'There is no such queue. Its first task creates it.' : error.message);
      }
      return;
    }
    latest = queue;
    drawQueue(queue);
    charts.drawReady(ready.filter(({ at }) => at >= Date.now() - span));
  } });
}
