// Calls by fetch, and the rules for repeating a call without an answer.
//
// A client of a task server must know whether the server may have carried a request out. So each
// call says whether a second run has the same effect (`repeat`). If no connection could be made, the
// server has not seen the request, and any call is repeated. After another failure (connection lost,
// time-out, 408, 502, 503, 504) a call is repeated only if a second run has the same effect. The
// first pause is 100 ms. Each further pause is twice as long, up to 5 s, less a random part. If
// Retry-After is longer, it is the pause. A call for many elements is repeated for the elements that
// a cluster could not reach.
import { setTimeout as sleep } from 'node:timers/promises';

import { DetentError, errorOf, Internal, InvalidArgument, Unavailable } from './errors.js';

const firstPause = 100;
const lastPause = 5_000;
const longestTimeout = 86_400_000; // together with a wait, it must fit into setTimeout

export type Repeat = 'never' | 'always';

export interface Call {
  repeat?: Repeat | undefined;
  /** More milliseconds for the server's answer. */
  patience?: number | undefined;
  retryFor?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A call for many: its elements, the body for some of them, and the function that reads a result. */
export interface CallForEach<E, T> {
  elements: readonly E[];
  bodyOf: (elements: readonly E[]) => unknown;
  readOne: (result: any) => T;
  repeat?: Repeat | undefined;
  /** The time for all tries together. */
  retryFor?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** The pauses between the tries of a call, while there is time for another try. */
class Tries {
  private readonly giveUp: number;
  private pauses = 0;

  constructor(
    retryFor: number,
    private readonly now: () => number,
    private readonly wait: (pause: number, signal?: AbortSignal) => Promise<void>,
  ) {
    this.giveUp = now() + retryFor;
  }

  /** Milliseconds. */
  left(): number {
    return Math.max(0, this.giveUp - this.now());
  }

