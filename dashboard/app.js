// The page: its frame, the choice of the view by the address (#/queues?…), and the keyboard.
//
// A view is a module with `title` and `show(root, route, signal)`: it builds its elements into
// `root` and works until `signal` aborts. docs/operating/dashboard.md describes the views.
import { forgetToken, hasToken, access } from './api.js';
import { h, replace, setText } from './dom.js';
import { openDialog } from './dialog.js';
import { icon, mark } from './icons.js';
import { makeBanner } from './banner.js';
import { onLive, startLive } from './live.js';
import { switchTheme } from './theme.js';
import * as cluster from './cluster.js';
import * as errors from './errors.js';
import * as forecast from './forecast.js';
import * as now from './now.js';
import * as queue from './queue.js';
import * as queues from './queues.js';
import * as schedule from './schedule.js';
import * as schedules from './schedules.js';
import * as task from './task.js';
import * as tasks from './tasks.js';
import * as wheel from './wheel.js';
import * as workers from './workers.js';

/** In the order of the navigation. The keys g and the view's letter open a view. */
const SECTIONS = [
  { name: 'now', label: 'Now', key: 'n', view: now },
  { name: 'queues', label: 'Queues', key: 'q', view: queues },
  { name: 'tasks', label: 'Tasks', key: 't', view: tasks },
  { name: 'errors', label: 'Errors', key: 'e', view: errors },
  { name: 'workers', label: 'Workers', key: 'o', view: workers },
  { name: 'schedules', label: 'Schedules', key: 's', view: schedules },
  { name: 'wheel', label: 'Wheel', key: 'w', view: wheel },
  { name: 'forecast', label: 'Forecast', key: 'f', view: forecast },
  { name: 'cluster', label: 'Cluster', key: 'c', view: cluster },
];
/** Views of a single object, with the section that the navigation marks. */
const DETAILS = { queue: { view: queue, section: 'queues' }, task: { view: task, section: 'tasks' }, schedule: { view: schedule, section: 'schedules' } };

const main = h('main', { id: 'main', tabindex: '-1' });
let shown = null; // the AbortController of the view

/** Decodes a part of the address. A part that was cut inside an escape stays unchanged. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** {name, rest, query} of "#/task/256?x=y". */
function readRoute() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...rest] = path.split('/').map(decoded);
  return { name: name || 'now', rest, query: new URLSearchParams(query) };
}

function showRoute() {
  const route = readRoute();
  const section = SECTIONS.find(({ name }) => name === route.name);
  const detail = DETAILS[route.name];
  const view = section?.view ?? detail?.view;
  if (!view) {
    location.replace('#/now');
    return;
  }
  shown?.abort();
  shown = new AbortController();
  const current = section?.name ?? detail.section;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.section === current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${view.title} · Detent`;
  replace(main);
  view.show(main, route, shown.signal);
  scrollTo(0, 0);
}

// ---- the keyboard ----

const KEYS = [
  ...SECTIONS.map(({ key, label }) => [`g ${key}`, label]),
  ['/', 'search for a task'], ['d', 'light or dark'], ['?', 'these keys'],
  ['Tab, Enter', 'everything else'], ['Esc', 'close'],
];

function showKeys() {
  openDialog('Keys', (close) => [
    h('dl', { class: 'keys' }, KEYS.map(([keys, what]) => [
      h('dt', {}, keys.split(' ').map((key) => h('kbd', {}, key))), h('dd', {}, what)])),
    h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => close() }, 'Close')),
  ]);
}

let goTo = false; // g was pressed

function onKey(event) {
  const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const section = goTo ? SECTIONS.find(({ key }) => key === event.key) : null;
  goTo = event.key === 'g' && !goTo;
  if (section) location.hash = '#/' + section.name;
  else if (event.key === '/') document.getElementById('search').focus();
  else if (event.key === '?') showKeys();
  else if (event.key === 'd') switchTheme();
  else return;
  event.preventDefault();
}

// ---- the frame ----

/** An id opens its task; the page searches for other text as a key. */
function search(event) {
  event.preventDefault();
  const text = document.getElementById('search').value.trim();
  if (text === '') return;
  location.hash = /^[1-9][0-9]{0,15}$/.test(text) ? '#/task/' + text
    : '#/tasks?' + new URLSearchParams({ key: text });
  document.activeElement.blur();
}

function makeFrame() {
  const status = h('span', { class: 'status', role: 'status' }, 'connecting');
  const signOut = h('button', { type: 'button', class: 'quiet', hidden: true, onclick: forgetToken }, 'Sign out');
  access.addEventListener('change', () => { signOut.hidden = !hasToken(); });
  signOut.hidden = !hasToken();
  onLive(({ state, problem }) => {
    status.dataset.state = state;
    setText(status, { live: 'live', failed: 'not ready', lost: 'no answer', refused: 'no access' }[state] ?? state);
    status.title = problem ?? 'What you see is at most two seconds old';
  });
  document.body.append(
    h('a', { class: 'skip', href: '#main', onclick: (event) => {
      event.preventDefault();
      main.focus();
    } }, 'Skip to the content'),
    h('header', {},
      h('a', { class: 'brand', href: '#/now' }, mark(), h('span', {}, 'Detent')),
      h('form', { class: 'search', role: 'search', onsubmit: search },
        icon('search'),
        h('input', { id: 'search', type: 'search', placeholder: 'Task id or key', autocomplete: 'off',
          spellcheck: 'false', 'aria-label': 'Find a task by its id or key' }), h('kbd', {}, '/')),
      status, signOut,
      h('button', { type: 'button', class: 'quiet', onclick: switchTheme, 'aria-label': 'Light or dark', title: 'Light or dark (d)' }, icon('theme')),
      h('button', { type: 'button', class: 'quiet help', onclick: showKeys, 'aria-label': 'Keys', title: 'Keys (?)' }, icon('help'))),
    makeBanner(),
    h('nav', { 'aria-label': 'Views' }, SECTIONS.map(({ name, label, key }) =>
      h('a', { href: '#/' + name, 'data-section': name, title: `${label} (g ${key})` }, icon(name), h('span', {}, label)))),
    main,
    h('div', { id: 'messages', 'aria-live': 'polite' }));
}

makeFrame();
addEventListener('hashchange', showRoute);
addEventListener('keydown', onKey);
startLive(new AbortController().signal);
showRoute();
