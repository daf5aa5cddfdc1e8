// Actions for many tasks: run again, move, cancel. They work in parts, show how far they are, and can
// be stopped between two parts.
import { call } from './api.js';
import { confirmed, tell as say } from './dialog.js';
import { count, localTime, plural } from './format.js';
import { withProgress } from './progress.js';
import { readAll } from './task_search.js';
import { askDue, mayMove } from './task_actions.js';

const PART = 1_000; // tasks of one request; a request is one commit

/** The ids of all matching tasks that can be changed; null if the viewer stops the search. */
export async function findAll(search) {
  return withProgress('Finding all matching tasks', async ({ tell, signal }) => {
    try {
      const { tasks } = await readAll(search, { signal, tell: (found, seen) => tell(`${count(found)} found, ${count(seen)} looked at`) });
      return tasks.filter(mayMove).map(({ id }) => id);
    } catch (error) {
      if (error.name === 'AbortError') return null;
      throw error;
    }
  });
}

/** Sends `ids` to `path` part by part. Shows the result. Resolves with true if any task may have changed. */
async function inParts(title, ids, path, { more = {}, verb }) {
  let done = 0;
  let failed = null; // the first refused task
  let refused = 0;
  let sent = 0;
  let wrong = null;
  await withProgress(title, async ({ tell, signal }) => {
    while (sent < ids.length && !signal.aborted) {
      tell(`${count(sent)} of ${count(ids.length)}`, sent / ids.length);
      const { results } = await call('POST', path, { body: { ids: ids.slice(sent, sent + PART), ...more } });
      sent += results.length;
      const bad = results.filter(({ error }) => error);
      done += results.length - bad.length;
      refused += bad.length;
      failed ??= bad[0]?.error.detail ?? null;
    }
  }).catch((error) => { wrong = error.message; });
  const left = ids.length - sent;
  say(`${plural(done, 'task')} ${verb}${refused > 0 ? `; ${count(refused)} not: ${failed}` : ''}` +
    `${left > 0 ? `; ${wrong ? `${wrong} ` : 'stopped, '}${count(left)} left` : ''}.`, { failed: wrong !== null });
  return sent > 0 || wrong !== null;
}

export const retryTasks = (ids) => inParts(`Retrying ${plural(ids.length, 'task')}`, ids, '/v1/tasks/move',
  { more: { delay_ms: 0 }, verb: 'due now' });

export async function moveTasks(ids) {
  const due = await askDue(plural(ids.length, 'task'));
  return due !== null && inParts(`Moving ${plural(ids.length, 'task')}`, ids, '/v1/tasks/move',
    { more: { due_at: due.toISOString() }, verb: `moved to ${localTime(due)}` });
}

export async function cancelTasks(ids) {
  const what = plural(ids.length, 'task');
  if (!await confirmed(`Cancel ${what}?`, 'They are removed, and no worker will get them.', `Cancel ${what}`)) return false;
  return inParts(`Cancelling ${what}`, ids, '/v1/tasks/cancel', { verb: 'cancelled' });
}
