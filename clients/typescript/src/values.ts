// What is asked and answered, as values, and how they look in JSON.
//
// Durations are milliseconds (rounded up to whole ones), or the server's text ("1500ms", "30s",
// "30d", "P30D"). Instants are Dates, RFC 3339 text, or milliseconds since 1970. What is answered has
// milliseconds and Dates. Payloads are any value that JSON has, or bytes (Uint8Array); integers
// beyond 2^53 lose digits here, as everywhere in JavaScript. Members that a newer server adds are
// ignored.

export type Duration = number | string;
export type Instant = Date | number | string;
/** Due so long from now, or then; neither: at once. */
export interface Due {
  delay?: Duration | undefined;
  dueAt?: Instant | undefined;
}

/** What its maker called a task, to name it by instead of by the server's id. */
export interface TaskKey {
  queue: string;
  key: string;
}
export type TaskName = string | TaskKey;

/** The rest after attempt n is initial * 2^(n - 1), at most max. */
export interface Backoff {
  initial: Duration;
  max: Duration;
}

interface TaskRules {
  priority?: number | undefined;
  maxAttempts?: number | undefined;
  visibilityTimeout?: Duration | undefined;
  backoff?: Backoff | undefined;
}

/** A task to be scheduled. With a `key` scheduling may be repeated: the same request again answers
 *  the first task. What is not given is as the queue has it. */
export interface NewTask extends Due, TaskRules {
  queue: string;
  payload?: unknown;
  key?: string | undefined;
  webhook?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
}

/** `completed` and `cancelled` while a task is kept after its end. */
export type TaskState = 'scheduled' | 'ready' | 'leased' | 'dead' | 'completed' | 'cancelled';
/** `conflict`: it is no longer held. `dead`: the attempt that failed was the last one. `unavailable`:
 *  not known, and it may still be held, because its shard of a cluster was away for all of `retryFor`.
 *  `error`: the server failed at it. */
export type LeaseStatus = 'done' | 'conflict' | 'dead' | 'unavailable' | 'error';
export type Body = Record<string, unknown>;

/** A task that is on the server's disk. `wasThere`: its key stood for it before. */
export interface ScheduledTask {
  id: string;
  queue: string;
  state: TaskState;
  dueAt: Date;
  wasThere: boolean;
}

/** All there is to know about a task. */
export interface Task {
  id: string;
  queue: string;
  state: TaskState;
  dueAt: Date;
  createdAt: Date;
  payload: any; // JSON as it was read, or a Uint8Array
  key: string;
  priority: number;
  attempts: number; // that have ended
  lastError: string;
  /** Every member as the server says it, `history` among them. */
  body: Readonly<Body>;
}

/** Some tasks of a list, and where it goes on; null when it is over. */
export interface TaskPage {
  tasks: Task[];
  cursor: string | null;
}

/** A task in the hands of whoever leased it, until `leaseUntil`. */
export interface LeasedTask {
  id: string;
  lease: string;
  attempt: number; // counted from 1
  queue: string;
  key: string;
  payload: any; // JSON as it was read, or a Uint8Array
  priority: number;
  dueAt: Date;
  leaseUntil: Date;
  lateness: number; // milliseconds
  headers: Readonly<Record<string, string>>;
}

/** What may be changed of a queue (docs/reference/queues.md); null: back to the default. */
export interface QueueSettings {
  paused?: boolean;
  maxAttempts?: number | null;
  visibilityTimeout?: Duration | null;
  backoff?: Backoff | null;
  retention?: Duration | null;
  keyRetention?: Duration | null;
  maxTasks?: number | null;
  maxBytes?: number | null;
  rate?: number | null;
  concurrency?: number | null;
  webhook?: string | { url: string; keys: string[] } | null;
  sink?: string | null;
  partitions?: number | null;
}

/** A queue's counts by state, and its settings as the server says them. */
export interface Queue {
  name: string;
  scheduled: number;
  ready: number;
  leased: number;
  dead: number;
  oldestReadyAge: number | null; // milliseconds; null when no task is ready
  bytes: number; // of the payloads
  settings: Readonly<Body>;
}

