// The settings of a queue: as facts, and the form that changes them. An empty field stands for the default.
import { call } from './api.js';
import { askForm, tell } from './dialog.js';
import { h } from './dom.js';
import { bytes, count, duration, durationText, plural } from './format.js';
import { fact } from './parts.js';
import { pathOf } from './queue_actions.js';

const orDefault = (value, show) => (value === null ? h('span', { class: 'sub' }, 'default') : show(value));
const keysOf = (webhook) => webhook?.keys ?? [];

/** Where the tasks of the queue go: to workers, a webhook or a sink. */
export function receiverOf({ webhook, sink }) {
  if (sink) return ['the sink ', h('code', {}, sink)];
  if (!webhook) return 'workers that lease them';
  return ['the webhook ', h('code', {}, webhook.url),
    h('span', { class: 'sub' }, ` · signed with ${keysOf(webhook).length > 0 ? plural(keysOf(webhook).length, 'key') : "the server's key"}`)];
}

/** The settings as lines of a dl.facts. A limit has its used part next to it. */
export function settingFacts({ settings, leased, scheduled, ready, dead, bytes: size }) {
  const limit = (value, show, used) => (value === null ? h('span', { class: 'sub' }, 'no limit') : `${show(value)}${used ? `, ${used} used` : ''}`);
  return [fact('tasks go to', receiverOf(settings)),
    fact('rate', limit(settings.rate, (n) => `${count(n)} tasks per second`)),
    fact('leases at a time', limit(settings.concurrency, count, count(leased))),
    fact('tasks', limit(settings.max_tasks, count, count(scheduled + ready + leased + dead))),
    fact('payload bytes', limit(settings.max_bytes, bytes, bytes(size))),
    fact('attempts', orDefault(settings.max_attempts, count)),
    fact('backoff', orDefault(settings.backoff, ({ initial_ms: first, max_ms: most }) => `${duration(first)} to ${duration(most)}`)),
    fact('visibility timeout', orDefault(settings.visibility_timeout_ms, duration)),
    fact('keeps ended tasks', settings.retention_ms > 0 ? `for ${duration(settings.retention_ms)}` : 'no'),
    fact('keeps keys', `for ${duration(settings.key_retention_ms)}`),
    settings.partitions > 1 && fact('partitions', count(settings.partitions))];
}

/** [setting, label, its present text]; the texts are what the server reads. */
function fieldsOf(settings) {
  const time = (ms) => (ms === null ? '' : durationText(ms));
  return [['rate', 'Rate: tasks per second', settings.rate ?? ''], ['concurrency', 'Leases at a time', settings.concurrency ?? ''],
    ['max_tasks', 'Most tasks', settings.max_tasks ?? ''], ['max_bytes', 'Most payload bytes', settings.max_bytes ?? ''],
    ['max_attempts', 'Attempts', settings.max_attempts ?? ''], ['visibility_timeout', 'Visibility timeout (30s, 5m)', time(settings.visibility_timeout_ms)],
    ['backoff.initial', 'Backoff, first', time(settings.backoff?.initial_ms ?? null)], ['backoff.max', 'Backoff, longest', time(settings.backoff?.max_ms ?? null)],
    ['retention', 'Keep ended tasks for (0s: no)', time(settings.retention_ms)], ['key_retention', 'Keep keys for', time(settings.key_retention_ms)]];
}
const NUMBERS = ['rate', 'concurrency', 'max_tasks', 'max_bytes', 'max_attempts'];

/** The body of PATCH: the settings whose text differs from the present one. */
export function changesOf(settings, given) {
  const body = {};
  const before = Object.fromEntries(fieldsOf(settings).map(([name, , text]) => [name, String(text)]));
  for (const [name, text] of Object.entries(given)) {
    if (!(name in before) || text === before[name] || name.startsWith('backoff.')) continue;
    if (text !== '' && NUMBERS.includes(name) && !/^\d+$/.test(text)) throw new Error(`${name} must be a whole number, or empty for the default.`);
    body[name] = text === '' ? null : NUMBERS.includes(name) ? Number(text) : text;
  }
  const [first, most] = [given['backoff.initial'], given['backoff.max']];
  if (first !== before['backoff.initial'] || most !== before['backoff.max']) {
    if ((first === '') !== (most === '')) throw new Error('The backoff needs both durations, or none.');
    body.backoff = first === '' ? null : { initial: first, max: most };
  }
  if (given.webhook !== (settings.webhook?.url ?? '') || given.keys !== '') {
    const keys = given.keys.split(/\s+/).filter(Boolean);
    body.webhook = given.webhook === '' ? null : keys.length > 0 ? { url: given.webhook, keys } : given.webhook;
  }
  if (given.sink !== (settings.sink ?? '')) body.sink = given.sink === '' ? null : given.sink;
  return body;
}

/** Asks for new settings and stores them. Resolves with true if they have changed. */
export async function editSettings({ queue, settings }) {
  const text = (value = '') => h('input', { value: String(value), autocomplete: 'off', spellcheck: 'false' });
  const fields = fieldsOf(settings);
  const input = Object.fromEntries(fields.map(([name, , value]) => [name, text(value)]));
  Object.assign(input, { webhook: text(settings.webhook?.url), keys: text(), sink: text(settings.sink ?? '') });
  const held = keysOf(settings.webhook).length;
  const field = (label, element, kind = null) => h('label', { class: kind }, h('span', {}, label), element);
  const changed = await askForm(`Settings of ${queue}`, 'Save', {
    fields: [h('p', { class: 'note' }, 'An empty field stands for the default. A change applies immediately, also to the tasks in the queue.'),
      h('div', { class: 'fields' }, fields.map(([name, label]) => field(label, input[name])),
        field('Webhook: the URL that gets the tasks', input.webhook, 'wide'),
        field(`Signing keys of the webhook${held > 0 ? ` (it has ${count(held)}; send them again with another URL)` : ''}`, input.keys, 'wide'),
        field('Sink: the broker that gets the tasks', input.sink, 'wide'))],
    read: async () => {
      const body = changesOf(settings, Object.fromEntries(Object.entries(input).map(([name, { value }]) => [name, value.trim()])));
      if (Object.keys(body).length > 0) await call('PATCH', pathOf(queue), { body });
      return Object.keys(body).length > 0;
    },
  });
  if (changed) tell(`The settings of ${queue} are saved.`);
  return changed === true;
}
