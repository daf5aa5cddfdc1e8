// The client: one method a verb, values in and out.
//
// Calls that may be repeated are, for up to `retryFor` milliseconds, when the server is away,
// restarts or answers 503 (with its Retry-After). That is every call but those of which twice is not
// once:
//
//     schedule and scheduleMany of tasks without a key       would make two tasks
//     triggerSchedule                                        likewise
//     purge, redrive                                         would take tasks that came in between
//
// Give a task a key and scheduling it is safe to repeat, by this client and by you. `isRepeated` of
// an error tells that the request was sent more than once: cancel() then fails with NotFound when
// its first time was carried out and only the answer lost. A repeated lease() takes other tasks;
// those of the lost answer come back when their visibility timeout is over.
import { DetentError, Unavailable } from './errors.js';
import { type Call, type Repeat, segment, Transport } from './transport.js';
import {
  type Body, type Due, type Duration, type Instant, type LeasedTask, type LeaseStatus,
  type NewSchedule, type NewTask, type Queue, type QueueSettings, readLeasedTask,
  readQueue, readSchedule, readScheduledTask, readTask, type Schedule, type ScheduledTask, type Task,
  type TaskKey, type TaskName, type TaskPage, type TaskState, toBody,
} from './values.js';

export interface ClientOptions {
  /** An access token, if the server wants one. */
  token?: string;
  /** Milliseconds until a try is given up; 30 000 if not given. lease() adds its wait.
   *  Above 0, at most a day; else the constructor throws a RangeError. */
  timeout?: number;
  /** Milliseconds for which a call is repeated; 15 000 if not given; 0: never. */
  retryFor?: number;
}

export interface CallOptions {
  /** Gives the call up; what it was to change may have been changed. */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends CallOptions {
  queue?: string;
  state?: TaskState;
  key?: string;
  dueAfter?: Instant;
  dueBefore?: Instant;
  /** 1 to 1000; 100 if not given. */
  limit?: number;
  cursor?: string | null;
}

export interface LeaseOptions extends CallOptions {
  /** At most so many, 1 to 1000; 1 if not given. */
  max?: number;
  /** For so long, at most 60 s, when nothing is there. */
  wait?: Duration;
  visibilityTimeout?: Duration;
  /** Who takes them, for people to see. */
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

/** Every method rejects with a DetentError (errors.ts) when it is not done; what the server answers
 *  to it is in docs/reference/http.md. */
export class Client {
  private readonly http: Transport;

  /** Does not connect yet. Connections are those of Node's fetch: kept and shared. */
  constructor(url = 'http://127.0.0.1:7070', options: ClientOptions = {}) {
    const { token, timeout = 30_000, retryFor = 15_000 } = options;
    this.http = new Transport(url, token, timeout, retryFor);
  }

  // ---- tasks ----

  /** Once it resolves, the task is on the server's disk. Conflict when the key stands for another
   *  content. */
  async schedule(task: NewTask, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const call = { repeat: repeatOf([task]), signal };
    return readScheduledTask(await this.http.call('POST', '/v1/tasks', toBody(task), call));
  }

  /** Up to 10 000 in one commit; a result each, in order: one that is wrong fails alone. */
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

  /** A page of the tasks that all of these want, in due order. It may be short, even empty, though
   *  there is more: go on from its cursor until that is null. */
  async list(options: ListOptions = {}): Promise<TaskPage> {
    const { signal, cursor, ...wanted } = options;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(toBody(wanted))) query.set(name, String(value));
    if (cursor) query.set('cursor', cursor);
    const page = await this.http.call('GET', `/v1/tasks?${query}`, undefined, { signal });
    return { tasks: page.tasks.map(readTask), cursor: page.cursor };
  }

  /** NotFound, and Conflict while the task is leased. */
  async cancel(task: TaskName, { signal }: CallOptions = {}): Promise<void> {
    await this.http.call('DELETE', taskPath(task), undefined, { signal });
  }

  /** Ids, or keys of one queue; up to 10 000 in one commit. Null where it is done. */
  async cancelMany(
    tasks: readonly TaskName[], { signal }: CallOptions = {},
  ): Promise<(null | DetentError)[]> {
    return this.http.callForEach('/v1/tasks/cancel', {
      elements: tasks, bodyOf: namesOf, readOne: () => null, signal });
  }

