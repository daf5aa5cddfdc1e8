// One schedule: its rule, its next occurrences and its progress; or the form that changes it
// (#/schedule/NAME/edit) or creates one (#/schedule).
import { call, get } from './api.js';
import { attempt, confirmed } from './dialog.js';
import { every, h, replace } from './dom.js';
import { count, duration, fromNow, timeNode, viewerZone, zoneTime } from './format.js';
import { action, fact, stateNode } from './parts.js';
import { linkOf as queueLink } from './queue_actions.js';
import { indented, rawMember } from './raw_json.js';
import { showForm } from './schedule_form.js';
import { bothZones, lastNode, outcomesOf, pathOf, scheduleActions } from './schedules.js';
import { makeTable } from './table.js';

export const title = 'Schedule';

const MISFIRE = { skip: 'pass without a task', once: 'one task for the last of them', all: 'a task for each' };
const OVERLAP = { allow: 'another task is created', skip: 'it passes without a task', queue_one: 'its task is created when the last task ends' };

const inZone = (time, zone) => h('time', { datetime: time, title: `${time} · ${fromNow(time)}` }, zoneTime(time, zone));

function factsOf(schedule, outcomes) {
  return h('dl', { class: 'facts' },
    fact('rule', h('code', {}, schedule.cron ?? (schedule.every_ms ? 'every ' + duration(schedule.every_ms) : `every ${schedule.calendar.every} ${schedule.calendar.unit}`))),
    fact('time zone', schedule.time_zone),
    fact('queue', h('a', { href: queueLink(schedule.queue) }, schedule.queue)),
    fact('last', lastNode(schedule, outcomes)),
    fact('tasks created', count(schedule.made), schedule.count ? ` of ${count(schedule.count)}` : ''),
    schedule.start && fact('not before', timeNode(schedule.start)), schedule.end && fact('until', timeNode(schedule.end)),
    fact('missed occurrences', MISFIRE[schedule.misfire] ?? schedule.misfire),
    fact('while the last task lives', OVERLAP[schedule.overlap] ?? schedule.overlap,
      schedule.overlapped > 0 && ` (${count(schedule.overlapped)} so far)`),
    schedule.jitter_ms > 0 && fact('jitter', 'up to ' + duration(schedule.jitter_ms)),
    fact('created at', timeNode(schedule.created_at)));
}

async function remove({ name }) {
  if (!await confirmed(`Remove ${name}?`, 'It creates no more tasks. The tasks that it has created stay.', 'Remove')) return;
  if (await attempt(() => call('DELETE', pathOf(name)), `${name} is removed.`)) location.hash = '#/schedules';
}

function showOne(root, name, signal) {
  const head = h('div', { class: 'head' }, h('h1', {}, name));
  const what = h('section', { class: 'card verdict' });
  const facts = h('section', { class: 'card' });
  const payload = h('section', { class: 'card' });
  const next = makeTable({ label: 'Next occurrences', key: (time) => time, empty: 'No more.', columns: [
    { label: 'Next, in its zone', kind: 'title', of: (time) => time, cell: (time) => inZone(time, zone) },
    { label: `Here (${viewerZone()})`, kind: 'wide', of: (time) => time, cell: (time) => inZone(time, viewerZone()) },
  ] });
  let zone = 'UTC';
  let seen = '';
  replace(root, head, what, h('div', { class: 'grid' }, facts, h('section', { class: 'stack' }, h('h2', {}, 'Next occurrences'), next.element)), payload);
  async function load() {
    try {
      const { value: schedule, text } = await call('GET', pathOf(name), { signal, whole: true });
      const { next: times } = await get(pathOf(name, 'next') + '?count=10', signal);
      const outcomes = await outcomesOf([schedule], signal);
      zone = schedule.time_zone;
      next.setRows(times);
      const now = text + JSON.stringify([...outcomes]);
      if (now === seen) return; // do not rebuild an element that has the focus
      seen = now;
      draw(schedule, text, outcomes);
    } catch (error) {
      if (error.name === 'AbortError') return;
      replace(what, h('strong', {}, error.status === 404 ? 'There is no such schedule, or not any more.' : error.message));
      replace(facts);
    }
  }
  function draw(schedule, text, outcomes) {
    replace(head, h('h1', {}, name), stateNode(schedule.state), h('div', { class: 'buttons' }, scheduleActions(schedule, load, signal),
      h('a', { class: 'button', href: `#/schedule/${encodeURIComponent(name)}/edit` }, 'Edit'),
      action('Remove …', () => remove(schedule), { kind: 'danger', signal })));
    what.className = `card verdict ${schedule.error ? 'bad' : ''}`;
    replace(what, h('div', {}, h('strong', {}, schedule.error ?? schedule.words),
      schedule.next_at && h('div', { class: 'sub' }, 'next: ', bothZones(schedule.next_at, schedule.time_zone))));
    replace(facts, h('h2', {}, 'Facts'), factsOf(schedule, outcomes));
    replace(payload, h('h2', {}, 'Payload of each task'), h('pre', {}, schedule.payload_base64 ?? indented(rawMember(text, 'payload') ?? 'null')));
  }
  every(3_000, signal, load);
}

export function show(root, route, signal) {
  const [name, verb] = route.rest;
  if (!name || verb === 'edit') showForm(root, name ?? null, signal);
  else showOne(root, name, signal);
}
