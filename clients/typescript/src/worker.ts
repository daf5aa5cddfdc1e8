// The worker: leases due tasks of one queue, hands them to a function and reports the results.
//
// If the handler returns (or its promise resolves), the task is completed. If it throws, the attempt
// has failed, and the task comes again after its backoff (throw Retry to set the delay). The worker
// extends its leases at every third of the visibility timeout, so a handler may take as long as it
// needs, if it does not block the event loop. While the server, or a shard of a cluster, is away, the
// worker keeps its leases and repeats its reports until the lease expires. Delivery is at least once:
// after a crash of either side a task comes again, so a handler must be safe to run twice.
import { hostname } from 'node:os';

import { type Client } from './client.js';
import { DetentError, Internal, Unavailable } from './errors.js';
import {
  type Body, type Duration, type LeasedTask, type LeaseStatus, toBody,
} from './values.js';

const pauses = [100, 200, 500, 1_000, 2_000, 5_000]; // between calls that fail
const lastPause = 5_000;
/** The pause after `failures` failed calls in a row, at least one. */
const pauseAfter = (failures: number) => pauses[failures - 1] ?? lastPause;

type LeaseResult = LeaseStatus | DetentError;

const maxDelay = 4_294_967_295_000; // milliseconds

/** Clamps a delay. The server would refuse it, and the task would wait until its lease ends. */
function withinLimits(delay: Duration | undefined): Duration | undefined {
  return typeof delay === 'number' ? Math.min(Math.max(delay, 0), maxDelay) : delay;
}

/** Thrown by a handler: the attempt failed with this error. The task comes again after `delay`
 *  (immediately if negative; at most 136 years), default: after its backoff. */
export class Retry extends Error {
  override name = 'Retry';
  constructor(error = '', readonly delay?: Duration) {
    super(error);
  }
}

/** Thrown by a handler: the attempt failed with this error, and further attempts are useless. The task
 *  is dead. */
export class Dead extends Error {
  override name = 'Dead';
}

/** A task in the form that its handler gets. */
export interface WorkTask extends LeasedTask {
  /** Aborted when the result is no longer wanted: the lease was lost, or stop() no longer waits. The
   *  worker does not report what the handler then returns. */
  readonly abandoned: AbortSignal;
}

export type Handler = (task: WorkTask) => unknown;

export interface WorkerOptions {
  /** Number of tasks that are worked on at the same time; default 1. */
  concurrency?: number;
  /** Number of further leased tasks, so that the next task is there when one ends; for short tasks.
   *  Default 0. */
  prefetch?: number;
  /** Milliseconds; if this process dies, its tasks come again after this time. Default 60 000. */
  visibilityTimeout?: number;
  /** Milliseconds that a lease waits for a task; at most 60 000. Default 20 000. */
  wait?: number;
  /** A name for people; default: the names of this host and process. */
  name?: string;
  /** Called for failed calls and lost leases; must not throw. By default console.warn logs them. */
  onError?: (error: unknown) => void;
}

interface Held {
  task: WorkTask;
  abandon: AbortController;
  isReported: boolean; // the handler has finished
  leaseEnd: number; // end of its lease, by performance.now()
}

/** Runs once: start() and stop(), or run(). */
export class Worker {
  private readonly concurrency: number;
  private readonly capacity: number;
  private readonly visibilityTimeout: number;
  private readonly wait: number;
  private readonly name: string;
  private readonly onError: (error: unknown) => void;
  private readonly held = new Map<string, Held>(); // by lease
  private readonly waiting: Held[] = []; // the held tasks that no handler has begun
  private readonly poll = new AbortController();
  private running = 0;
  private isStopping = false;
  private isGraceOver = false;
  private isOver = false;
  private loop: Promise<void> | undefined;
  private extension: Promise<void> | undefined;
  private readonly watchers = new Set<() => void>();

