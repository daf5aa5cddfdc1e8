// Tasks: search by queue, state, key and due time; move or cancel many tasks together.
import { get, withQuery } from './api.js';
import { h, replace, setText } from './dom.js';
import { count, fromInput, plural, timeNode, toInput } from './format.js';
import { action, stateNode } from './parts.js';
import { makeTable } from './table.js';
import { cancelTasks, mayMove, moveTasks } from './task_actions.js';

export const title = 'Tasks';
const PAGE = 100;
const SHORT_PAGES = 50; // requested in a row before the page asks the viewer whether to continue
const STATES = ['', 'scheduled', 'ready', 'leased', 'dead', 'completed', 'cancelled'];

const preview = (task) => ('payload_base64' in task ? task.payload_base64 : JSON.stringify(task.payload)).slice(0, 200);

function columnsOf(chosen, onChoice) {
  return [
    { label: 'Choose', kind: 'choose', of: ({ id, state }) => id + state, cell: (task) => mayMove(task) && h('input', {
      type: 'checkbox', 'aria-label': `Choose task ${task.id}`, checked: chosen.has(task.id), onchange: (event) => {
        if (event.target.checked) chosen.add(task.id);
        else chosen.delete(task.id);
        onChoice();
      } }) },
    { label: 'Task', kind: 'title', of: ({ id }) => id, cell: ({ id }) => h('a', { href: '#/task/' + id }, id) },
    { label: 'Queue', kind: 'name wide', cell: ({ queue }) => queue },
    { label: 'State', of: ({ state }) => state, cell: ({ state }) => stateNode(state) },
    { label: 'Due', kind: 'wide', of: (task) => task.due_at, cell: (task) => timeNode(task.due_at) },
    { label: 'Attempts', kind: 'number', cell: (task) => count(task.attempts) },
    { label: 'Key', kind: 'cut', cell: ({ key }) => key ?? '–' },
    { label: 'Last error or payload', kind: 'cut wide', of: (task) => task.last_error ?? preview(task),
      cell: (task) => (task.last_error ? h('span', { class: 'wrong' }, task.last_error) : h('code', {}, preview(task))) },
  ];
}

/** The form; `onSearch(query)` gets the search. */
function makeForm(query, queues, onSearch) {
  const value = (name) => query.get(name) ?? '';
  const time = (name) => (value(name) ? toInput(value(name)) : '');
  const input = {
    queue: h('input', { list: 'queue-names', value: value('queue'), autocomplete: 'off', spellcheck: 'false' }),
    state: h('select', {}, STATES.map((state) => h('option', { value: state, selected: state === value('state') }, state || 'any'))),
    key: h('input', { value: value('key'), autocomplete: 'off', spellcheck: 'false' }),
    due_after: h('input', { type: 'datetime-local', step: '1', value: time('due_after') }),
    due_before: h('input', { type: 'datetime-local', step: '1', value: time('due_before') }),
  };
  const submit = (event) => {
    event.preventDefault();
    const asked = {};
    for (const [name, field] of Object.entries(input)) {
      const given = name.startsWith('due_') ? fromInput(field.value)?.toISOString() : field.value.trim();
      if (given) asked[name] = given;
    }
    onSearch(asked);
  };
  const labels = { queue: 'Queue', state: 'State', key: 'Key', due_after: 'Due from', due_before: 'Due before' };
  return h('form', { class: 'card fields', onsubmit: submit, 'aria-label': 'Find tasks' },
    Object.entries(input).map(([name, field]) => h('label', { class: name === 'state' || name === 'key' ? null : 'long' }, h('span', {}, labels[name]), field)),
    h('datalist', { id: 'queue-names' }, queues),
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Search'),
      h('a', { class: 'button', href: '#/tasks' }, 'Clear')));
}

export function show(root, route, signal) {
  const tasks = [];
  const chosen = new Set();
  let cursor = '';
  const sub = h('p', { class: 'sub', role: 'status' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const names = h('datalist', { id: 'queue-names' });
  const more = h('button', { type: 'button', hidden: true, onclick: () => load() }, 'Show more');
  const after = (run) => async () => { if (await run([...chosen])) await again(); };
  const chosenText = h('span', {});
  const bulk = h('div', { class: 'card head', hidden: true }, chosenText,
    action('Move …', after(moveTasks), { signal }), action('Cancel …', after(cancelTasks), { kind: 'danger', signal }));
  const onChoice = () => {
    bulk.hidden = chosen.size === 0;
    setText(chosenText, `${plural(chosen.size, 'task')} chosen`);
  };
  const table = makeTable({ label: 'Tasks', columns: columnsOf(chosen, onChoice), key: ({ id }) => id });
  const form = makeForm(route.query, [], (asked) => {
    const next = '#/tasks?' + new URLSearchParams(asked);
    if (location.hash === next) again();
    else location.hash = next;
  });
  form.querySelector('datalist').replaceWith(names);
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Tasks'),
    h('button', { type: 'button', onclick: () => again() }, 'Refresh')), form, wrong, sub, bulk, table.element, h('div', {}, more));

  /** Another PAGE of tasks. The server's pages are short where it skips many other tasks. */
  async function fetchMore() {
    const asked = Object.fromEntries([...route.query].filter(([name]) => name !== 'cursor'));
    const enough = tasks.length + PAGE;
    for (let i = 0; i < SHORT_PAGES && tasks.length < enough; ++i) {
      const page = await get(withQuery('/v1/tasks', { ...asked, limit: enough - tasks.length, cursor }), signal);
      cursor = page.cursor ?? '';
      tasks.push(...page.tasks);
      if (page.cursor === null) return true;
      setText(sub, `${count(tasks.length)} so far, searching …`);
    }
    return false;
  }
  async function load() {
    more.disabled = true;
    setText(wrong, '');
    try {
      const isEnd = await fetchMore();
      if (signal.aborted) return;
      more.hidden = isEnd;
      setText(sub, isEnd ? plural(tasks.length, 'task') : `The first ${plural(tasks.length, 'task')}; there may be more`);
      table.setRows([...tasks], isEnd ? 'No task matches. Completed and cancelled tasks are gone, unless their queue has a retention.'
        : 'None so far. “Show more” continues the search.');
    } catch (error) {
      if (error.name === 'AbortError') return;
      setText(wrong, error.message);
    } finally {
      more.disabled = false;
    }
  }
  async function again() {
    tasks.length = 0;
    chosen.clear();
    cursor = '';
    onChoice();
    await load();
  }
  load();
  get('/v1/stats?queues=1000', signal).then(({ queues }) => replace(names, queues.map(({ queue }) => h('option', { value: queue }))))
    .catch(() => {}); // suggested names are optional
}
