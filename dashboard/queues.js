// Queues: their tasks, their limits, and the reason why tasks wait; pause, resume, redrive and purge.
import { get } from './api.js';
import { breakable, every, h, replace, setText } from './dom.js';
import { bytes, compact, count, duration, plural } from './format.js';
import { onLive } from './live.js';
import { actionMenu, firstSteps, NO_VISIBLE_TASKS, tabs } from './parts.js';
import { linkOf, queueActions, tasksOf } from './queue_actions.js';
import { makeTable } from './table.js';
import { whyQueueWaits } from './why.js';

export const title = 'Queues';
const PAGE = 100; // lines
const MOST = 1_000; // number of requested queues: those with most tasks
const OLDEST = 1_000; // further requested queues: those whose tasks wait longest, even if few

/** "50/s, 4 leases, 10,000 tasks" */
export function limitsOf({ rate, concurrency, max_tasks: tasks, max_bytes: size }) {
  return [rate !== null && `${count(rate)}/s`, concurrency !== null && plural(concurrency, 'lease'),
    tasks !== null && plural(tasks, 'task'), size !== null && bytes(size)].filter(Boolean).map((limit) => limit.replace(' ', '\u00a0')).join(', ') || '–';
}

function number(label, name) {
  return { label, kind: 'number', sort: (queue) => queue[name], of: (queue) => compact(queue[name]),
    cell: (queue) => (queue[name] === 0 ? '0' : h('a', { href: tasksOf(queue.queue, name), title: count(queue[name]) }, compact(queue[name]))) };
}

const SHORT = { concurrency: 'at its limit of leases', rate: 'at its rate', busy: 'workers busy', delivery: 'for its receiver' };

const handedOut = ({ last_handed_out_age_ms: age }) => (age == null ? 'none handed out yet' : `last handed out ${duration(age)} ago`);

/** Why the tasks of the queue wait, in short; the full text on hover. */
function waitNode(why, queue) {
  if (!why) return h('span', { class: 'sub' }, 'nothing is due');
  const text = why.text[0].toUpperCase() + why.text.slice(1);
  return h('span', { class: queue.oldest_ready_age_ms > 5_000 ? 'late' : 'sub', title: text }, SHORT[why.kind] ?? handedOut(queue));
}

function columnsOf(reload, signal) {
  return [
    { label: 'Queue', kind: 'title', sort: ({ queue }) => queue, of: ({ queue }) => queue,
      cell: ({ queue }) => h('a', { href: linkOf(queue) }, breakable(queue)) },
    number('Scheduled', 'scheduled'), number('Ready', 'ready'), number('Leased', 'leased'), number('Dead', 'dead'),
    { label: 'Oldest waiting', kind: 'number wide', sort: (queue) => queue.oldest_ready_age_ms ?? -1,
      of: (queue) => duration(queue.oldest_ready_age_ms), cell: (queue) => duration(queue.oldest_ready_age_ms) },
    { label: 'State', kind: 'wide still', sort: (queue) => whyQueueWaits(queue)?.kind ?? '',
      of: (queue) => `${queue.settings.paused} ${whyQueueWaits(queue)?.text} ${queue.oldest_ready_age_ms > 5_000}`,
      cell: (queue) => (queue.settings.paused ? h('span', { class: 'state', 'data-state': 'paused' }, 'paused')
        : waitNode(whyQueueWaits(queue), queue)) },
    { label: 'Limits', kind: 'wide', cell: (queue) => limitsOf(queue.settings) },
    { label: 'Actions', kind: 'actions', of: (queue) => `${queue.settings.paused} ${queue.scheduled + queue.ready} ${queue.dead}`,
      cell: (queue) => actionMenu(queue.queue, queueActions(queue, reload, signal)) },
  ];
}

const SHOWN = [['all', 'All', () => true], ['waiting', 'Waiting', ({ ready, settings }) => ready > 0 && !settings.paused],
  ['dead', 'Dead', ({ dead }) => dead > 0], ['paused', 'Paused', ({ settings }) => settings.paused]];

