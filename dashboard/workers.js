// Workers: who has tasks now. The server does not list workers, but each leased task names its worker.
import { get, withQuery } from './api.js';
import { breakable, every, h, replace, setText } from './dom.js';
import { count, duration, plural } from './format.js';
import { onLive } from './live.js';
import { linkOf } from './queue_actions.js';
import { makeTable } from './table.js';

export const title = 'Workers';
const MOST = 1_000; // leased tasks that are looked at: one page of the list
const PERIOD = 5_000;
const MOST_NAMED = 5; // queues of one worker
const UNNAMED = '';

/** The workers of these tasks: {worker, tasks, queues, oldest}, the longest lease first. */
export function byWorker(tasks) {
  const workers = new Map();
  for (const { id, queue, worker = UNNAMED, leased_at: since } of tasks) {
    const one = workers.get(worker) ?? { worker, tasks: 0, queues: new Set(), oldest: { id, since } };
    one.tasks += 1;
    one.queues.add(queue);
    if (since < one.oldest.since) one.oldest = { id, since };
    workers.set(worker, one);
  }
  return [...workers.values()].sort((a, b) => (a.oldest.since < b.oldest.since ? -1 : 1));
}

/** {workers, isCut} of one queue, or of all queues. */
export async function fetchWorkers(queue, signal) {
  const { tasks, cursor } = await get(withQuery('/v1/tasks', { state: 'leased', queue, limit: MOST }), signal);
  return { workers: byWorker(tasks), isCut: cursor !== null };
}

/** {element, update()} with the workers of one queue, or of all queues. */
export function makeWorkers(queue, signal) {
  const age = ({ oldest }) => Date.now() - new Date(oldest.since).getTime();
  const table = makeTable({ label: 'Workers', key: ({ worker }) => worker, empty: 'No task is leased at this moment.', columns: [
    { label: 'Worker', kind: 'title', of: ({ worker }) => worker, cell: ({ worker }) => (worker === UNNAMED ? 'without a name' : breakable(worker)) },
    { label: 'Tasks', kind: 'number', sort: ({ tasks }) => tasks, of: ({ tasks }) => tasks, cell: ({ tasks }) => count(tasks) },
    ...(queue ? [] : [{ label: 'Queues', kind: 'name wide', of: ({ queues }) => [...queues].join(),
      cell: ({ queues }) => [[...queues].slice(0, MOST_NAMED).map((name, i) => [i > 0 && ', ', h('a', { href: linkOf(name) }, breakable(name))]),
        queues.size > MOST_NAMED && ` and ${plural(queues.size - MOST_NAMED, 'more queue')}`] }]),
    { label: 'Longest lease', kind: 'wide', sort: age, of: (one) => duration(age(one)),
      cell: (one) => [h('a', { href: '#/task/' + one.oldest.id }, `task ${one.oldest.id}`), h('span', { class: 'sub' }, ` for ${duration(age(one))}`)] },
  ] });
  const note = h('p', { class: 'note' });
  every(PERIOD, signal, async () => {
    const found = await fetchWorkers(queue, signal).catch(() => null);
    if (!found) return;
    table.setRows(found.workers);
    setText(note, found.isCut ? `Of the first ${count(MOST)} leased tasks.` : '');
  });
  return { element: h('div', {}, table.element, note) };
}

export function show(root, route, signal) {
  const sub = h('span', { class: 'sub' });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Workers'), sub),
    h('p', { class: 'lead' }, 'The workers that have a task now. A worker that waits for a task is only counted: the server does not know its name.'),
    makeWorkers(null, signal).element);
  onLive(({ now, stats, isLimited }) => {
    if (!now || !stats) return;
    setText(sub, [plural(now.totals.leased, 'leased task'), !isLimited && plural(stats.waiting_workers, 'waiting worker')].filter(Boolean).join(' · '));
  }, signal);
}
