// The search for tasks. The server knows the queue, state, key and due time; the page itself looks into
// the payloads and error messages of the tasks that the server returns.
import { get, withQuery } from './api.js';

const AT_ONCE = 1_000; // tasks per request, when all of them are read
const OF_PAGE = ['payload', 'error']; // parameters that the server does not have

/** An error message without the parts that differ from task to task: ids, long numbers, further lines. */
export const shapeOf = (message) => message.split('\n')[0].replace(/\b(?:[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|\d{4,})\b/gi, '…').slice(0, 200);

/** The payload as text; null for a list answer without one. */
function textOf(task) {
  if (!('payload_base64' in task)) return JSON.stringify(task.payload);
  return new TextDecoder().decode(Uint8Array.from(atob(task.payload_base64), (c) => c.charCodeAt(0)));
}

/** {parameters, isByPage, matches(task)} of the query of an address. */
export function readSearch(query) {
  const all = Object.fromEntries([...query].filter(([name, value]) => name !== 'cursor' && value !== ''));
  const parameters = Object.fromEntries(Object.entries(all).filter(([name]) => !OF_PAGE.includes(name)));
  const part = all.payload?.toLowerCase();
  const shape = all.error === undefined ? undefined : shapeOf(all.error);
  return { parameters, isByPage: OF_PAGE.some((name) => name in all), matches: (task) =>
    (part === undefined || textOf(task).toLowerCase().includes(part)) &&
    (shape === undefined || shapeOf(task.last_error ?? '') === shape) };
}

/** {tasks, cursor, seen} of a page: the tasks that match, and the number of tasks that were looked at. */
export async function fetchPage({ parameters, matches }, { limit, cursor }, signal) {
  const page = await get(withQuery('/v1/tasks', { ...parameters, limit, cursor }), signal);
  return { tasks: page.tasks.filter(matches), cursor: page.cursor, seen: page.tasks.length };
}

/** Reads all matching tasks, at most `most`. Calls `tell(found, seen)` after each page. Returns {tasks, isCut}. */
export async function readAll(search, { most = Infinity, tell = () => {}, signal }) {
  const tasks = [];
  let cursor = '';
  let seen = 0;
  while (tasks.length < most) {
    const page = await fetchPage(search, { limit: AT_ONCE, cursor }, signal);
    tasks.push(...page.tasks);
    seen += page.seen;
    tell(tasks.length, seen);
    if (page.cursor === null) return { tasks, isCut: false };
    cursor = page.cursor;
  }
  return { tasks: tasks.slice(0, most), isCut: true };
}
