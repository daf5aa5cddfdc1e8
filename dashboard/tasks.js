// Tasks: search by queue, state, key, payload, error and due time; retry, move or cancel many tasks
// together. Dead tasks come with the latest first.
import { get } from './api.js';
import { cancelTasks, findAll, moveTasks, retryTasks } from './bulk.js';
import { breakable, h, replace, setText } from './dom.js';
import { attempt } from './dialog.js';
import { count, plural, timeNode } from './format.js';
import { action, stateNode } from './parts.js';
import { pathOf, linkOf, purge } from './queue_actions.js';
import { makeTable } from './table.js';
import { mayMove } from './task_actions.js';
import { makeForm } from './task_form.js';
import { fetchPage, readAll, readSearch } from './task_search.js';

export const title = 'Tasks';
const PAGE = 100;
const SHORT_PAGES = 50; // requested in a row before the page asks the viewer whether to continue
const MOST_DEAD = 10_000; // dead tasks that the page puts in order
const LARGE = 1_000; // tasks of one request, if the page itself searches in them

const preview = (task) => ('payload_base64' in task ? task.payload_base64 : JSON.stringify(task.payload)).slice(0, 200);

function columnsOf(chosen, onChoice, isDead) {
  return [
    { label: 'Choose', kind: 'choose', of: ({ id, state }) => `${id} ${state} ${chosen.has(id)}`, cell: (task) => mayMove(task) && h('input', {
      type: 'checkbox', 'aria-label': `Choose task ${task.id}`, checked: chosen.has(task.id), onchange: (event) => {
        if (event.target.checked) chosen.add(task.id);
        else chosen.delete(task.id);
        onChoice();
      } }) },
    { label: 'Task', kind: 'title', of: ({ id }) => id, cell: ({ id }) => h('a', { href: '#/task/' + id }, id) },
    { label: 'Queue', kind: 'name wide', of: ({ queue }) => queue, cell: ({ queue }) => h('a', { href: linkOf(queue) }, breakable(queue)) },
    { label: 'State', of: ({ state }) => state, cell: ({ state }) => stateNode(state) },
    isDead ? { label: 'Died', kind: 'wide', sort: ({ died_at: at }) => at, of: ({ died_at: at }) => at, cell: ({ died_at: at }) => timeNode(at) }
      : { label: 'Due', kind: 'wide', of: (task) => task.due_at, cell: (task) => timeNode(task.due_at) },
    { label: 'Attempts', kind: 'number', cell: (task) => count(task.attempts) },
    { label: 'Key', kind: 'cut', cell: ({ key }) => key ?? '–' },
    { label: 'Last error or payload', kind: 'cut wide', of: (task) => task.last_error ?? preview(task),
      cell: (task) => (task.last_error ? h('span', { class: 'wrong', title: task.last_error }, task.last_error) : h('code', {}, preview(task))) },
  ];
}

/** The tasks of a search in pages: {tasks, next()}. next() resolves with true at the end. */
function makePages(search, signal, tell) {
  const tasks = [];
  let cursor = '';
  let seen = 0;
  return { tasks, async next() {
    const enough = tasks.length + PAGE;
    // The server's pages are short where it skips many other tasks.
    for (let i = 0; i < SHORT_PAGES && tasks.length < enough; ++i) {
      const page = await fetchPage(search, { limit: search.isByPage ? LARGE : enough - tasks.length, cursor }, signal);
      cursor = page.cursor ?? '';
      seen += page.seen;
      tasks.push(...page.tasks);
      if (page.cursor === null) return true;
      tell(`${count(tasks.length)} so far${search.isByPage ? ` of ${count(seen)} looked at` : ''}, searching …`);
    }
    return false;
  } };
}

/** The same for dead tasks, the latest death first. The server lists them queue by queue, so the page reads them first. */
function makeDeadPages(search, signal, tell) {
  const tasks = [];
  let all = null;
  return { tasks, async next() {
    if (all === null) {
      const found = await readAll(search, { most: MOST_DEAD, signal, tell: (n) => tell(`${count(n)} so far, searching …`) });
      // A queue's tasks come in the order of their deaths.
      all = found.tasks.reverse().sort((a, b) => (a.died_at < b.died_at) - (a.died_at > b.died_at));
    }
    tasks.push(...all.slice(tasks.length, tasks.length + PAGE));
    return tasks.length === all.length;
  } };
}