  /** Waits for the next try, at least `told` milliseconds. False immediately if no try is left. */
  async rest(told?: number, signal?: AbortSignal): Promise<boolean> {
    const pause = Math.max(told ?? 0,
      Math.min(lastPause, firstPause * 2 ** this.pauses) * (0.5 + Math.random() / 2));
    if (this.now() + pause > this.giveUp) return false;
    ++this.pauses;
    await this.wait(pause, signal).catch(() => signal?.throwIfAborted());
    return true;
  }
}

/** There was no connection, so the server has not seen the request. */
class Unseen extends Unavailable {
  override name = 'Unavailable';
}
const unseenCodes = new Set([
  'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Returns a name as one segment of a path. Throws InvalidArgument for "." and "..", which fetch
 *  treats as steps in the path, in any spelling. */
export function segment(name: string): string {
  if (name === '.' || name === '..') {
    throw new InvalidArgument(`the name "${name}" is not possible: fetch cannot send it in a path`);
  }
  return encodeURIComponent(name);
}

export class Transport {
  private readonly base: string;
  private readonly headers: Record<string, string>;
  // Tests replace it.
  private readonly now: () => number = () => performance.now();
  private readonly wait = (pause: number, signal?: AbortSignal): Promise<void> =>
    sleep(pause, undefined, signal ? { signal } : {});

  constructor(
    url: string,
    token: string | undefined,
    private readonly timeout: number,
    private readonly retryFor: number,
  ) {
    const { protocol, origin, pathname, search, hash, username } = new URL(url);
    if (protocol !== 'http:' && protocol !== 'https:') {
      throw new TypeError(`"${url}" must be http://HOST[:PORT] or https://HOST[:PORT]`);
    }
    if (pathname !== '/' || search || hash || username) {
      throw new TypeError(`"${url}" must have only a host and a port`);
    }
    if (!(timeout > 0 && timeout <= longestTimeout)) {
      throw new RangeError(
        `timeout must be greater than 0 and at most 86400000 milliseconds, got ${timeout}`);
    }
    this.base = origin;
    this.headers = token ? { authorization: `Bearer ${token}` } : {};
  }

  /** Resolves with the JSON of the answer. Throws `signal.reason` if `signal` is aborted. */
  async call(method: string, path: string, body?: unknown, call: Call = {}): Promise<any> {
    const tries = this.tries(call.retryFor);
    const text = body === undefined ? undefined : JSON.stringify(body);
    let sends = 0; // requests that the server may have seen
    for (;;) {
      call.signal?.throwIfAborted();
      const { answer, error, retryAfter } = await this.try(method, path, text, call);
      if (error === undefined) return answer;
      if (!(error instanceof Unseen)) ++sends;
      error.isRepeated = sends > 1;
      const isHarmless = (call.repeat ?? 'always') === 'always' || error instanceof Unseen;
      if (!(error instanceof Unavailable) || !isHarmless) throw error;
      if (!(await tries.rest(retryAfter, call.signal))) throw error;
    }
  }

  /** Resolves with a value or an error for each result. If a shard of a cluster is away, only its
   *  elements are Unavailable. They are repeated like a whole call. */
  async callForEach<E, T>(path: string, call: CallForEach<E, T>): Promise<(T | DetentError)[]> {
    const { elements, bodyOf, readOne, repeat = 'always', signal } = call;
    const tries = this.tries(call.retryFor);
    const ask = async (some: readonly E[], retryFor: number) => readResults(
      await this.call('POST', path, bodyOf(some), { repeat, retryFor, signal }), readOne);
    const results = await ask(elements, tries.left());
    while (repeat === 'always') {
      const away = [...results.keys()].filter((i) => results[i] instanceof Unavailable);
      if (away.length === 0 || !(await tries.rest(undefined, signal))) break;
      try {
        const again = await ask(away.map((i) => elements[i] as E), tries.left());
        again.forEach((result, i) => {
          results[away[i] as number] = result;
          if (result instanceof DetentError) result.isRepeated = true;
        });
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof DetentError)) throw error;
        break; // keep the results of the other elements
      }
    }
    return results;
  }

  private tries(retryFor = this.retryFor): Tries {
    return new Tries(retryFor, () => this.now(), (pause, signal) => this.wait(pause, signal));
  }

  private async try(
    method: string, path: string, text: string | undefined, call: Call,
  ): Promise<{ answer?: unknown; error?: DetentError; retryAfter?: number | undefined }> {
    const limit = new AbortController();
    const abort = () => limit.abort(call.signal?.reason);
    call.signal?.addEventListener('abort', abort);
    const patience = this.timeout + (call.patience ?? 0);
    const timer = setTimeout(() => limit.abort(), patience);
    try {
      const headers = { ...this.headers };
      if (text !== undefined) headers['content-type'] = 'application/json';
      const response = await fetch(this.base + path, {
        method, headers, signal: limit.signal, redirect: 'manual',
        ...(text === undefined ? {} : { body: text }),
      });
      return read(response, await response.text());
    } catch (lost) {
      call.signal?.throwIfAborted();
      const where = `${method} ${path}`;
      if (limit.signal.aborted) {
        return { error: new Unavailable(`${where}: no answer within ${patience} ms`) };
      }
      return { error: lostCall(where, lost) };
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', abort);
    }
  }
}

function lostCall(where: string, lost: unknown): DetentError {
  const cause = (lost as { cause?: { code?: string; message?: string } }).cause;
  const kind = unseenCodes.has(cause?.code ?? '') ? Unseen : Unavailable;
  const why = cause?.message || cause?.code || String(lost);
  return new kind(`${where}: ${why}`, {}, 0, { cause: lost });
}

function read(response: Response, text: string) {
  let answer: unknown;
  let error: DetentError | undefined;
  try {
    answer = JSON.parse(text);
  } catch {
    error = new Internal('the answer is not JSON', {}, response.status);
  }
  if (response.ok) return error ? { error } : { answer };
  const seconds = response.headers.get('retry-after') ?? '';
  const isNamed = /^\d+$/.test(seconds);
  return {
    error: errorOf(response.status, answer),
    retryAfter: isNamed ? Number(seconds) * 1000 : undefined,
  };
}

/** Returns a value or an error for each result of a call for many. */
function readResults<T>(answer: any, readOne: (result: any) => T): (T | DetentError)[] {
  return answer.results.map((result: any) =>
    result.error ? errorOf(result.error.status ?? 0, result.error) : readOne(result));
}