  /** `handler` is called for up to `concurrency` tasks at the same time. */
  constructor(
    private readonly client: Client,
    private readonly queue: string,
    private readonly handler: Handler,
    options: WorkerOptions = {},
  ) {
    this.concurrency = options.concurrency ?? 1;
    this.capacity = this.concurrency + (options.prefetch ?? 0);
    this.visibilityTimeout = options.visibilityTimeout ?? 60_000;
    this.wait = options.wait ?? 20_000;
    this.name = options.name ?? `${hostname()}:${process.pid}`;
    this.onError = options.onError ?? ((error) => console.warn(`detent: ${queue}: ${error}`));
    if (this.concurrency < 1 || this.capacity < this.concurrency || this.visibilityTimeout <= 0) {
      throw new RangeError('concurrency and visibilityTimeout must be positive');
    }
  }

  /** Starts and returns immediately. */
  start(): void {
    if (this.loop || this.isStopping) throw new Error('a worker runs once');
    this.extension = this.extendOn();
    this.loop = this.leaseOn();
  }

  /** Stops leasing, releases tasks that no handler has begun, and waits up to `grace` milliseconds for
   *  the handlers. Then it abandons and releases the running tasks, so that another worker gets them
   *  immediately. Idempotent. Handlers must not call it. */
  async stop(grace = 30_000): Promise<void> {
    this.isStopping = true;
    this.poll.abort();
    this.changed();
    await this.release(this.waiting.splice(0));
    await this.until(() => this.held.size === 0, grace);
    this.isGraceOver = true;
    this.changed();
    const late = [...this.held.values()].filter((held) => !held.isReported);
    for (const { abandon } of late) abandon.abort();
    await this.release(late);
    await this.loop;
    await this.until(() => this.held.size === 0);
    this.isOver = true;
    this.changed();
    await this.extension;
  }

  /** Works until the process gets SIGTERM or SIGINT, then stops like stop(grace). */
  async run(grace = 30_000): Promise<void> {
    const signals = ['SIGTERM', 'SIGINT'] as const;
    let onSignal: () => void = () => {};
    const stopped = new Promise<void>((resolve) => (onSignal = resolve));
    for (const signal of signals) process.on(signal, onSignal);
    try {
      this.start();
      await stopped;
      await this.stop(grace);
    } finally {
      for (const signal of signals) process.off(signal, onSignal);
    }
  }

  // ---- leasing ----

  private async leaseOn(): Promise<void> {
    let failures = 0;
    while (!this.isStopping) {
      await this.until(() => this.isStopping || this.held.size < this.capacity);
      if (this.isStopping) return;
      const options = {
        max: Math.min(1000, this.capacity - this.held.size), wait: this.wait,
        visibilityTimeout: this.visibilityTimeout, worker: this.name, signal: this.poll.signal,
      };
      try {
        this.take(await this.client.leaseOnce(this.queue, options, 0));
        failures = 0;
      } catch (error) {
        if (this.isStopping) return;
        this.onError(error);
        await this.until(() => this.isStopping, pauseAfter(++failures));
      }
    }
  }

  private take(tasks: readonly LeasedTask[]): void {
    const leaseEnd = performance.now() + this.visibilityTimeout;
    const taken = tasks.map((leased): Held => {
      const abandon = new AbortController();
      const task = { ...leased, abandoned: abandon.signal };
      return { task, abandon, isReported: false, leaseEnd };
    });
    for (const held of taken) this.held.set(held.task.lease, held);
    if (this.isStopping) {
      void this.release(taken);
      return;
    }
    this.waiting.push(...taken);
    this.begin();
  }

  private async release(unwanted: readonly Held[]): Promise<void> {
    const leases = unwanted.map(({ task }) => task.lease);
    if (leases.length > 0) await this.try('release', leases, {});
    this.forget(leases);
  }

  // ---- keeping ----

  private async extendOn(): Promise<void> {
    const body = toBody({ by: this.visibilityTimeout });
    const third = this.visibilityTimeout / 3;
    for (let failures = 0; ; ) {
      await this.until(() => this.isOver, failures ? Math.min(third, pauseAfter(failures)) : third);
      if (this.isOver) return;
      const leases = [...this.held.keys()];
      // Each call is made once. Repeats of a call would delay the extension of leases on other shards.
      const results = leases.length ? await this.try('extend', leases, body, { retryFor: 0 }) : [];
      const of = (status: LeaseStatus) => leases.filter((_, i) => results[i] === status);
      this.keep(of('done'));
      this.lose(of('conflict'));
      failures = results.some((result) => result instanceof Unavailable) ? failures + 1 : 0;
    }
  }

