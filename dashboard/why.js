// Explains in words why a task is late, or why tasks wait, from the server's answers. Pure: the tests
// load this file unchanged.
import { count, duration, plural } from './format.js';

const DEFAULT_PRIORITY = 1024;
const LATE = 1_000; // ms; a shorter lateness needs no reason
const ms = (time) => new Date(time).getTime();

/** The causes of lateness as the server names them, and their words. */
export const CAUSES = ['before_start', 'engine', 'limit', 'worker'];
const CAUSE_WORDS = {
  before_start: 'it was due before the server started',
  engine: 'the server was behind',
  limit: 'a pause, the rate or the number of leases of its queue held it back',
  worker: 'it was ready, but no worker asked for it',
};
export const CAUSE_NAMES = { before_start: 'before the start', engine: 'server behind', limit: 'held back by a limit', worker: 'no worker asked' };

/** "3 min: a pause … held it back, then 2 s: it was ready, but no worker asked for it"; null when not late. */
export function causesOf(late) {
  const parts = CAUSES.filter((cause) => late?.[cause] > 0).sort((a, b) => late[b] - late[a]);
  if (parts.length === 0) return null;
  return parts.map((cause) => `${duration(late[cause])}: ${CAUSE_WORDS[cause]}`).join(' · ');
}

/** The number of tasks that were late in these samples, and why, in words; null without late tasks. */
export function lateTasks(samples) {
  const sums = Object.fromEntries(CAUSES.map((cause) => [cause, samples.reduce((sum, { late }) => sum + (late?.[cause] ?? 0), 0)]));
  const all = CAUSES.reduce((sum, cause) => sum + sums[cause], 0);
  if (all === 0) return null;
  const whys = CAUSES.filter((cause) => sums[cause] > 0).sort((a, b) => sums[b] - sums[a])
    .map((cause) => `${count(sums[cause])} ${CAUSE_NAMES[cause]}`);
  return `${plural(all, 'task')} ${all === 1 ? 'was' : 'were'} handed out more than a second late: ${whys.join(', ')}.`;
}

const RECENT = 10_000; // ms since a hand-out; within this time, workers are active

/** The time of the last hand-out, in words. Older servers do not report it. */
function lastHandOut({ last_handed_out_age_ms: age }) {
  if (age === undefined) return 'no worker has a task';
  return age === null ? 'none handed out since the server started' : `last handed out ${duration(age)} ago`;
}

/** Why the ready tasks of a queue wait: {kind, text}; null if no task waits. */
export function whyQueueWaits(queue) {
  const { ready, leased, settings = {} } = queue;
  if (ready === 0) return null;
  if (settings.paused) return { kind: 'paused', text: 'the queue is paused' };
  if (settings.concurrency !== null && settings.concurrency !== undefined && leased >= settings.concurrency) {
    return { kind: 'concurrency', text: `the queue's limit of ${plural(settings.concurrency, 'lease')} at a time is used up` };
  }
  const rate = settings.rate ?? null;
  if (rate === 0) return { kind: 'rate', text: 'the queue hands out nothing: its rate is 0' };
  // Fast workers hold no task at the moment of the request.
  const age = queue.last_handed_out_age_ms ?? Infinity;
  const isServed = leased > 0 || age < RECENT;
  if (rate !== null && queue.oldest_ready_age_ms >= LATE) {
    return isServed ? { kind: 'rate', text: `the queue hands out at most ${plural(rate, 'task')} a second` }
      : { kind: 'either', text: `${lastHandOut(queue)}, and the queue hands out at most ${plural(rate, 'task')} a second` };
  }
  const receiver = settings.sink ? 'sink' : settings.webhook ? 'webhook' : null;
  if (receiver) return { kind: 'delivery', text: `they wait for the queue's ${receiver}: ${lastHandOut(queue)}` };
  if (!isServed) return { kind: 'workers', text: lastHandOut(queue) };
  return { kind: 'busy', text: leased > 0 ? `its workers have ${plural(leased, 'task')} in hand and are not fast enough`
    : `its workers took the last one ${duration(age)} ago and are not fast enough` };
}

/** The total duration of its attempts, and of the pauses between them, in ms. */
export function timeSpent(history) {
  let working = 0;
  let between = 0;
  history.forEach((attempt, i) => {
    working += ms(attempt.ended_at) - ms(attempt.started_at);
    if (i > 0) between += ms(attempt.started_at) - ms(history[i - 1].ended_at);
  });
  return { working, between };
}

function attemptsSentence(task) {
  if (task.attempts === 0) return null;
  const last = task.history.at(-1);
  const reason = last?.error ? ` The last one said: “${last.error}”` : '';
  return `${plural(task.attempts, 'attempt')} failed.${reason}`;
}

