// The form that creates or changes a schedule. For each input, the server returns a preview: the rule
// in words, and the next occurrences in the schedule's zone and in the viewer's zone.
import { call, withQuery } from './api.js';
import { tell } from './dialog.js';
import { debounce, h, replace } from './dom.js';
import { durationText, fromInput, toInput, viewerZone, zoneTime } from './format.js';
import { offWhenRefused } from './parts.js';
import { rawMember, withRaw } from './raw_json.js';

/** Members of PUT that the form does not show are sent back unchanged. */
const KEPT = ['gap', 'repeat', 'priority', 'max_attempts', 'visibility_timeout_ms', 'backoff', 'count', 'start', 'end',
  'jitter_ms', 'misfire_grace_ms', 'misfire_limit', 'payload_base64'];

const select = (values, chosen) => h('select', {}, values.map(([value, text]) =>
  h('option', { value, selected: value === chosen }, text)));

function makeInputs(schedule, payload) {
  const kind = schedule.every_ms ? 'every' : schedule.calendar ? 'calendar' : 'cron';
  const text = (value = '', more = {}) => h('input', { value, autocomplete: 'off', spellcheck: 'false', ...more });
  return {
    name: text('', { required: true }),
    kind: select([['cron', 'cron expression'], ['every', 'interval'], ['calendar', 'calendar']], kind),
    cron: text(schedule.cron ?? '0 9 * * MON-FRI', { class: 'mono' }),
    every: text(schedule.every_ms ? durationText(schedule.every_ms) : '15m'),
    step: h('input', { type: 'number', min: 1, value: schedule.calendar?.every ?? 1 }),
    unit: select(['day', 'week', 'month', 'year'].map((unit) => [unit, unit]), schedule.calendar?.unit ?? 'month'),
    monthEnd: select([['clamp', 'on its last day'], ['skip', 'not at all']], schedule.calendar?.month_end),
    anchor: h('input', { type: 'datetime-local', step: '1', value: schedule.anchor ? toInput(schedule.anchor) : '' }),
    zone: text(schedule.time_zone ?? viewerZone(), { list: 'zones' }),
    queue: text(schedule.queue, { required: true }),
    misfire: select([['once', 'one task for the last'], ['skip', 'no task'], ['all', 'a task for each']], schedule.misfire ?? 'once'),
    overlap: select([['allow', 'create another task'], ['skip', 'create no task'], ['queue_one', 'wait until it ends']], schedule.overlap ?? 'allow'),
    payload: h('textarea', { spellcheck: 'false', value: payload }),
  };
}

/** The body of PUT, as text; throws an error on wrong input. */
function bodyOf(input, schedule) {
  const body = Object.fromEntries(KEPT.filter((name) => name in schedule).map((name) => [name, schedule[name]]));
  const anchor = fromInput(input.anchor.value);
  const kind = input.kind.value;
  if (kind === 'cron') body.cron = input.cron.value;
  if (kind === 'every') body.every = input.every.value.trim();
  if (kind === 'calendar') body.calendar = { every: Number(input.step.value), unit: input.unit.value, month_end: input.monthEnd.value };
  if (kind !== 'cron' && anchor) body.anchor = isSameSecond(anchor, schedule.anchor) ? schedule.anchor : anchor.toISOString();
  Object.assign(body, { time_zone: input.zone.value.trim(), queue: input.queue.value.trim(),
    misfire: input.misfire.value, overlap: input.overlap.value });
  if ('payload_base64' in body) return JSON.stringify(body);
  const payload = input.payload.value.trim() || 'null';
  try {
    JSON.parse(payload);
  } catch (error) {
    throw new Error('The payload is not JSON: ' + error.message);
  }
  return withRaw(body, 'payload', payload);
}

/** The input shows whole seconds; saving must not drop the fraction. */
const isSameSecond = (a, b) => b && Math.floor(a.getTime() / 1_000) === Math.floor(new Date(b).getTime() / 1_000);

