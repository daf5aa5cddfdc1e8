// Arguments and results as values, and their form in JSON.
//
// Durations are milliseconds (rounded up to whole ones), or the server's text ("1500ms", "30s",
// "30d", "P30D"). Instants are Dates, RFC 3339 text, or milliseconds since 1970. Results have
// milliseconds and Dates. A payload is any JSON value, or bytes (Uint8Array). Integers beyond 2^53
// lose digits, as always in JavaScript. Unknown members from a newer server are ignored.

export type Duration = number | string;
export type Instant = Date | number | string;
/** The task is due after `delay`, or at `dueAt`; by default immediately. */
export interface Due {
  delay?: Duration | undefined;
  dueAt?: Instant | undefined;
}

/** Names a task by the key of its creator, instead of the server's id. */
export interface TaskKey {
  queue: string;
  key: string;
}
export type TaskName = string | TaskKey;

/** The wait after attempt n is initial * 2^(n - 1), at most max. */
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

/** A task to schedule. With a `key` you can repeat the call: the same request again returns the
 *  first task. With `onKey` "replace" the task of the key gets this content and due time, with
 *  "postpone" only the due time; either way it is due at most `maxWait` after it was first scheduled.
 *  A field that is not given has the value of the queue. */
export interface NewTask extends Due, TaskRules {
  queue: string;
  payload?: unknown;
  key?: string | undefined;
  onKey?: 'keep' | 'replace' | 'postpone' | undefined;
  maxWait?: Duration | undefined;
  webhook?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
}

/** `completed` and `cancelled` only if the queue keeps ended tasks. */
export type TaskState = 'scheduled' | 'ready' | 'leased' | 'dead' | 'completed' | 'cancelled';
/** `conflict`: the lease is no longer held. `dead`: the failed attempt was the last one. `unavailable`:
 *  the result is not known and the lease may still be held, because its shard of a cluster was away
 *  for all of `retryFor`. `error`: the server failed at this lease. */
export type LeaseStatus = 'done' | 'conflict' | 'dead' | 'unavailable' | 'error';
export type Body = Record<string, unknown>;

/** A task on the server's disk. `wasThere`: its key already stood for it. */
export interface ScheduledTask {
  id: string;
  queue: string;
  state: TaskState;
  dueAt: Date;
  wasThere: boolean;
}

/** All fields of a task. */
export interface Task {
  id: string;
  queue: string;
  state: TaskState;
  dueAt: Date;
  createdAt: Date;
  payload: any; // parsed JSON, or a Uint8Array
  key: string;
  priority: number;
  attempts: number; // number of ended attempts
  lastError: string;
  /** Every member in the server's form, including `history`. */
  body: Readonly<Body>;
}

/** A page of tasks, and the cursor of the next page; null at the end. */
export interface TaskPage {
  tasks: Task[];
  cursor: string | null;
}

/** A task with its lease, which is valid until `leaseUntil`. */
export interface LeasedTask {
  id: string;
  lease: string;
  attempt: number; // counted from 1
  queue: string;
  key: string;
  payload: any; // parsed JSON, or a Uint8Array
  priority: number;
  dueAt: Date;
  leaseUntil: Date;
  lateness: number; // milliseconds
  headers: Readonly<Record<string, string>>;
}

/** The settings of a queue that can change (docs/reference/queues.md); null: back to the default. */
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

/** The counts of a queue by state, and its settings in the server's form. */
export interface Queue {
  name: string;
  scheduled: number;
  ready: number;
  leased: number;
  dead: number;
  oldestReadyAge: number | null; // milliseconds; null when no task is ready
  bytes: number; // size of the payloads
  settings: Readonly<Body>;
}

/** A new recurring schedule: one of cron, every and calendar, and the task that it creates. */
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
  /** Every member in the server's form. */
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
  'wait', 'by', 'initial', 'max', 'max_wait',
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

/** Converts an object to the server's form: `visibilityTimeout: 1500` becomes
 *  `"visibility_timeout_ms": 1500`. Leaves out undefined members. */
export function toBody(value: object): Body {
  const body: Body = {};
  for (const [name, member] of Object.entries(value)) {
    put(body, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), member);
  }
  return body;
}

// ---- from JSON ----

/** An answer of the server; its OpenAPI document describes it. */
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