/** A recurring schedule to be: one of cron, every and calendar, and the task it makes. */
export interface NewSchedule extends TaskRules {
  queue: string;
  payload?: unknown;
  cron?: string;
  every?: Duration;
  calendar?: { every: number; unit: 'day' | 'week' | 'month' | 'year'; month_end?: 'clamp' | 'skip' };
  anchor?: Instant;
  timeZone?: string;
  gap?: 'skip' | 'run_after';
  repeat?: 'first' | 'second' | 'both';
  count?: number;
  start?: Instant;
  end?: Instant;
  jitter?: Duration;
  misfire?: 'skip' | 'once' | 'all';
  misfireGrace?: Duration;
  misfireLimit?: number;
  overlap?: 'allow' | 'skip' | 'queue_one';
}

export interface Schedule {
  name: string;
  state: 'active' | 'paused' | 'over' | 'broken';
  words: string; // the rule in plain English
  queue: string;
  nextAt: Date | null;
  /** Every member as the server says it. */
  body: Readonly<Body>;
}

// ---- to JSON ----

export function putDuration(body: Body, name: string, duration: Duration): void {
  if (typeof duration === 'string') body[name] = duration;
  else body[`${name}_ms`] = Math.ceil(duration);
}

function toInstant(instant: Instant): string | number {
  return instant instanceof Date ? instant.getTime() : instant;
}

const durations = new Set([
  'delay', 'visibility_timeout', 'retention', 'key_retention', 'every', 'jitter', 'misfire_grace',
  'wait', 'by', 'initial', 'max',
]);
const instants = new Set(['due_at', 'due_after', 'due_before', 'anchor', 'start', 'end']);

function put(body: Body, name: string, value: unknown): void {
  if (value === undefined) return;
  if (name === 'payload' && value instanceof Uint8Array) {
    body['payload_base64'] = Buffer.from(value).toString('base64');
  } else if (name === 'backoff' && value !== null) {
    body[name] = toBody(value);
  } else if (durations.has(name) && value !== null) {
    putDuration(body, name, value as Duration);
  } else if (instants.has(name)) {
    body[name] = toInstant(value as Instant);
  } else {
    body[name] = value;
  }
}

/** An object of ours as the server wants it: `visibilityTimeout: 1500` is
 *  `"visibility_timeout_ms": 1500`. What is undefined is left out. */
export function toBody(value: object): Body {
  const body: Body = {};
  for (const [name, member] of Object.entries(value)) {
    put(body, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), member);
  }
  return body;
}

// ---- from JSON ----

/** What the server answers; its OpenAPI document describes it. */
type Answer = any;

function payloadOf(body: Answer): unknown {
  if (typeof body.payload_base64 !== 'string') return body.payload;
  return new Uint8Array(Buffer.from(body.payload_base64, 'base64'));
}

export function readScheduledTask(body: Answer): ScheduledTask {
  const { id, queue, state } = body;
  return { id, queue, state, dueAt: new Date(body.due_at), wasThere: body.was_there ?? false };
}

export function readTask(body: Answer): Task {
  const { id, queue, state, priority, attempts } = body;
  return {
    id, queue, state, dueAt: new Date(body.due_at), createdAt: new Date(body.created_at),
    payload: payloadOf(body), key: body.key ?? '', priority, attempts,
    lastError: body.last_error ?? '', body,
  };
}

export function readLeasedTask(body: Answer): LeasedTask {
  const { id, lease, attempt, queue, priority } = body;
  return {
    id, lease, attempt, queue, key: body.key ?? '', payload: payloadOf(body), priority,
    dueAt: new Date(body.due_at), leaseUntil: new Date(body.lease_until),
    lateness: body.lateness_ms ?? 0, headers: body.headers ?? {},
  };
}

export function readQueue(body: Answer): Queue {
  const { queue, scheduled, ready, leased, dead, bytes, settings } = body;
  const oldestReadyAge = body.oldest_ready_age_ms ?? null;
  return { name: queue, scheduled, ready, leased, dead, oldestReadyAge, bytes, settings };
}

export function readSchedule(body: Answer): Schedule {
  const { name, state, words, queue } = body;
  return { name, state, words, queue, nextAt: body.next_at ? new Date(body.next_at) : null, body };
}
