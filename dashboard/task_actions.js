// Actions for a task: move, run now or retry, edit, cancel; and the same calls for curl.
import { call } from './api.js';
import { askForm, attempt, confirmed, tell } from './dialog.js';
import { h } from './dom.js';
import { indented, withRaw } from './raw_json.js';
import { fromInput, localTime, toInput, viewerZone } from './format.js';

const pathOf = (id, verb = '') => `/v1/tasks/${encodeURIComponent(id)}${verb}`;
const changeable = ['scheduled', 'ready', 'dead'];
export const mayMove = (task) => changeable.includes(task.state);

/** Common due times, in the viewer's zone. */
export function choices(now = new Date()) {
  const at = (days, hour) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour);
  const toMonday = ((8 - now.getDay()) % 7) || 7;
  const sameTimeTomorrow = new Date(now);
  sameTimeTomorrow.setDate(now.getDate() + 1);
  return [
    ['In 1 hour', new Date(now.getTime() + 3_600_000)],
    ['Tomorrow, this time', sameTimeTomorrow],
    ['Tomorrow, 09:00', at(1, 9)],
    ['Monday, 09:00', at(toMonday, 9)],
  ];
}

/** Asks for another due time; null if the viewer cancels. */
export function askDue(what) {
  const input = h('input', { type: 'datetime-local', step: '1', required: true, 'aria-label': 'Due at',
    value: toInput(new Date(Date.now() + 86_400_000)) });
  return askForm(`Move ${what} to …`, 'Move', {
    fields: [
      h('div', { class: 'buttons choices' }, choices().map(([label, time]) =>
        h('button', { type: 'button', onclick: () => { input.value = toInput(time); } }, label))),
      h('label', {}, h('span', {}, `Due at, in your zone (${viewerZone()})`), input),
    ],
    read: () => {
      const due = fromInput(input.value);
      if (!due || Number.isNaN(due.getTime())) throw new Error('This is not a date and time.');
      return due;
    },
  });
}

/** Each action sends the ETag of the task that the viewer saw, so it fails if the task has changed. */
export async function moveTask({ id }, etag) {
  const due = await askDue('task ' + id);
  if (!due) return false;
  return attempt(() => call('PATCH', pathOf(id), { body: { due_at: due.toISOString() }, headers: { 'if-match': etag } }),
    `Task ${id} is due at ${localTime(due)} now.`);
}

export const runTask = ({ id }, etag) =>
  attempt(() => call('POST', pathOf(id, '/run'), { headers: { 'if-match': etag } }), `Task ${id} is due now.`);

/** Asks for another payload and priority. `task.payload` is JSON as text, so that no digit is lost. */
export async function editTask(task, etag) {
  const isBytes = 'payload_base64' in task;
  const payload = h('textarea', { rows: '10', spellcheck: 'false', value: isBytes ? task.payload_base64 : indented(task.payload) });
  const priority = h('input', { type: 'number', min: '0', max: '4294967295', required: true, value: task.priority });
  const changed = await askForm(`Edit task ${task.id}`, 'Save', {
    fields: [h('label', {}, h('span', {}, isBytes ? 'Payload (bytes as base64)' : 'Payload (JSON)'), payload),
      h('label', {}, h('span', {}, 'Priority (a lower number is more urgent)'), priority)],
    read: async () => {
      const body = { priority: Number(priority.value), ...(isBytes && { payload_base64: payload.value.trim() }) };
      if (!isBytes) JSON.parse(payload.value); // throws on wrong input
      const isSame = !isBytes && payload.value === indented(task.payload);
      await call('PATCH', pathOf(task.id), { text: withRaw(body, 'payload', isBytes || isSame ? undefined : payload.value.trim()), headers: { 'if-match': etag } });
      return true;
    },
  });
  if (changed) tell(`Task ${task.id} is saved.`);
  return changed === true;
}

export async function cancelTask({ id, queue }, etag) {
  if (!await confirmed(`Cancel task ${id}?`, `It is removed from ${queue}, and no worker will get it.`, 'Cancel the task')) return false;
  return attempt(() => call('DELETE', pathOf(id), { headers: { 'if-match': etag } }), `Task ${id} is cancelled.`);
}

/** A word for a POSIX shell, quoted for any content. */
export const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

/** The call that creates the task again; `task.payload` is JSON as text. */
export function curlOf(task, origin) {
  const body = { queue: task.queue, ...(task.key ? { key: task.key } : {}), due_at: task.due_at,
    priority: task.priority, max_attempts: task.max_attempts, visibility_timeout_ms: task.visibility_timeout_ms,
    backoff: task.backoff, ...(task.webhook ? { webhook: task.webhook } : {}), ...(task.headers ? { headers: task.headers } : {}),
    ...('payload_base64' in task ? { payload_base64: task.payload_base64 } : {}) };
  return `curl -s ${origin}/v1/tasks -d ${quoted(withRaw(body, 'payload', task.payload))}`;
}
