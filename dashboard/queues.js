// Queues: their tasks, their limits, and the reason why tasks wait; pause, resume, redrive and purge.
import { get } from './api.js';
import { breakable, every, h, replace, setText } from './dom.js';
import { bytes, compact, count, duration, plural } from './format.js';
import { onLive } from './live.js';
import { firstSteps, NO_VISIBLE_TASKS } from './parts.js';
import { linkOf, queueActions, tasksOf } from './queue_actions.js';
import { makeTable } from './table.js';
import { whyQueueWaits } from './why.js';

export const title = 'Queues';
const SHOWN = 200; // lines at first; a filter finds other queues
const MOST = 1_000; // number of requested queues: those with most tasks
const OLDEST = 200; // further requested queues: those whose tasks wait longest, even if few

/** "50/s, 4 leases, 10,000 tasks" */
export function limitsOf({ rate, concurrency, max_tasks: tasks, max_bytes: size }) {
  return [rate !== null && `${count(rate)}/s`, concurrency !== null && plural(concurrency, 'lease'),
    tasks !== null && plural(tasks, 'task'), size !== null && bytes(size)].filter(Boolean).map((limit) => limit.replace(' ', '\u00a0')).join(', ') || '–';
}

function number(label, name) {
  return { label, kind: 'number', sort: (queue) => queue[name], of: (queue) => compact(queue[name]),
    cell: (queue) => (queue[name] === 0 ? '0' : h('a', { href: tasksOf(queue.queue, name), title: count(queue[name]) }, compact(queue[name]))) };
}

const SHORT = { concurrency: 'at its limit of leases', rate: 'at its rate', either: 'no worker, or its rate', workers: 'no worker', busy: 'workers busy', delivery: 'for its receiver' };

/** Why the tasks of the queue wait, in short; the full text on hover. */
function waitNode(why, queue) {
  if (!why) return h('span', { class: 'sub' }, 'nothing is due');
  const text = why.text[0].toUpperCase() + why.text.slice(1);
  return h('span', { class: queue.oldest_ready_age_ms > 5_000 ? 'late' : 'sub', title: text }, SHORT[why.kind]);
}

function columnsOf(reload, signal) {
  return [
    { label: 'Queue', kind: 'title', sort: ({ queue }) => queue, of: ({ queue }) => queue,
      cell: ({ queue }) => h('a', { href: linkOf(queue) }, breakable(queue)) },
    number('Scheduled', 'scheduled'), number('Ready', 'ready'), number('Leased', 'leased'), number('Dead', 'dead'),
    { label: 'Oldest ready', kind: 'number', sort: (queue) => queue.oldest_ready_age_ms ?? -1,
      of: (queue) => duration(queue.oldest_ready_age_ms), cell: (queue) => duration(queue.oldest_ready_age_ms) },
    { label: 'State', kind: 'wide still', sort: (queue) => whyQueueWaits(queue)?.kind ?? '',
      of: (queue) => `${queue.settings.paused} ${whyQueueWaits(queue)?.text} ${queue.oldest_ready_age_ms > 5_000}`,
      cell: (queue) => (queue.settings.paused ? h('span', { class: 'state', 'data-state': 'paused' }, 'paused')
        : waitNode(whyQueueWaits(queue), queue)) },
    { label: 'Limits', kind: 'wide', cell: (queue) => limitsOf(queue.settings) },
    { label: 'Actions', kind: 'actions', of: (queue) => `${queue.settings.paused} ${queue.scheduled + queue.ready} ${queue.dead}`,
      cell: (queue) => h('div', { class: 'buttons' }, queueActions(queue, reload, signal)) },
  ];
}

/** Says which queues are shown, if not all of them are. */
function cutText(isCut, isPart) {
  if (!isCut) return isPart ? `; the ${SHOWN} that need attention most are shown` : '';
  const told = `the ${count(MOST)} with most tasks and the ${OLDEST} whose tasks wait longest`;
  return `; ${isPart ? `of ${told}, the ${SHOWN} that need attention most are shown` : `${told} are shown`}. The filter finds the others`;
}

export function show(root, route, signal) {
  let queues = [];
  let total = 0; // number of queues of the server
  let isCut = false; // there are more queues than requested
  let isLimited = false;
  let isAll = false;
  const wanted = () => filter.value.trim();
  const filter = h('input', { type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter queues by name',
    oninput: () => { draw(); if (total > MOST) load(); } });
  const sub = h('p', { class: 'sub' });
  const more = h('button', { type: 'button', hidden: true, onclick: () => { isAll = true; draw(); } });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const table = makeTable({ label: 'Queues', columns: columnsOf(() => load(), signal), key: ({ queue }) => queue,
    sorted: ['Queue', 'ascending'] });
  const body = h('div', {}, table.element);
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Queues'), filter), sub, wrong, body, h('div', {}, more));

  function draw() {
    const part = wanted().toLowerCase();
    const found = queues.filter(({ queue }) => queue.toLowerCase().includes(part));
    const urgent = (queue) => (queue.oldest_ready_age_ms ?? 0) + queue.dead;
    const shown = isAll || found.length <= SHOWN ? found
      : [...found].sort((a, b) => urgent(b) - urgent(a) || b.scheduled - a.scheduled).slice(0, SHOWN);
    const isEmpty = queues.length === 0 && part === '';
    table.setRows(shown, isEmpty ? 'There is no queue yet.' : 'No queue name matches.');
    setText(more, `Show ${isCut ? '' : 'all '}${count(found.length)} queues`);
    more.hidden = shown.length === found.length;
    setText(sub, isEmpty ? 'The first task of a queue creates it.'
      : `${plural(Math.max(total, queues.length), 'queue')}${cutText(isCut, !more.hidden)}`);
    filter.hidden = isEmpty;
  }
  async function load() {
    const part = wanted();
    try {
      const query = new URLSearchParams({ limit: MOST, ...(part && total > MOST && { name: part }) });
      const [answer, oldest] = await Promise.all([get(`/v1/queues?${query}`, signal),
        total > MOST ? get(`/v1/queues?${new URLSearchParams({ limit: OLDEST, by: 'age', ...(part && { name: part }) })}`, signal) : { queues: [] }]);
      if (part !== wanted()) return; // a request for newer input is on its way
      isCut = answer.queues.length >= MOST && total > MOST;
      queues = [...new Map([...answer.queues, ...oldest.queues].map((queue) => [queue.queue, queue])).values()];
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
