// The client: one method per operation, with values as arguments and results.
//
// If the server is away, restarts or answers 503 (with its Retry-After), the client repeats the call
// for up to `retryFor` milliseconds. It does not repeat calls for which a second run has another
// effect:
//
//     schedule and scheduleMany of tasks without a key       would create two tasks
//     triggerSchedule                                        would create two tasks
//     purge, redrive                                         would change tasks that came in between
//
// If a task has a key, it is safe to schedule it again, for this client and for you. `isRepeated` of
// an error says that the request was sent more than once. For example, cancel() fails with NotFound
// if the first request was carried out and only its answer was lost. A repeated lease() takes other
// tasks. The tasks of the lost answer come back after their visibility timeout.
import { DetentError, Unavailable } from './errors.js';
import { type Call, type Repeat, segment, Transport } from './transport.js';
import {
  type Body, type Due, type Duration, type Instant, type LeasedTask, type LeaseStatus,
  type NewSchedule, type NewTask, type Queue, type QueueSettings, readLeasedTask,
  readQueue, readSchedule, readScheduledTask, readTask, type Schedule, type ScheduledTask, type Task,
  type TaskKey, type TaskName, type TaskPage, type TaskState, toBody,
} from './values.js';

export interface ClientOptions {
  /** An access token, if the server requires one. */
  token?: string;
  /** Milliseconds before a try is given up; default 30 000. lease() adds its wait.
   *  Must be greater than 0 and at most a day; otherwise the constructor throws a RangeError. */
  timeout?: number;
  /** Milliseconds for which a call is repeated; default 15 000; 0: never. */
  retryFor?: number;
}

export interface CallOptions {
  /** Cancels the call. The server may have carried the request out. */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends CallOptions {
  queue?: string;
  state?: TaskState;
  key?: string;
  dueAfter?: Instant;
  dueBefore?: Instant;
  /** 1 to 1000; default 100. */
  limit?: number;
  cursor?: string | null;
}

export interface LeaseOptions extends CallOptions {
  /** The largest number of tasks, 1 to 1000; default 1. */
  max?: number;
  /** How long to wait if no task is ready; at most 60 s. */
  wait?: Duration;
  visibilityTimeout?: Duration;
  /** The name of the worker, for people. */
  worker?: string;
}

const queuePath = (name: string, rest = '') => `/v1/queues/${segment(name)}${rest}`;
const schedulePath = (name: string, rest = '') => `/v1/schedules/${segment(name)}${rest}`;
const taskPath = (task: TaskName) =>
  typeof task === 'string'
    ? `/v1/tasks/${segment(task)}`
    : queuePath(task.queue, `/keys/${segment(task.key)}`);

/** Ids, or keys of one queue. */
function namesOf(tasks: readonly TaskName[]): Body {
  const keys = tasks.filter((task): task is TaskKey => typeof task !== 'string');
  const [first] = keys;
  if (first === undefined) return { ids: tasks };
  if (keys.length !== tasks.length || keys.some((key) => key.queue !== first.queue)) {
    throw new TypeError('tasks must all be ids, or all keys of one queue');
  }
  return { queue: first.queue, keys: keys.map((key) => key.key) };
}

const repeatOf = (tasks: readonly NewTask[]): Repeat =>
  tasks.every((task) => task.key) ? 'always' : 'never';

/** Every method rejects with a DetentError (errors.ts) if it fails. The answers of the server are in
 *  docs/reference/http.md. */
export class Client {
  private readonly http: Transport;

  /** Does not connect yet. Node's fetch keeps and shares the connections. */
  constructor(url = 'http://127.0.0.1:7070', options: ClientOptions = {}) {
    const { token, timeout = 30_000, retryFor = 15_000 } = options;
    this.http = new Transport(url, token, timeout, retryFor);
  }

  // ---- tasks ----

  /** When it resolves, the task is on the server's disk. Rejects with Conflict if the key stands for
   *  a request with other fields. */
  async schedule(task: NewTask, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const call = { repeat: repeatOf([task]), signal };
    return readScheduledTask(await this.http.call('POST', '/v1/tasks', toBody(task), call));
  }

  /** Schedules up to 10 000 tasks in one commit. A result each, in order; a wrong task fails alone. */
  async scheduleMany(
    tasks: readonly NewTask[], { signal }: CallOptions = {},
  ): Promise<(ScheduledTask | DetentError)[]> {
    return this.http.callForEach('/v1/tasks/batch', {
      elements: tasks, bodyOf: (some) => some.map(toBody), readOne: readScheduledTask,
      repeat: repeatOf(tasks), signal });
  }