function spentSentence(task) {
  if (task.history.length === 0) return null;
  const { working, between } = timeSpent(task.history);
  const shown = task.history.length < task.attempts ? ` (of the last ${task.history.length})` : '';
  return `Its attempts${shown} took ${duration(working)}` +
    (between > 0 ? `, and it waited ${duration(between)} between them.` : '.');
}

function latePoint(late) {
  const causes = causesOf(late);
  return causes ? `Of that: ${causes}.` : null;
}

/** A task that was scheduled with a due time in the past is late from the start. */
function pastPoint(task) {
  const past = ms(task.created_at) - ms(task.due_at);
  return past >= LATE ? `It was created ${duration(past)} after its due time: with a date in the past, or by a schedule that caught up.` : null;
}

function priorityPoint(task) {
  return task.priority > DEFAULT_PRIORITY
    ? `Its priority ${count(task.priority)} is less urgent than the usual ${count(DEFAULT_PRIORITY)}: others go first.` : null;
}

const TELL = {
  scheduled(task, queue, now) {
    const ahead = ms(task.due_at) - now;
    if (task.attempts > 0) {
      return { kind: 'late', headline: `It failed and waits: its next attempt is ${ahead > 0 ? 'in ' + duration(ahead) : 'now'}.`,
        points: [attemptsSentence(task), spentSentence(task),
          `After each failure it waits longer, from ${duration(task.backoff.initial_ms)} to ${duration(task.backoff.max_ms)}. “Run now” does not wait.`] };
    }
    if (ahead >= 0) return { kind: 'good', headline: `Not late: it is due in ${duration(ahead)}.`, points: [] };
    return { kind: ahead < -LATE ? 'late' : 'good', headline: `It has been due for ${duration(-ahead)} and is about to become ready.`, points: [] };
  },
  ready(task, queue, now) {
    const late = Math.max(0, now - ms(task.due_at));
    const why = queue && whyQueueWaits(queue);
    const ahead = queue && queue.ready > 1 ? `${plural(queue.ready - 1, 'other task')} of the queue ${queue.ready === 2 ? 'is' : 'are'} ready too.` : null;
    return { kind: late >= LATE ? 'late' : 'good',
      headline: `It has been due for ${duration(late)}` + (why ? `: ${why.text}.` : ' and is waiting for a worker.'),
      points: [ahead, pastPoint(task), priorityPoint(task), attemptsSentence(task), spentSentence(task)] };
  },
  leased(task, queue, now) {
    const who = task.worker ? `Worker ${task.worker}` : 'A worker';
    const taken = task.leased_at ? ms(task.leased_at) : now;
    const late = Math.max(0, taken - ms(task.due_at));
    return { kind: late >= LATE ? 'late' : 'good',
      headline: `${who} has had it for ${duration(Math.max(0, now - taken))}.`,
      points: [`It was handed out ${duration(late)} after its due time.`, latePoint(task.late_ms), pastPoint(task),
        `If the worker does not report within ${duration(task.visibility_timeout_ms)}, the attempt counts as failed.`,
        attemptsSentence(task), spentSentence(task)] };
  },
  dead(task) {
    return { kind: 'bad', headline: `It is dead: ${task.attempts >= task.max_attempts ? `all ${plural(task.max_attempts, 'attempt')} failed` : 'it was buried'}.`,
      points: [task.history.at(-1)?.error ? `The last one said: “${task.history.at(-1).error}”` : null,
        spentSentence(task), 'It stays dead until somebody acts. “Retry” gives it all its attempts again.'] };
  },
  completed(task) {
    const last = task.history.at(-1);
    if (!last) return { kind: 'good', headline: 'It was completed.', points: [] };
    const late = Math.max(0, ms(last.started_at) - ms(task.due_at));
    const failed = task.history.filter(({ error }) => error).length;
    return { kind: late >= LATE ? 'late' : 'good',
      headline: late >= LATE ? `It was completed, but a worker took it only ${duration(late)} after its due time.`
        : `It was completed on time: taken ${duration(late)} after its due time.`,
      points: [latePoint(last.late_ms), pastPoint(task), `The work took ${duration(ms(last.ended_at) - ms(last.started_at))}.`,
        failed > 0 ? `${plural(failed, 'attempt')} before that failed; each moved the due time.` : null] };
  },
  cancelled: () => ({ kind: 'good', headline: 'It was cancelled, so no worker will get it.', points: [] }),
};

/** {kind: 'good'|'late'|'bad', headline, points}; `queue` may be null when it is not known. */
export function whyLate(task, queue, now = Date.now()) {
  const told = TELL[task.state]({ history: [], ...task }, queue, now);
  return { ...told, points: told.points.filter(Boolean) };
}
