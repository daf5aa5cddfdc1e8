// Errors: the dead tasks, grouped by queue and error message. One press retries or cancels a group.
import { cancelTasks, retryTasks } from './bulk.js';
import { breakable, h, replace, setText } from './dom.js';
import { count, plural, timeNode } from './format.js';
import { action } from './parts.js';
import { linkOf } from './queue_actions.js';
import { makeTable } from './table.js';
import { readAll, readSearch, shapeOf } from './task_search.js';

export const title = 'Errors';
const MOST = 20_000; // dead tasks that are looked at
const SHOWN = 200; // groups

/** {key, queue, error, ids, last} of each group, the largest first. The server lists the dead tasks of a queue by their death. */
export function groupsOf(tasks) {
  const groups = new Map();
  for (const { id, queue, last_error: error = '', died_at: last } of tasks) {
    const key = queue + '\n' + shapeOf(error);
    const group = groups.get(key) ?? { key, queue, error, ids: [] };
    group.ids.push(id);
    group.last = last;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.ids.length - a.ids.length || (a.key < b.key ? -1 : 1));
}

const listOf = ({ queue, error }) => '#/tasks?' + new URLSearchParams({ queue, state: 'dead', ...(error && { error: shapeOf(error) }) });

function columnsOf(isOfOne, reload, signal) {
  const then = (run) => async () => { if (await run()) await reload(); };
  return [
    { label: 'Error', kind: 'title', of: ({ error }) => error, cell: (group) => h('a', { class: 'message-link', href: listOf(group) }, shapeOf(group.error) || 'no message') },
    !isOfOne && { label: 'Queue', kind: 'name wide', sort: ({ queue }) => queue, of: ({ queue }) => queue, cell: ({ queue }) => h('a', { href: linkOf(queue) }, breakable(queue)) },
    { label: 'Tasks', kind: 'number', sort: ({ ids }) => ids.length, of: ({ ids }) => count(ids.length), cell: ({ ids }) => count(ids.length) },
    { label: 'Last death', kind: 'wide', sort: ({ last }) => last ?? '', of: ({ last }) => last ?? '', cell: ({ last }) => (last ? timeNode(last) : '–') },
    { label: 'Actions', kind: 'actions', of: ({ ids }) => ids.join(), cell: ({ ids }) => h('div', { class: 'buttons' },
      action('Retry', then(() => retryTasks(ids)), { kind: 'primary', title: 'Due now, with all attempts', signal }),
      action('Cancel …', then(() => cancelTasks(ids)), { kind: 'danger', signal })) },
  ].filter(Boolean);
}

/** The groups of one queue (or of all queues) in an element that loads itself: {element, load()}. */
function makeGroups(queue, signal) {
  const sub = h('p', { class: 'sub', role: 'status' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const table = makeTable({ label: 'Errors', key: ({ key }) => key, columns: columnsOf(Boolean(queue), () => load(), signal) });
  async function load() {
    try {
      const search = readSearch(new URLSearchParams({ state: 'dead', ...(queue && { queue }) }));
      const { tasks, isCut } = await readAll(search, { most: MOST, signal, tell: (found) => setText(sub, `${count(found)} so far …`) });
      const groups = groupsOf(tasks);
      const shown = groups.slice(0, SHOWN);
      setText(wrong, '');
      setText(sub, `${isCut ? `The first ${count(MOST)} dead tasks` : plural(tasks.length, 'dead task')} in ${plural(groups.length, 'group')}` +
        `${shown.length < groups.length ? `; the ${SHOWN} most frequent are shown` : ''}`);
      table.setRows([...shown], 'No task is dead.');
    } catch (error) {
      if (error.name !== 'AbortError') setText(wrong, error.message);
    }
  }
  load();
  return { element: h('div', { class: 'stack' }, sub, wrong, table.element), load };
}

/** The errors of one queue, as a section of its page: {element, load()}. */
export function errorsOf(queue, signal) {
  const { element, load } = makeGroups(queue, signal);
  return { element: h('section', { class: 'stack' }, h('h2', {}, 'Errors of its dead tasks'), element), load };
}

export function show(root, route, signal) {
  const groups = makeGroups(null, signal);
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Errors'), h('a', { class: 'button', href: '#/tasks?state=dead' }, 'All dead tasks'),
    h('button', { type: 'button', onclick: groups.load }, 'Refresh')),
  h('p', { class: 'lead' }, 'Dead tasks have used all their attempts. They stay until somebody retries, moves or cancels them. Errors that differ only in an id or a long number are one group.'),
  groups.element);
}
