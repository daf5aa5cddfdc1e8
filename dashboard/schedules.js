// Schedules: the recurring rules in words, the next occurrence in the schedule's zone and in the
// viewer's zone, the state of the last task; pause, resume, trigger.
import { call, get, withQuery } from './api.js';
import { attempt } from './dialog.js';
import { breakable, every, h, replace, setText } from './dom.js';
import { fromNow, plural, timeNode, viewerZone, zoneTime } from './format.js';
import { action, actionMenu, copyable, stateNode } from './parts.js';
import { linkOf as queueLink } from './queue_actions.js';
import { makeTable } from './table.js';

export const title = 'Schedules';
const PAGE = 200;

export const pathOf = (name, verb = '') => `/v1/schedules/${encodeURIComponent(name)}${verb && '/' + verb}`;
const linkOf = (name) => '#/schedule/' + encodeURIComponent(name);

/** The actions for a schedule, for all views. */
export function scheduleActions(schedule, reload, signal) {
  const { name, paused } = schedule;
  const then = (run, done) => async () => { if (await attempt(run, done)) await reload(); };
  return [action('Trigger', then(() => call('POST', pathOf(name, 'trigger')), ({ id }) => `Task ${id} was created.`),
      { title: 'Create one task now', signal }),
    action(paused ? 'Resume' : 'Pause', then(() => call('POST', pathOf(name, paused ? 'resume' : 'pause')),
      paused ? `${name} is resumed.` : `${name} is paused: its occurrences pass without a task.`), { signal })];
}

/** The next time in both zones; one line if the zones agree. */
export function bothZones(time, zone) {
  const here = zoneTime(time, viewerZone());
  const there = zoneTime(time, zone);
  return [h('time', { datetime: time, title: `${time} · ${fromNow(time)}` }, there), ' ', breakable(zone),
    here !== there && h('div', { class: 'sub' }, `${here} here`)];
}

/** The last task of the schedule, and its state. */
export function lastNode(schedule, outcomes) {
  if (!schedule.last_task) return '–';
  const state = outcomes?.get(schedule.last_task);
  return [h('a', { href: '#/task/' + schedule.last_task }, `task ${schedule.last_task}`),
    state && [' ', state === 'gone' ? h('span', { class: 'sub', title: 'completed or cancelled, and not kept' }, 'ended') : stateNode(state)],
    schedule.last_at && h('div', { class: 'sub' }, timeNode(schedule.last_at))];
}

/** state by id of the last tasks; 'gone' for ended tasks. */
export async function outcomesOf(schedules, signal) {
  const ids = schedules.map(({ last_task: id }) => id).filter(Boolean).slice(0, 50);
  const outcomes = new Map();
  for (const id of ids) {
    const found = await get('/v1/tasks/' + id, signal).then((task) => task.state, (error) => (error.status === 404 ? 'gone' : null));
    if (found) outcomes.set(id, found);
  }
  return outcomes;
}

function columnsOf(reload, signal) {
  return [
    { label: 'Schedule', kind: 'title', sort: ({ name }) => name, of: ({ name }) => name, cell: ({ name }) => h('a', { href: linkOf(name) }, breakable(name)) },
    { label: 'State', of: ({ state }) => state, sort: ({ state }) => state, cell: ({ state }) => stateNode(state) },
    { label: 'When', kind: 'wide', of: ({ words, error }) => error ?? words, cell: ({ words, error }) => (error ? h('span', { class: 'wrong' }, error) : breakable(words, /(?<=[/_])/)) },
    { label: 'Next', kind: 'wide', sort: ({ next_at: next }) => next ?? '9999', of: ({ next_at: next, time_zone: zone }) => `${next} ${zone}`,
      cell: ({ next_at: next, time_zone: zone }) => (next ? bothZones(next, zone) : '–') },
    { label: 'Queue', kind: 'name wide', of: ({ queue }) => queue, cell: ({ queue }) => h('a', { href: queueLink(queue) }, breakable(queue)) },
    { label: 'Last', kind: 'wide', of: ({ last_task: id, last_at: at, outcome }) => `${id} ${at} ${outcome}`,
      cell: (schedule) => lastNode(schedule, new Map([[schedule.last_task, schedule.outcome]])) },
    { label: 'Actions', kind: 'actions', of: ({ paused }) => paused, cell: (schedule) => actionMenu(schedule.name, scheduleActions(schedule, reload, signal)) },
  ];
}

function firstSchedule() {
  return h('section', { class: 'card' }, h('h2', {}, 'No recurring schedule yet'),
    h('p', { class: 'lead' }, 'A schedule creates a task again and again: by cron, by an interval, or by the calendar, in any time zone. ',
      h('a', { href: '#/schedule' }, 'Create one here'), ', or:'),
    copyable(`curl -s -X PUT ${location.origin}/v1/schedules/report -d '{"cron":"0 9 * * MON","time_zone":"${viewerZone()}","queue":"reports"}'`));
}

export function show(root, route, signal) {
  const sub = h('p', { class: 'sub' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const table = makeTable({ label: 'Schedules', columns: columnsOf(() => load(), signal), key: ({ name }) => name });
  const body = h('div', {}, table.element);
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Schedules'), h('a', { class: 'button', href: '#/schedule' }, 'Create schedule')), sub, wrong, body);

  async function load() {
    try {
      const { schedules, cursor } = await get(withQuery('/v1/schedules', { limit: PAGE }), signal);
      const outcomes = await outcomesOf(schedules, signal);
      setText(wrong, '');
      setText(sub, cursor === null ? plural(schedules.length, 'schedule') : `The first ${PAGE} schedules by name`);
      if (schedules.length === 0) {
        if (!body.querySelector('.copyable')) replace(body, firstSchedule());
        return;
      }
      if (!table.element.isConnected) replace(body, table.element);
      const isBroken = ({ error }) => (error ? 0 : 1); // the server lists by name; the broken schedules come first
      table.setRows(schedules.map((schedule) => ({ ...schedule, outcome: outcomes.get(schedule.last_task) })).sort((a, b) => isBroken(a) - isBroken(b)));
    } catch (error) {
      if (error.name !== 'AbortError') setText(wrong, error.message);
    }
  }
  every(5_000, signal, load);
}
