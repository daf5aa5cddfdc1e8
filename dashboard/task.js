// One task: its state, why it was late, its attempts; run now or retry, move, edit, cancel.
import { call, get } from './api.js';
import { every, h, replace } from './dom.js';
import { count, duration, fromNow, plural, timeNode } from './format.js';
import { indented, rawMember } from './raw_json.js';
import { action, copyable, fact, stateNode } from './parts.js';
import { linkOf } from './queue_actions.js';
import { cancelTask, curlOf, editTask, mayMove, moveTask, runTask } from './task_actions.js';
import { causesOf, whyLate } from './why.js';

export const title = 'Task';
const ms = (time) => new Date(time).getTime();

const step = (kind, what, time, ...more) => h('li', { class: kind },
  h('span', { class: 'what' }, what), time && timeNode(time, { ms: true }), more);
const gap = (text) => h('li', { class: 'gap' }, text);

function lateNode(late) {
  const causes = causesOf(late);
  return causes && h('p', { class: 'sub late' }, `began late. ${causes}`);
}

function attemptStep(attempt, number) {
  const failed = Boolean(attempt.error);
  return step(failed ? 'failed' : 'done', `Attempt ${count(number)} ${failed ? 'failed' : 'ended'}`, attempt.started_at,
    h('p', { class: 'sub' }, `took ${duration(ms(attempt.ended_at) - ms(attempt.started_at))}`,
      attempt.worker && [', by worker ', h('code', {}, attempt.worker)]),
    lateNode(attempt.late_ms),
    failed && h('pre', { class: 'error' }, attempt.error));
}

/** The events in the life of a task, oldest first. */
function wayOf(task, now) {
  const history = task.history ?? [];
  const steps = [step('done', 'Scheduled', task.created_at)];
  const missing = task.attempts - history.length;
  if (missing > 0) steps.push(gap(`${plural(missing, 'earlier attempt')}, not kept`));
  let last = ms(task.created_at);
  history.forEach((attempt, i) => {
    if (missing === 0 || i > 0) {
      const waited = duration(Math.max(0, ms(attempt.started_at) - last));
      steps.push(gap(i === 0 ? `waited ${waited} for its due time and a worker` : `waited ${waited} for its next attempt and a worker`));
    }
    steps.push(attemptStep(attempt, missing + i + 1));
    last = ms(attempt.ended_at);
  });
  steps.push(...endOf(task, now));
  return h('ol', { class: 'way' }, steps);
}

function endOf(task, now) {
  const due = ms(task.due_at);
  switch (task.state) {
    case 'scheduled':
      return [step('ahead', task.attempts > 0 ? 'Next attempt' : 'Due', task.due_at, h('p', { class: 'sub' }, fromNow(due, now)))];
    case 'ready':
      return [step('done', 'Due', task.due_at), gap(`waiting for a worker, ${duration(Math.max(0, now - due))} so far`)];
    case 'leased':
      return [step('done', 'Due', task.due_at),
        step('done', `Attempt ${count(task.attempts + 1)} is under way`, task.leased_at,
          h('p', { class: 'sub' }, task.worker ? ['by worker ', h('code', {}, task.worker)] : 'by a worker without a name',
            task.leased_at && `, ${duration(Math.max(0, now - ms(task.leased_at)))} so far`), lateNode(task.late_ms))];
    case 'dead':
      return [step('failed', 'Dead', task.died_at, h('p', { class: 'sub' }, 'out of attempts; it stays until you run or cancel it'))];
    default:
      return [step('done', task.state === 'completed' ? 'Completed' : 'Cancelled', task.state === 'completed' ? task.history?.at(-1)?.ended_at : null)];
  }
}

function payloadOf(task) {
  if ('payload_base64' in task) return [h('p', { class: 'note' }, 'Bytes, shown as base64'), h('pre', {}, task.payload_base64)];
  return h('pre', {}, indented(task.payload));
}

/** Where the task is delivered, if no worker leases it. */
function receiverFact(task, queue) {
  const url = task.webhook ?? queue?.settings.webhook?.url;
  if (url && (task.webhook || !queue.settings.sink)) return fact('webhook', h('code', {}, url), !task.webhook && h('span', { class: 'sub' }, ' of its queue'));
  return queue?.settings.sink && fact('sink', h('code', {}, queue.settings.sink), h('span', { class: 'sub' }, ' of its queue'));
}