/** The pages of the server that have the queues of a choice, even if the queues are small. Waiting queues are listed by age. */
const LISTED = { dead: { state: 'dead', sort: 'dead' }, paused: { state: 'paused' } };

const isLate = ({ ready, settings, oldest_ready_age_ms: age }) => ready > 0 && !settings.paused && age > 5_000;

/** The urgent queues first: waiting tasks, the oldest first; then dead tasks, then pauses; then the rest by name. */
export function byUrgency(a, b) {
  const rank = (queue) => (isLate(queue) ? 0 : queue.dead > 0 ? 1 : queue.settings.paused ? 2 : 3);
  return rank(a) - rank(b) || (isLate(a) && b.oldest_ready_age_ms - a.oldest_ready_age_ms) || b.dead - a.dead || (a.queue < b.queue ? -1 : 1);
}

export function show(root, route, signal) {
  let queues = [];
  let most = MOST;
  let total = 0; // number of queues of the server
  let isCut = false; // there are more queues than requested
  let isLimited = false;
  let shown = SHOWN.find(([name]) => name === route.query.get('show')) ?? SHOWN[0];
  const wanted = () => filter.value.trim();
  const filter = h('input', { type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter queues by name',
    oninput: () => { draw(); if (total > most) load(); } });
  const choice = tabs('Which queues', SHOWN, (name) => {
    shown = SHOWN.find(([one]) => one === name);
    draw();
    load();
  });
  choice.press(shown[0]);
  const sub = h('p', { class: 'sub' });
  const more = h('button', { type: 'button', hidden: true, onclick: () => { most += MOST; load(); } }, `List ${count(MOST)} more queues`);
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const table = makeTable({ label: 'Queues', columns: columnsOf(() => load(), signal), key: ({ queue }) => queue, page: PAGE });
  const body = h('div', {}, table.element);
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Queues'), choice.element, filter), sub, wrong, body, h('div', {}, more));

  function draw() {
    const part = wanted().toLowerCase();
    const [name, , matches] = shown;
    const found = queues.filter((queue) => queue.queue.toLowerCase().includes(part) && matches(queue)).sort(byUrgency);
    const isEmpty = queues.length === 0 && part === '';
    table.setRows(found, isEmpty ? 'There is no queue yet.' : name === 'all' ? 'No queue name matches.' : 'No such queue.');
    more.hidden = !isCut || name !== 'all';
    setText(sub, isEmpty ? 'The first task of a queue creates it.' : plural(Math.max(total, queues.length), 'queue') +
      (isCut ? `; the ${count(most)} with most tasks and the ${count(OLDEST)} whose tasks wait longest are listed. The filter finds the others` : ''));
    filter.hidden = choice.element.hidden = isEmpty;
  }
  async function load() {
    const part = wanted();
    const name = part && total > most ? { name: part } : {};
    try {
      const ask = (query) => get('/v1/queues?' + new URLSearchParams({ ...query, ...name }), signal);
      const none = { queues: [] };
      const [answer, oldest, inState] = await Promise.all([ask({ limit: most }), total > most ? ask({ limit: OLDEST, by: 'age' }) : none,
        total > most && shown[0] in LISTED ? ask({ limit: MOST, ...LISTED[shown[0]] }) : none]);
      if (part !== wanted()) return; // a request for newer input is on its way
      isCut = answer.queues.length >= most && total > most;
      queues = [...new Map([...answer.queues, ...oldest.queues, ...inState.queues].map((queue) => [queue.queue, queue])).values()];
      setText(wrong, '');
    } catch (error) {
      if (error.name === 'AbortError') return;
      setText(wrong, error.message);
    }
    if (queues.length === 0 && part === '' && wrong.textContent === '') {
      if (isLimited) replace(body, h('div', { class: 'card' }, NO_VISIBLE_TASKS));
      else if (!body.querySelector('.steps')) replace(body, firstSteps());
    } else if (!table.element.isConnected) replace(body, table.element);
    draw();
  }
  onLive((live) => {
    if (live.stats) total = live.stats.queue_count;
    isLimited = live.isLimited;
    draw();
  }, signal);
  every(3_000, signal, load);
}