  async get(task: TaskName, { signal }: CallOptions = {}): Promise<Task> {
    return readTask(await this.http.call('GET', taskPath(task), undefined, { signal }));
  }

  /** Resolves with a page of the tasks that match all fields, in due order. A page can be short, or
   *  even empty, before the end: continue from its cursor until the cursor is null. */
  async list(options: ListOptions = {}): Promise<TaskPage> {
    const { signal, cursor, ...wanted } = options;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(toBody(wanted))) query.set(name, String(value));
    if (cursor) query.set('cursor', cursor);
    const page = await this.http.call('GET', `/v1/tasks?${query}`, undefined, { signal });
    return { tasks: page.tasks.map(readTask), cursor: page.cursor };
  }

  /** Rejects with NotFound, and with Conflict while the task is leased. */
  async cancel(task: TaskName, { signal }: CallOptions = {}): Promise<void> {
    await this.http.call('DELETE', taskPath(task), undefined, { signal });
  }

  /** Ids, or keys of one queue; up to 10 000 in one commit. Null for each cancelled task. */
  async cancelMany(
    tasks: readonly TaskName[], { signal }: CallOptions = {},
  ): Promise<(null | DetentError)[]> {
    return this.http.callForEach('/v1/tasks/cancel', {
      elements: tasks, bodyOf: namesOf, readOne: () => null, signal });
  }

  /** Sets another due time. A dead task becomes live again. Fails as cancel() does. */
  async move(task: TaskName, due: Due, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const { delay, dueAt } = due;
    return readScheduledTask(
      await this.http.call('PATCH', taskPath(task), toBody({ delay, dueAt }), { signal }));
  }

  async moveMany(
    tasks: readonly TaskName[], due: Due, { signal }: CallOptions = {},
  ): Promise<(ScheduledTask | DetentError)[]> {
    const { delay, dueAt } = due;
    const body = toBody({ delay, dueAt });
    return this.http.callForEach('/v1/tasks/move', {
      elements: tasks, bodyOf: (some) => ({ ...namesOf(some), ...body }),
      readOne: readScheduledTask, signal });
  }

  /** Makes the task due now. Fails as cancel() does. */
  async runNow(taskId: string, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    return readScheduledTask(
      await this.http.call('POST', `${taskPath(taskId)}/run`, undefined, { signal }));
  }

  // ---- leases; Worker (worker.ts) calls these methods for you ----

  /** Leases due tasks, most urgent first. Waits if no task is ready. */
  async lease(queue: string, options: LeaseOptions = {}): Promise<LeasedTask[]> {
    return this.leaseOnce(queue, options, undefined);
  }

  /** @internal */
  async leaseOnce(
    queue: string, options: LeaseOptions, retryFor: number | undefined,
  ): Promise<LeasedTask[]> {
    const { signal, max, wait = 0, ...rest } = options;
    const body = toBody({ wait, ...rest });
    if (max !== undefined) body['max'] = max;
    const call: Call = { patience: typeof wait === 'number' ? wait : 60_000, retryFor, signal };
    const answer = await this.http.call('POST', queuePath(queue, '/lease'), body, call);
    return answer.tasks.map(readLeasedTask);
  }

  /** Reports that the work is done. Resolves with a LeaseStatus for each lease. A repeated call may
   *  answer "conflict" if the first call was carried out. */
  async complete(leases: readonly string[], options: CallOptions = {}): Promise<LeaseStatus[]> {
    return this.statuses('complete', leases, {}, options);
  }

  /** Reports a failed attempt. The task comes again after `delay`, default: its backoff. Status
   *  "dead": this was the last attempt. `final`: further attempts are useless, so the task is dead
   *  now. */
  async fail(
    leases: readonly string[],
    { error, delay, final, ...options }: CallOptions & {
      error?: string; delay?: Duration | undefined; final?: boolean;
    } = {},
  ): Promise<LeaseStatus[]> {
    const body = toBody({ error: error || undefined, delay, final: final || undefined });
    return this.statuses('fail', leases, body, options);
  }

  /** The leases end `by` from now, or at their old end if that is later. */
  async extend(
    leases: readonly string[], by: Duration, options: CallOptions = {},
  ): Promise<LeaseStatus[]> {
    return this.statuses('extend', leases, toBody({ by }), options);
  }

  /** Gives tasks back. The attempt does not count. */
  async release(
    leases: readonly string[],
    { delay, priority, ...options }: CallOptions & { delay?: Duration; priority?: number } = {},
  ): Promise<LeaseStatus[]> {
    return this.statuses('release', leases, toBody({ delay, priority }), options);
  }