export function show(root, route, signal) {
  const search = readSearch(route.query);
  const isDead = search.parameters.state === 'dead';
  const chosen = new Set();
  let pages = null;
  const sub = h('p', { class: 'sub', role: 'status' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const names = h('datalist', { id: 'queue-names' });
  const more = h('button', { type: 'button', hidden: true, onclick: () => load() }, 'Show more');
  const after = (run) => async () => { if (await run([...chosen])) await again(); };
  const chosenText = h('span', {}, 'Choose tasks below, or');
  const ofChosen = [action(isDead ? 'Retry' : 'Run now', after(retryTasks), { kind: isDead ? 'primary' : null, signal }),
    action('Move …', after(moveTasks), { signal }), action('Cancel …', after(cancelTasks), { kind: 'danger', signal })];
  const chooseAll = h('button', { type: 'button', onclick: () => attempt(async () => {
    const ids = await findAll(search);
    if (ids === null) return;
    chosen.clear();
    for (const id of ids) chosen.add(id);
    onChoice(ids.length > 0 && 'All ');
  }) }, 'Choose all matching');
  const chooseNone = h('button', { type: 'button', hidden: true, onclick: () => {
    chosen.clear();
    onChoice();
  } }, 'Choose none');
  const purgeAll = action('Purge the queue …', async () => {
    const queue = await get(pathOf(search.parameters.queue), signal);
    if (await purge(queue)) await again();
  }, { kind: 'danger', signal });
  purgeAll.hidden = Object.keys(search.parameters).join() !== 'queue' || search.isByPage;
  const bulk = h('div', { class: 'card head bulk' }, chosenText, chooseAll, chooseNone, ofChosen, purgeAll);
  function onChoice(how = '') {
    for (const button of ofChosen) button.hidden = chosen.size === 0;
    chooseNone.hidden = chosen.size === 0;
    setText(chosenText, chosen.size === 0 ? 'Choose tasks below, or' : `${how || ''}${plural(chosen.size, how ? 'matching task' : 'task')} chosen`);
    if (pages) table.setRows([...pages.tasks]);
  }
  const table = makeTable({ label: 'Tasks', columns: columnsOf(chosen, () => onChoice(), isDead), key: ({ id }) => id, sorted: isDead ? ['Died', 'descending'] : null });
  const form = makeForm(route.query, names, (asked) => {
    const next = '#/tasks?' + new URLSearchParams(asked);
    if (location.hash === next) again();
    else location.hash = next;
  });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Tasks'),
    h('button', { type: 'button', onclick: () => again() }, 'Refresh')), form, wrong, sub, bulk, table.element, h('div', {}, more));

  async function load() {
    more.disabled = true;
    setText(wrong, '');
    try {
      const isEnd = await pages.next();
      if (signal.aborted) return;
      const { tasks } = pages;
      more.hidden = isEnd;
      bulk.hidden = isEnd && !tasks.some(mayMove);
      setText(sub, isEnd ? plural(tasks.length, 'task')
        : isDead ? `The last ${plural(tasks.length, 'task')} that died` : `The first ${plural(tasks.length, 'task')}; there may be more`);
      table.setRows([...tasks], isEnd ? 'No matching tasks. Completed and cancelled tasks are gone, unless their queue keeps finished tasks.'
        : 'None so far. “Show more” continues the search.');
    } catch (error) {
      if (error.name === 'AbortError') return;
      setText(wrong, error.message);
    } finally {
      more.disabled = false;
    }
  }
  async function again() {
    pages = (isDead ? makeDeadPages : makePages)(search, signal, (text) => setText(sub, text));
    chosen.clear();
    onChoice();
    await load();
  }
  again();
  get('/v1/stats?queues=1000', signal).then(({ queues }) => replace(names, queues.map(({ queue }) => h('option', { value: queue }))))
    .catch(() => {}); // suggested names are optional
}
