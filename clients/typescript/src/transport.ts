// Calls by fetch, and which of them are repeated when an answer does not come.
//
// What matters in a client of a task server is to know whether a request may have been carried out.
// So a call says whether doing it twice is harmless (`repeat`). When no connection could be made the
// request was not seen, and any call is repeated; after that (connection lost, time-out, 408, 502,
// 503, 504) only a harmless one is. Between the tries it waits 100 ms, then twice as long each time
// up to 5 s, less a random part, or as long as Retry-After says if that is longer. A call for many
// elements is repeated for the elements that a cluster could not reach.
import { setTimeout as sleep } from 'node:timers/promises';

import { DetentError, errorOf, Internal, InvalidArgument, Unavailable } from './errors.js';

const firstPause = 100;
const lastPause = 5_000;
const longestTimeout = 86_400_000; // with a wait, setTimeout has room for it

export type Repeat = 'never' | 'always';

export interface Call {
  repeat?: Repeat | undefined;
  /** Milliseconds that the server may take besides. */
  patience?: number | undefined;
  retryFor?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A call for many: its elements, the body that asks for some of them, and what is made of a result. */
export interface CallForEach<E, T> {
  elements: readonly E[];
  bodyOf: (elements: readonly E[]) => unknown;
  readOne: (result: any) => T;
  repeat?: Repeat | undefined;
  /** Of all the tries together. */
  retryFor?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** The pauses between the tries of a call, while there is time for another one. */
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

  /** Waits for the next try, at least `told` milliseconds. False, at once: no try is left. */
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

/** A name as one segment of a path. Throws InvalidArgument for "." and "..", which fetch takes for
 *  steps in the path, however they are written. */
export function segment(name: string): string {
  if (name === '.' || name === '..') {
    throw new InvalidArgument(`fetch cannot say the name "${name}" in a path`);
  }
  return encodeURIComponent(name);
}

export class Transport {
  private readonly base: string;
  private readonly headers: Record<string, string>;
  // Of a test's own in tests.
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
      throw new TypeError(`"${url}" is not http://HOST[:PORT] or https://HOST[:PORT]`);
    }
    if (pathname !== '/' || search || hash || username) {
      throw new TypeError(`"${url}" is more than a host and a port`);
    }
    if (!(timeout > 0 && timeout <= longestTimeout)) {
      throw new RangeError(
        `a timeout is above 0 and at most a day of milliseconds; not ${timeout}`);
    }
    this.base = origin;
    this.headers = token ? { authorization: `Bearer ${token}` } : {};
  }

  /** The answer's JSON. Throws `signal.reason` once that is aborted. */
  async call(method: string, path: string, body?: unknown, call: Call = {}): Promise<any> {
    const tries = this.tries(call.retryFor);
    const text = body === undefined ? undefined : JSON.stringify(body);
    let sends = 0; // that the server may have seen
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

  /** What is made of each result, or its error. When a shard of a cluster is away its elements alone
   *  are Unavailable, and are asked for again, as the whole call is. */
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
        break; // what is known of the other elements must not get lost
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
    error = new Internal('the answer is no JSON', {}, response.status);
  }
  if (response.ok) return error ? { error } : { answer };
  const seconds = response.headers.get('retry-after') ?? '';
  const isNamed = /^\d+$/.test(seconds);
  return {
    error: errorOf(response.status, answer),
    retryAfter: isNamed ? Number(seconds) * 1000 : undefined,
  };
}

/** A value or an error for each result of a call for many. */
function readResults<T>(answer: any, readOne: (result: any) => T): (T | DetentError)[] {
  return answer.results.map((result: any) =>
    result.error ? errorOf(result.error.status ?? 0, result.error) : readOne(result));
}