  private async statuses(
    verb: string, leases: readonly string[], body: Body, { signal }: CallOptions,
  ): Promise<LeaseStatus[]> {
    const results = await this.report(verb, leases, body, { signal });
    return results.map((result) => {
      if (!(result instanceof DetentError)) return result;
      return result instanceof Unavailable ? 'unavailable' : 'error';
    });
  }

  /** A status or an error for each. `retryFor`: the time for all tries together.
   *  @internal */
  async report(
    verb: string, leases: readonly string[], body: Body,
    options: CallOptions & { retryFor?: number } = {},
  ): Promise<(LeaseStatus | DetentError)[]> {
    return this.http.callForEach(`/v1/leases/${verb}`, {
      elements: leases, bodyOf: (some) => ({ leases: some, ...body }),
      readOne: ({ status }): LeaseStatus => status, ...options });
  }

  // ---- queues ----

  async queues({ signal }: CallOptions = {}): Promise<Queue[]> {
    const answer = await this.http.call('GET', '/v1/queues', undefined, { signal });
    return answer.queues.map(readQueue);
  }

  async queue(name: string, { signal }: CallOptions = {}): Promise<Queue> {
    return readQueue(await this.http.call('GET', queuePath(name), undefined, { signal }));
  }

  /** Changes the given settings. */
  async changeQueue(
    name: string, settings: QueueSettings, { signal }: CallOptions = {},
  ): Promise<Queue> {
    return readQueue(
      await this.http.call('PATCH', queuePath(name), toBody(settings), { signal }));
  }

  /** Removes the queue. Rejects with Conflict while it has tasks. */
  async removeQueue(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.http.call('DELETE', queuePath(name), undefined, { signal });
  }

  async pause(name: string, { signal }: CallOptions = {}): Promise<Queue> {
    return readQueue(await this.http.call('POST', queuePath(name, '/pause'), undefined, { signal }));
  }

  async resume(name: string, { signal }: CallOptions = {}): Promise<Queue> {
    return readQueue(await this.http.call('POST', queuePath(name, '/resume'), undefined, { signal }));
  }

  /** Removes all tasks that are not leased. Resolves with their number. */
  async purge(name: string, options: CallOptions = {}): Promise<number> {
    return this.count(queuePath(name, '/purge'), options);
  }

  /** Makes all dead tasks due now. Resolves with their number. */
  async redrive(name: string, options: CallOptions = {}): Promise<number> {
    return this.count(queuePath(name, '/redrive'), options);
  }

  private async count(path: string, { signal }: CallOptions): Promise<number> {
    const call: Call = { repeat: 'never', patience: 60_000, signal };
    return (await this.http.call('POST', path, undefined, call)).count;
  }

  // ---- recurring schedules ----

  /** Creates or replaces a schedule. */
  async putSchedule(
    name: string, schedule: NewSchedule, { signal }: CallOptions = {},
  ): Promise<Schedule> {
    return readSchedule(
      await this.http.call('PUT', schedulePath(name), toBody(schedule), { signal }));
  }

  async getSchedule(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    return readSchedule(await this.http.call('GET', schedulePath(name), undefined, { signal }));
  }

  /** All schedules, by name. */
  async schedules({ signal }: CallOptions = {}): Promise<Schedule[]> {
    const found: Schedule[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ limit: '1000', ...(cursor && { cursor }) });
      const page: { schedules: unknown[]; cursor: string | null } =
        await this.http.call('GET', `/v1/schedules?${query}`, undefined, { signal });
      found.push(...page.schedules.map(readSchedule));
      cursor = page.cursor;
    }
    return found;
  }

  /** The next occurrences. */
  async nextOccurrences(name: string, count = 10, { signal }: CallOptions = {}): Promise<Date[]> {
    const path = schedulePath(name, `/next?count=${count}`);
    const answer = await this.http.call('GET', path, undefined, { signal });
    return answer.next.map((instant: string) => new Date(instant));
  }

  async pauseSchedule(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    return readSchedule(
      await this.http.call('POST', schedulePath(name, '/pause'), undefined, { signal }));
  }

  async resumeSchedule(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    return readSchedule(
      await this.http.call('POST', schedulePath(name, '/resume'), undefined, { signal }));
  }

  /** Creates a task now. */
  async triggerSchedule(name: string, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const call: Call = { repeat: 'never', signal };
    return readScheduledTask(
      await this.http.call('POST', schedulePath(name, '/trigger'), undefined, call));
  }

  /** Removes the schedule. Its tasks stay. */
  async removeSchedule(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.http.call('DELETE', schedulePath(name), undefined, { signal });
  }

  // ---- the server ----

  /** Counts, in the form of the server. */
  async stats({ signal }: CallOptions = {}): Promise<any> {
    return this.http.call('GET', '/v1/stats', undefined, { signal });
  }
}