function previewNode({ words, next }, zone) {
  return [h('strong', {}, words), next.length === 0 ? h('p', { class: 'sub' }, 'It never occurs.')
    : h('ol', { class: 'next' }, next.map((time) => h('li', {}, zoneTime(time, zone),
      zone !== viewerZone() && h('span', { class: 'sub' }, ` · ${zoneTime(time, viewerZone())} here`))))];
}

function layOut(input, name, preview, wrong, submit) {
  const field = (label, element, kind = null) => h('label', { class: kind }, h('span', {}, label), element);
  const ofKind = (kind, ...fields) => h('div', { class: 'fields wide', 'data-kind': kind }, fields);
  return h('form', { class: 'card', onsubmit: submit, 'aria-label': 'Schedule' }, h('div', { class: 'fields' },
    !name && field('Name', input.name), field('Target queue', input.queue), field('Rule', input.kind), field('Time zone', input.zone),
    ofKind('cron', field('Cron expression: minute hour day month weekday', input.cron, 'wide')),
    ofKind('every', field('Every (30s, 15m, 6h, 1d)', input.every)),
    ofKind('calendar', field('Every', input.step), field('Unit', input.unit), field('If a month is too short', input.monthEnd)),
    h('div', { class: 'fields wide', 'data-kind': 'every calendar' }, field('Counted from (your zone; now, if empty)', input.anchor)),
    h('div', { class: 'fields wide pair' }, field('Missed occurrences', input.misfire), field('If the last task has not ended', input.overlap)),
    h('datalist', { id: 'zones' }, Intl.supportedValuesOf('timeZone').map((zone) => h('option', { value: zone })))),
  field('Payload of each task (JSON)', input.payload), h('section', { class: 'preview', 'aria-live': 'polite' }, h('h2', {}, 'Next occurrences'), preview), wrong,
  h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, name ? 'Save' : 'Create'),
    h('a', { class: 'button', href: name ? '#/schedule/' + encodeURIComponent(name) : '#/schedules' }, 'Cancel')));
}

export async function showForm(root, name, signal) {
  const head = h('div', { class: 'head' }, h('h1', {}, name ? `Edit ${name}` : 'Create schedule'));
  replace(root, head);
  let schedule = {};
  let payload = 'null';
  if (name) {
    try {
      const { value, text } = await call('GET', '/v1/schedules/' + encodeURIComponent(name), { signal, whole: true });
      schedule = value;
      payload = rawMember(text, 'payload') ?? 'null';
    } catch (error) {
      if (error.name !== 'AbortError') replace(root, head, h('p', { class: 'wrong', role: 'alert' }, error.message));
      return;
    }
  }
  const input = makeInputs(schedule, payload);
  const preview = h('div', { class: 'preview-box' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const form = layOut(input, name, preview, wrong, submit);
  offWhenRefused(form.querySelector('[type=submit]'), { signal });
  replace(root, head, form);
  let asked = 0;

  async function ask() {
    for (const part of form.querySelectorAll('[data-kind]')) part.hidden = !part.dataset.kind.split(' ').includes(input.kind.value);
    const mine = ++asked;
    try {
      const text = bodyOf(input, schedule);
      // A queue is required to save, but not for the preview.
      const body = { ...JSON.parse(text), queue: input.queue.value.trim() || 'preview' };
      const answer = await call('POST', withQuery('/v1/occurrences', { count: 5, name }), { body, signal });
      if (mine === asked) replace(preview, previewNode(answer, input.zone.value.trim() || 'UTC'));
    } catch (error) {
      if (mine === asked && error.name !== 'AbortError') replace(preview, h('p', { class: 'wrong' }, error.message));
    }
  }
  async function submit(event) {
    event.preventDefault();
    const target = name ?? input.name.value.trim();
    try {
      if (!target) throw new Error('The schedule needs a name.');
      await call('PUT', '/v1/schedules/' + encodeURIComponent(target), { text: bodyOf(input, schedule), signal });
      tell(name ? `${target} is saved.` : `${target} is created.`);
      location.hash = '#/schedule/' + encodeURIComponent(target);
    } catch (error) {
      if (error.name !== 'AbortError') replace(wrong, error.message);
    }
  }
  const soon = debounce(200, ask);
  form.addEventListener('input', soon);
  ask();
}