function draw(root, task, queue, actions) {
  const now = Date.now();
  const why = whyLate(task, queue, now);
  replace(root,
    h('div', { class: 'head' },
      h('h1', {}, 'Task ', task.id), stateNode(task.state), actions),
    h('section', { class: `card verdict ${why.kind}`, 'aria-label': 'Why was it late?' },
      h('div', {}, h('strong', {}, why.headline),
        why.points.length > 0 && h('ul', {}, why.points.map((point) => h('li', {}, point))))),
    h('div', { class: 'grid' },
      h('section', { class: 'card' }, h('h2', {}, 'Timeline'), wayOf(task, now)),
      h('section', { class: 'card' }, h('h2', {}, 'Facts'),
        h('dl', { class: 'facts' },
          fact('queue', h('a', { href: linkOf(task.queue) }, task.queue),
            queue?.settings.paused && [' ', h('span', { class: 'state', 'data-state': 'paused' }, 'paused')]),
          task.key && fact('key', h('code', {}, task.key)),
          fact('due', timeNode(task.due_at, { ms: true }), ` · ${fromNow(task.due_at, now)}`),
          fact('scheduled at', timeNode(task.created_at, { ms: true })),
          fact('attempts', `${count(task.attempts)} of ${count(task.max_attempts)}`),
          fact('priority', count(task.priority)),
          fact('visibility timeout', duration(task.visibility_timeout_ms)),
          fact('backoff', `${duration(task.backoff.initial_ms)} to ${duration(task.backoff.max_ms)}`),
          receiverFact(task, queue),
          task.headers && fact('headers', h('code', {}, Object.entries(task.headers).map(([name, value]) => `${name}: ${value}`).join('\n')))))),
    h('section', { class: 'card' }, h('h2', {}, 'Payload'), payloadOf(task)),
    h('details', { class: 'card' }, h('summary', {}, 'As curl'), copyable(curlOf(task, location.origin), 'Copy as curl')));
}

function actionsOf(task, etag, reload, signal) {
  if (!mayMove(task)) return null;
  const then = (run) => async () => { if (await run(task, etag)) await reload(); };
  return h('div', { class: 'buttons' },
    task.state === 'dead' ? action('Retry', then(runTask), { kind: 'primary', title: 'Due now, with all attempts', signal }) : action('Run now', then(runTask), { signal }),
    action('Move …', then(moveTask), { kind: task.state === 'dead' ? null : 'primary', signal }), action('Edit …', then(editTask), { signal }),
    action('Cancel …', then(cancelTask), { kind: 'danger', signal }));
}

function drawMissing(root, id, error) {
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Task ', id)),
    h('section', { class: 'card verdict' }, h('div', {}, h('strong', {}, error.status === 404 ? 'There is no such task here, or not any more.' : error.message),
      error.status === 404 && h('p', { class: 'sub' }, 'A task that was completed or cancelled is gone, unless its queue keeps finished tasks.'))));
}

export function show(root, route, signal) {
  const [id] = route.rest;
  let shown = '';
  async function load() {
    try {
      const { value: task, etag, text } = await call('GET', `/v1/tasks/${encodeURIComponent(id)}`, { signal, whole: true });
      // A payload is shown byte for byte: its numbers can have more digits than JavaScript keeps.
      if ('payload' in task) task.payload = rawMember(text, 'payload');
      const queue = await get(`/v1/queues/${encodeURIComponent(task.queue)}`, signal).catch(() => null);
      if (signal.aborted) return;
      // While only the time changes, open and focused elements stay.
      const seen = JSON.stringify([etag, queue?.settings, queue?.ready]);
      const isHeld = root.contains(document.activeElement) && document.activeElement !== root;
      if (seen === shown && isHeld) return;
      const isOpen = root.querySelector('details')?.open ?? false;
      shown = seen;
      draw(root, task, queue, actionsOf(task, etag, load, signal));
      root.querySelector('details').open = isOpen;
    } catch (error) {
      if (error.name !== 'AbortError') drawMissing(root, id, error);
    }
  }
  every(2_000, signal, load);
}