  /** Gives it another due time; a dead one lives again. Fails as cancel() does. */
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

  /** Makes it due now. Fails as cancel() does. */
  async runNow(taskId: string, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    return readScheduledTask(
      await this.http.call('POST', `${taskPath(taskId)}/run`, undefined, { signal }));
  }

  // ---- leases; Worker (worker.ts) does all of this ----

  /** Takes what is due, most urgent first; waits when nothing is. */
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

  /** The work is done. What became of each lease (LeaseStatus). A repeated call may answer "conflict"
   *  for what its first time has done. */
  async complete(leases: readonly string[], options: CallOptions = {}): Promise<LeaseStatus[]> {
    return this.statuses('complete', leases, {}, options);
  }

  /** The attempt failed; comes again after `delay`, else its backoff. "dead": it was the last one. */
  async fail(
    leases: readonly string[],
    { error, delay, ...options }: CallOptions & { error?: string; delay?: Duration | undefined } = {},
  ): Promise<LeaseStatus[]> {
    return this.statuses('fail', leases, toBody({ error: error || undefined, delay }), options);
  }

  /** They run out `by` from now, or when they did if that is later. */
  async extend(
    leases: readonly string[], by: Duration, options: CallOptions = {},
  ): Promise<LeaseStatus[]> {
    return this.statuses('extend', leases, toBody({ by }), options);
  }

  /** Gives tasks back unharmed: the attempt does not count. */
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

  /** A status or an error each. `retryFor`: of all the tries together.
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

  /** Changes the settings given. */
  async changeQueue(
    name: string, settings: QueueSettings, { signal }: CallOptions = {},
  ): Promise<Queue> {
    return readQueue(
      await this.http.call('PATCH', queuePath(name), toBody(settings), { signal }));
  }

  /** Conflict while it has tasks. */
  async removeQueue(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.http.call('DELETE', queuePath(name), undefined, { signal });
  }

  async pause(name: string, { signal }: CallOptions = {}): Promise<Queue> {
    return readQueue(await this.http.call('POST', queuePath(name, '/pause'), undefined, { signal }));
  }

  async resume(name: string, { signal }: CallOptions = {}): Promise<Queue> {
    return readQueue(await this.http.call('POST', queuePath(name, '/resume'), undefined, { signal }));
  }

  /** Removes all tasks that are not leased; how many. */
  async purge(name: string, options: CallOptions = {}): Promise<number> {
    return this.count(queuePath(name, '/purge'), options);
  }

  /** Makes all dead tasks due now; how many. */
  async redrive(name: string, options: CallOptions = {}): Promise<number> {
    return this.count(queuePath(name, '/redrive'), options);
  }

  private async count(path: string, { signal }: CallOptions): Promise<number> {
    const call: Call = { repeat: 'never', patience: 60_000, signal };
    return (await this.http.call('POST', path, undefined, call)).count;
  }

  // ---- recurring schedules ----

  /** Makes or replaces it. */
  async putSchedule(
    name: string, schedule: NewSchedule, { signal }: CallOptions = {},
  ): Promise<Schedule> {
    return readSchedule(
      await this.http.call('PUT', schedulePath(name), toBody(schedule), { signal }));
  }

  async getSchedule(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    return readSchedule(await this.http.call('GET', schedulePath(name), undefined, { signal }));
  }

  /** All, by name. */
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

  /** The next ones. */
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

  /** Makes a task now. */
  async triggerSchedule(name: string, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const call: Call = { repeat: 'never', signal };
    return readScheduledTask(
      await this.http.call('POST', schedulePath(name, '/trigger'), undefined, call));
  }

  /** The tasks it has made stay. */
  async removeSchedule(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.http.call('DELETE', schedulePath(name), undefined, { signal });
  }

  // ---- the server ----

  /** Counts, as the server says them. */
  async stats({ signal }: CallOptions = {}): Promise<any> {
    return this.http.call('GET', '/v1/stats', undefined, { signal });
  }
}