  private keep(leases: readonly string[]): void {
    for (const lease of leases) {
      const held = this.held.get(lease);
      if (held) held.leaseEnd = performance.now() + this.visibilityTimeout;
    }
  }

  /** Another worker may have these tasks now. Drops the tasks that have not begun. */
  private lose(leases: readonly string[]): void {
    for (const lease of leases) {
      const held = this.held.get(lease);
      if (!held || held.isReported) continue;
      held.abandon.abort();
      const place = this.waiting.indexOf(held);
      if (place >= 0) {
        this.waiting.splice(place, 1);
        this.forget([lease]);
      }
      this.onError(new Error(`the lease of task ${held.task.id} was lost`));
    }
  }

  // ---- working ----

  private begin(): void {
    while (this.running < this.concurrency) {
      const next = this.waiting.shift();
      if (!next) return;
      ++this.running;
      void this.work(next).then(() => {
        --this.running;
        this.begin();
      });
    }
  }

  private async work(held: Held): Promise<void> {
    const { task } = held;
    const report = await this.handle(task);
    if (!task.abandoned.aborted) {
      held.isReported = true;
      await this.repeat(held, report);
    }
    this.forget([task.lease]);
  }

  /** Runs the handler. Resolves with the call that reports to the server. */
  private async handle(task: WorkTask): Promise<() => Promise<LeaseResult[]>> {
    try {
      await this.handler(task);
      return () => this.try('complete', [task.lease], {});
    } catch (thrown) {
      const retry = thrown instanceof Retry ? thrown : undefined;
      const final = thrown instanceof Dead || undefined;
      const text = thrown instanceof Retry || thrown instanceof Dead ? thrown.message : String(thrown);
      const error = text.replace(/\p{Surrogate}/gu, '?');
      const body = toBody({ error, delay: withinLimits(retry?.delay), final });
      return () => this.try('fail', [task.lease], body);
    }
  }

  /** Reports until the server has given a result for the lease, or the lease has expired. */
  private async repeat(held: Held, report: () => Promise<LeaseResult[]>): Promise<void> {
    for (let failures = 0; !this.isGraceOver; ) {
      const [result] = await report();
      if (result === 'conflict') {
        // A call that was answered "unavailable" may have been carried out.
        const orDone = failures ? ', or an earlier report was carried out' : '';
        this.onError(new Error(`the lease of task ${held.task.id} was lost${orDone}`));
      }
      if (!(result instanceof Unavailable)) return;
      const left = held.leaseEnd - performance.now();
      if (left <= 0) return;
      await this.until(() => this.isGraceOver, Math.min(left, pauseAfter(++failures)));
    }
  }

  /** Resolves with a result for each. An error is reported once for all of them. */
  private async try(
    verb: string, leases: readonly string[], body: Body, options?: { retryFor: number },
  ): Promise<LeaseResult[]> {
    let results: LeaseResult[];
    try {
      results = await this.client.report(verb, leases, body, options);
      if (results.length !== leases.length) {
        throw new Internal("the server's answer has results for other leases");
      }
    } catch (error) {
      const lost = error instanceof DetentError ? error : new Internal(String(error));
      results = leases.map(() => lost);
    }
    const told = results.find((result) => result instanceof DetentError);
    if (told) this.onError(told);
    return results;
  }

  // ---- held tasks, and waiting for a change ----

  private forget(leases: readonly string[]): void {
    for (const lease of leases) this.held.delete(lease);
    this.changed();
  }

  private changed(): void {
    for (const watcher of this.watchers) watcher();
  }

  /** Resolves when the condition is true, or after this number of milliseconds. */
  private async until(isSo: () => boolean, limit?: number): Promise<void> {
    if (isSo()) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.watchers.delete(watcher);
        resolve();
      };
      const watcher = () => {
        if (isSo()) end();
      };
      const timer = limit === undefined ? undefined : setTimeout(end, limit);
      this.watchers.add(watcher);
    });
  }
}
