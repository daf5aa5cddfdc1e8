// Actions for a whole queue: pause, resume, redrive, purge, remove. Several views offer them.
import { call } from './api.js';
import { attempt, confirmed } from './dialog.js';
import { count, plural } from './format.js';
import { action } from './parts.js';

export const pathOf = (name, verb = '') => `/v1/queues/${encodeURIComponent(name)}${verb && '/' + verb}`;
export const linkOf = (name) => '#/queue/' + encodeURIComponent(name);
export const tasksOf = (queue, state = '') => '#/tasks?' + new URLSearchParams(state ? { queue, state } : { queue });

export async function purge({ queue, scheduled, ready, dead }) {
  const sum = scheduled + ready + dead;
  const text = `${plural(sum, 'task')} will be deleted for good: ${count(scheduled)} scheduled, ${count(ready)} ready, ` +
    `${count(dead)} dead. Leased tasks stay.`;
  if (!await confirmed(`Purge ${queue}?`, text, 'Purge', { typed: queue })) return false;
  return attempt(() => call('POST', pathOf(queue, 'purge')), ({ count: n }) => `${plural(n, 'task')} removed from ${queue}.`);
}

async function redrive({ queue, dead }) {
  const text = `${plural(dead, 'dead task')} will be due now, with all attempts again.`;
  if (!await confirmed(`Redrive ${queue}?`, text, 'Redrive', { kind: 'primary' })) return false;
  return attempt(() => call('POST', pathOf(queue, 'redrive')), ({ count: n }) => `${plural(n, 'task')} of ${queue} due again.`);
}

const toggle = ({ queue, settings: { paused } }) => attempt(() => call('POST', pathOf(queue, paused ? 'resume' : 'pause')),
  paused ? `${queue} is resumed: its tasks are handed out again.` : `${queue} is paused: its tasks wait.`);

async function remove({ queue }) {
  if (!await confirmed(`Remove ${queue}?`, 'It has no tasks. Its settings are removed too.', 'Remove')) return false;
  const isGone = await attempt(() => call('DELETE', pathOf(queue)), `${queue} is removed.`);
  if (isGone) location.hash = '#/queues';
  return isGone;
}

/** The buttons of a queue. `reload` runs after each action. */
export function queueActions(queue, reload, signal, { isWhole = false } = {}) {
  const rest = queue.scheduled + queue.ready + queue.dead;
  const then = (run) => async () => { if (await run(queue)) await reload(); };
  return [queue.dead > 0 && action('Redrive', then(redrive), { signal }),
    action(queue.settings.paused ? 'Resume' : 'Pause', then(toggle), { signal }),
    action('Purge', then(purge), { kind: rest > 0 ? 'danger' : null, signal }),
    isWhole && rest + queue.leased === 0 && action('Remove …', then(remove), { kind: 'danger', signal })];
}
