// Tests the compiled TypeScript client with a scripted server: which calls are repeated, which
// error
// is thrown, and which bytes are sent. No test waits, because the client uses a clock of the test.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import { test } from 'node:test';

import * as detent from '../../../clients/typescript/dist/index.js';

const task = { id: '256', queue: 'q', state: 'scheduled', due_at: '2026-01-02T03:04:05.678Z' };
const done = { body: task };
const busy = {
  status: 503, body: { type: 'urn:detent:error:unavailable', status: 503, detail: 'busy' } };
const problem = (status, kind, more) => ({
  status, body: { type: `urn:detent:error:${kind}`, status, detail: 'no', ...more } });

/** Answers one request each, or drops its connection ('drop'), and notes what it was asked. A function
 *  at the end answers all further ones. */
async function script(t, ...answers) {
  const answerOf = typeof answers.at(-1) === 'function' ? answers.pop() : () => undefined;
  const requests = [];
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: Buffer.concat(parts).toString() });
    const answer = answers.shift() ?? answerOf(url, requests.at(-1).body);
    if (answer === 'drop') return request.socket.destroy();
    if (answer === 'silence') return undefined;
    const { status = 200, headers: more = {}, body } = answer;
    response.writeHead(status, more).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => new Promise((resolve) => {
    server.closeAllConnections();
    server.close(resolve);
  });
  t.after(close);
  return { requests, close, url: `http://127.0.0.1:${server.address().port}` };
}

/** A client and the pauses it makes: they pass at once, on a clock of their own. */
function clientOf(server, retryFor = 100_000) {
  const client = new detent.Client(server.url, { retryFor });
  const pauses = [];
  client.http.now = () => pauses.reduce((sum, pause) => sum + pause, 0);
  client.http.wait = async (pause) => void pauses.push(pause);
  return { client, pauses };
}

test('a 503 is repeated after the seconds it names', async (t) => {
  const server = await script(t, { status: 503, headers: { 'retry-after': '7' }, body: {} }, busy, done);
  const { client, pauses } = clientOf(server);
  assert.equal((await client.schedule({ queue: 'q', key: 'k' })).id, '256');
  assert.equal(pauses[0], 7_000);
  assert.ok(pauses[1] <= 200);
  assert.equal(server.requests[0].body, server.requests[2].body);
});

test('the answer of a proxy without a server counts as 503', async (t) => {
  for (const status of [408, 502, 504]) {
    const server = await script(t, { status, headers: { 'retry-after': '7' }, body: '<html>' }, done);
    const { client, pauses } = clientOf(server);
    assert.equal((await client.schedule({ queue: 'q', key: 'k' })).id, '256');
    assert.deepEqual(pauses, [7_000]);
  }
});

test('a Retry-After of zero does not shorten the pauses', async (t) => {
  const none = { status: 503, headers: { 'retry-after': '0' }, body: {} };
  const { client, pauses } = clientOf(await script(t, none, none, none, done));
  await client.move('256', { delay: '1h' });
  assert.ok(pauses[0] >= 50 && pauses[2] >= 200, pauses.join());
});

test('a lost call is repeated if it may run twice', async (t) => {
  const server = await script(t, 'drop', done);
  const { client, pauses } = clientOf(server);
  await client.move('256', { delay: '1h' });
  assert.equal(server.requests.length, 2);
  assert.equal(pauses.length, 1);
});

test('a call that must not run twice is sent once', async (t) => {
  const calls = [
    (client) => client.schedule({ queue: 'q' }),
    (client) => client.scheduleMany([{ queue: 'q', key: 'k' }, { queue: 'q' }]),
    (client) => client.triggerSchedule('s'),
    (client) => client.purge('q'),
    (client) => client.redrive('q'),
  ];
  for (const call of calls) {
    for (const answer of [busy, 'drop']) {
      const server = await script(t, answer);
      const { client, pauses } = clientOf(server);
      await assert.rejects(call(client), (error) =>
        error instanceof detent.Unavailable && !error.isRepeated);
      assert.equal(server.requests.length, 1);
      assert.deepEqual(pauses, []);
    }
  }
});

test('any call is repeated while no server listens', async (t) => {
  const gone = await script(t);
  await gone.close();
  const { client, pauses } = clientOf(gone, 20_000);
  await assert.rejects(client.schedule({ queue: 'q' }), (error) =>
    error instanceof detent.Unavailable && !error.isRepeated); // the request was never sent
  assert.ok(pauses.length > 4);
  assert.ok(client.http.now() <= 20_000);
});

test('no pause ends after the time limit', async (t) => {
  const server = await script(t, { status: 503, headers: { 'retry-after': '101' }, body: {} });
  const { client, pauses } = clientOf(server);
  await assert.rejects(client.get('1'), detent.Unavailable);
  assert.deepEqual(pauses, []);
});

test('the error of a repeated call has isRepeated', async (t) => {
  const server = await script(t, 'drop', problem(404, 'not_found'));
  const { client } = clientOf(server);
  await assert.rejects(client.cancel('256'), (error) =>
    error instanceof detent.NotFound && error.isRepeated);
});

test('a signal ends a call, also during its pause between tries', async (t) => {
  const server = await script(t, 'silence', { ...busy, headers: { 'retry-after': '9' } });
  const client = new detent.Client(server.url);
  const reason = new Error('enough');
  const first = new AbortController();
  const waiting = client.get('1', { signal: first.signal });
  while (server.requests.length === 0) await new Promise(setImmediate);
  first.abort(reason);
  await assert.rejects(waiting, reason);
  const second = new AbortController();
  const { wait } = client.http;
  client.http.wait = (pause, signal) => {
    queueMicrotask(() => second.abort(reason));
    return wait(pause, signal);
  };
  await assert.rejects(client.get('1', { signal: second.signal }), reason);
  await assert.rejects(client.get('1', { signal: second.signal }), reason);
  assert.equal(server.requests.length, 2);
});

test('a call to a silent server ends after the time-out', async (t) => {
  const server = await script(t, 'silence');
  const client = new detent.Client(server.url, { timeout: 20, retryFor: 0 });
  await assert.rejects(client.get('1'), /no answer within 20 ms/);
});

test('each error has its class and the problem', async (t) => {
  const kinds = [[400, 'invalid_argument', detent.InvalidArgument],
    [403, 'forbidden', detent.Forbidden], [404, 'not_found', detent.NotFound],
    [409, 'conflict', detent.Conflict], [413, 'too_large', detent.TooLarge],
    [429, 'resource_exhausted', detent.ResourceExhausted],
    [500, 'data_loss', detent.DataLoss], [500, 'internal', detent.Internal]];
  for (const [status, kind, expected] of kinds) {
    const server = await script(t, problem(status, kind, { field: 'queue' }));
    const { client } = clientOf(server);
    await assert.rejects(client.get('1'), (error) => {
      assert.equal(error.constructor, expected);
      assert.equal(error.name, expected.name);
      assert.deepEqual([error.status, error.field, error.detail, error.message],
        [status, 'queue', 'no', 'queue: no']);
      assert.equal(error.problem.type, `urn:detent:error:${kind}`);
      return true;
    });
  }
});

test('the status decides if the answer has no problem', async (t) => {
  const kinds = [[401, detent.Unauthorized], [405, detent.InvalidArgument],
    [412, detent.Conflict], [501, detent.Internal], [200, detent.Internal]];
  for (const [status, expected] of kinds) {
    const server = await script(t, { status, body: '<html>' });
    const { client } = clientOf(server);
    await assert.rejects(client.get('1'), (error) => error.constructor === expected);
  }
});

test('an element that failed is an error among the results', async (t) => {
  const wrong = problem(400, 'invalid_argument', { field: 'dely' }).body;
  const server = await script(t, { body: { results: [task, { error: wrong }] } });
  const { client } = clientOf(server);
  const [first, second] = await client.scheduleMany([{ queue: 'q' }, { queue: 'q' }]);
  assert.equal(first.id, '256');
  assert.equal(second.constructor, detent.InvalidArgument);
  assert.equal(second.field, 'dely');
});

// If one shard of a cluster is away, a call for many elements is still answered with 200. Only the
// elements of that shard have a 503.
const results = (...each) => ({ body: { results: each } });
const away = { status: 'unavailable', error: busy.body };
const held = { status: 'done' };
const conflict = { status: 'conflict' };
const verbs = [
  (client, leases) => client.complete(leases),
  (client, leases) => client.fail(leases, { error: 'e' }),
  (client, leases) => client.extend(leases, 60_000),
  (client, leases) => client.release(leases),
];

test('leases are repeated until their result is known', async (t) => {
  for (const verb of verbs) {
    const server = await script(t, results(held, away, away), results(away, conflict), busy,
      results(held));
    const { client, pauses } = clientOf(server);
    assert.deepEqual(await verb(client, ['1-1', '1-2', '1-3']), ['done', 'done', 'conflict']);
    const bodies = server.requests.map(({ body }) => JSON.parse(body));
    assert.deepEqual(bodies.map(({ leases }) => leases),
      [['1-1', '1-2', '1-3'], ['1-2', '1-3'], ['1-2'], ['1-2']]);
    for (const body of bodies) assert.deepEqual({ ...body, leases: 0 }, { ...bodies[0], leases: 0 });
    assert.equal(pauses.length, 3);
  }
});

test('a lease of an absent shard is unavailable, and not a conflict', async (t) => {
  for (const verb of verbs) {
    const server = await script(t, results(held, away), () => results(away));
    const { client, pauses } = clientOf(server, 20_000);
    assert.deepEqual(await verb(client, ['1-1', '1-2']), ['done', 'unavailable']);
    assert.ok(pauses.length > 4);
    assert.ok(client.http.now() <= 20_000);
  }
});

test('known results are returned if a repeat fails', async (t) => {
  const broken = { status: 'error', error: problem(500, 'data_loss').body };
  for (const failure of [problem(403, 'forbidden'), problem(500, 'internal')]) {
    const server = await script(t, results(held, away, broken), failure);
    const { client } = clientOf(server);
    assert.deepEqual(await client.complete(['1-1', '1-2', '1-3']),
      ['done', 'unavailable', 'error']);
  }
});

test('tasks are repeated if the call may run twice', async (t) => {
  const missing = { error: busy.body };
  const keyed = [{ queue: 'q', key: 'a' }, { queue: 'q', key: 'b' }];
  const calls = [
    (client) => client.scheduleMany(keyed),
    (client) => client.moveMany(['1', '2'], { delay: '1s' }),
    (client) => client.cancelMany(['1', '2']),
  ];
  for (const call of calls) {
    const server = await script(t, results(missing, task), results(task));
    const { client } = clientOf(server);
    assert.ok(!(await call(client)).some((one) => one instanceof detent.DetentError));
    assert.equal(server.requests.length, 2);
  }
  const repeated = await script(t, results(task, missing),
    results({ error: problem(404, 'not_found').body }));
  const [, error] = await clientOf(repeated).client.cancelMany(['1', '2']);
  assert.ok(error instanceof detent.NotFound && error.isRepeated);
  const once = await script(t, results(missing, task));
  const [first] = await clientOf(once).client.scheduleMany([{ queue: 'q' }, keyed[0]]);
  assert.equal(first.constructor, detent.Unavailable);
});

/** A worker of a server that hands out tasks 1 … count, each once, and answers what becomes of their
 *  leases as `resultOf(verb, lease, howOften)` says. */
async function workWith(t, count, resultOf, handler, { retryFor = 0, ...options } = {}) {
  const asked = {}; // number of calls by verb and lease
  let leased = 0;
  let wantsMore;
  const more = new Promise((resolve) => (wantsMore = resolve));
  const server = await script(t, (url, body) => {
    const verb = url.split('/').at(-1);
    const { max, leases } = JSON.parse(body);
    if (verb !== 'lease') {
      const each = leases.map((lease) => {
        const times = (asked[`${verb} ${lease}`] ?? 0) + 1;
        asked[`${verb} ${lease}`] = times;
        return resultOf(verb, lease, times);
      });
      // Like a cluster: if all elements failed with the same error, the whole call fails.
      return each.every((result) => result === away) ? busy : results(...each);
    }
    if (leased === count) {
      wantsMore();
      return 'silence';
    }
    const tasks = [];
    while (leased < count && tasks.length < max) {
      tasks.push({ ...task, lease: `1-${++leased}`, attempt: 1, payload: leased });
    }
    return { body: { tasks } };
  });
  const errors = [];
  const client = new detent.Client(server.url, { retryFor });
  const worker = new detent.Worker(client, 'q', handler,
    { ...options, onError: (error) => errors.push(error) });
  worker.start();
  return { asked, errors, more, worker };
}
const areUnavailable = (errors) =>
  errors.length > 0 && errors.every((error) => error instanceof detent.Unavailable);

test('a report is repeated until the shard is back', async (t) => {
  for (const verb of ['complete', 'fail']) {
    const { asked, errors, more, worker } = await workWith(t, 2,
      (_, lease, times) => (lease === '1-2' && times < 4 ? away : held),
      () => {
        if (verb === 'fail') throw new Error('no');
      }, { concurrency: 2 });
    await more;
    await worker.stop();
    assert.deepEqual([asked[`${verb} 1-1`], asked[`${verb} 1-2`]], [1, 4]);
    assert.ok(areUnavailable(errors));
  }
});

test('a lease that could not be extended is kept', async (t) => {
  let go;
  const enough = new Promise((resolve) => (go = resolve));
  const abandoned = [];
  const { asked, errors, more, worker } = await workWith(t, 3, (verb, lease, times) => {
    if (verb !== 'extend' || lease !== '1-2') return held;
    if (times === 4) go();
    return times < 4 ? away : held;
  }, async (one) => {
    await enough;
    abandoned.push(one.abandoned.aborted);
  }, { concurrency: 2, prefetch: 1, visibilityTimeout: 300 });
  await more;
  await worker.stop();
  assert.deepEqual(abandoned, [false, false, false]);
  assert.deepEqual([1, 2, 3].map((n) => asked[`complete 1-${n}`]), [1, 1, 1]);
  assert.ok(areUnavailable(errors));
});

test('an extension is not repeated within its call', async (t) => {
  let go;
  const enough = new Promise((resolve) => (go = resolve));
  const { errors, more, worker } = await workWith(t, 1, (verb, _, times) => {
    if (verb === 'extend' && times > 2) go();
    return verb === 'extend' ? away : held;
  }, () => enough, { retryFor: 5_000, visibilityTimeout: 50 });
  await more;
  const told = errors.length;
  await worker.stop();
  assert.ok(told >= 2, 'each call of the worker ends');
  assert.ok(areUnavailable(errors));
});

test('a report ends when the lease has expired', async (t) => {
  const { errors, more, worker } =
    await workWith(t, 1, () => away, () => {}, { visibilityTimeout: 50 });
  await more;
  await worker.stop();
  assert.ok(areUnavailable(errors));
});

test('a stop ends reports after its grace', async (t) => {
  let told;
  const reported = new Promise((resolve) => (told = resolve));
  const { errors, worker } = await workWith(t, 1, (verb) => {
    if (verb === 'complete') told();
    return verb === 'complete' ? away : held;
  }, () => {});
  await reported;
  await worker.stop(0);
  assert.ok(areUnavailable(errors));
});

test('a conflict after an unknown outcome says so', async (t) => {
  const { errors, more, worker } = await workWith(t, 1,
    (_, __, times) => (times === 1 ? away : conflict), () => {});
  await more;
  await worker.stop();
  assert.match(String(errors.at(-1)), /or an earlier report was carried out/);
});

test('an answer without the lease is reported', async (t) => {
  const leased = { body: { tasks: [{ ...task, lease: '1-1', attempt: 1, payload: 1 }] } };
  const server = await script(t, leased, results(), () => 'silence');
  const errors = [];
  const client = new detent.Client(server.url, { retryFor: 0 });
  const worker = new detent.Worker(client, 'q', () => {}, { onError: (error) => errors.push(error) });
  worker.start();
  while (server.requests.length < 3) await new Promise(setImmediate);
  await worker.stop();
  assert.deepEqual(errors.map(({ constructor }) => constructor), [detent.Internal]);
});

test('a task is sent with all its fields', async (t) => {
  const server = await script(t, done);
  const client = new detent.Client(server.url, { token: 't0' });
  await client.schedule({
    queue: 'q', payload: new Uint8Array([0, 255]), dueAt: new Date(1767323045679), key: 'k',
    priority: 1, maxAttempts: 2, visibilityTimeout: 1000.5, backoff: { initial: '1s', max: 60_000 },
    webhook: 'http://a/', headers: { 'X-Aa': 'b' }, delay: undefined });
  const [{ url, headers, body }] = server.requests;
  assert.equal(url, '/v1/tasks');
  assert.equal(headers.authorization, 'Bearer t0');
  assert.deepEqual(JSON.parse(body), {
    queue: 'q', payload_base64: 'AP8=', due_at: 1767323045679, key: 'k', priority: 1,
    max_attempts: 2, visibility_timeout_ms: 1001, backoff: { initial: '1s', max_ms: 60000 },
    webhook: 'http://a/', headers: { 'X-Aa': 'b' } });
});

test('names are encoded in paths, and names that fetch cannot send are refused', async (t) => {
  const server = await script(t, done, done);
  const { client } = clientOf(server);
  await client.move({ queue: 'a/b;c', key: 'ä ?#%/..' }, { delay: '1s' });
  await client.runNow('256');
  assert.equal(server.requests[0].url, '/v1/queues/a%2Fb%3Bc/keys/%C3%A4%20%3F%23%25%2F..');
  assert.equal(server.requests[1].url, '/v1/tasks/256/run');
  for (const name of ['.', '..']) {
    await assert.rejects(client.queue(name), detent.InvalidArgument);
    await assert.rejects(client.cancel({ queue: 'q', key: name }), detent.InvalidArgument);
  }
});

test('a URL that is more than a host is refused', () => {
  for (const url of ['127.0.0.1:7070', 'http://', 'http://a/b', 'http://u@a', 'ftp://a']) {
    assert.throws(() => new detent.Client(url), TypeError);
  }
});

test('a timeout of zero or more than a day is refused', () => {
  for (const timeout of [0, -1, NaN, Infinity, 86_400_001]) {
    assert.throws(() => new detent.Client(undefined, { timeout }), RangeError);
  }
  new detent.Client(undefined, { timeout: 86_400_000 });
});

// The example of Standard Webhooks' specification and libraries.
const key = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const otherKey = 'whsec_' + Buffer.alloc(24, 'x').toString('base64');
const sent = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek', 'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' };
const text = '{"test": 2432232314}';
function verify({ keys = key, headers = {}, body = text, seconds = 1614265330 } = {}) {
  return detent.verifyWebhook(keys, { ...sent, ...headers }, body, { now: seconds * 1000 });
}

test('the published webhook is genuine', () => {
  assert.equal(verify(), 'msg_p5jXN8AQM9LWM0D4loKWxJek');
  assert.equal(detent.verifyWebhook(key, new Headers(sent), Buffer.from(text),
    { now: 1614265330_000 }), 'msg_p5jXN8AQM9LWM0D4loKWxJek');
});

test('one matching key and signature are enough', () => {
  const both = `v1,AAAA ${sent['webhook-signature']}`;
  verify({ keys: [otherKey, key], headers: { 'webhook-signature': both } });
  const { 'webhook-id': id, ...rest } = sent;
  detent.verifyWebhook(key, { ...rest, 'Webhook-Id': id }, text, { now: 1614265330_000 });
});

test('a webhook that was changed is refused', () => {
  const changes = [{ body: text + ' ' }, { seconds: 1614265330 + 301 },
    { seconds: 1614265330 - 301 }, { headers: { 'webhook-id': 'msg_2' } },
    { headers: { 'webhook-timestamp': 'now' } }, { headers: { 'webhook-signature': 'v1,' } },
    { headers: { 'webhook-signature': 'v2,é' } }, { headers: { 'webhook-id': undefined } },
    { keys: otherKey }];
  for (const change of changes) assert.throws(() => verify(change), detent.InvalidSignature);
});

test('an invalid key is an error of the caller', () => {
  for (const keys of ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_%']) {
    assert.throws(() => verify({ keys }), TypeError);
  }
});

test('the signature covers id, timestamp and body', () => {
  const secret = Buffer.from(key.slice(6), 'base64');
  const body = Buffer.from([255]);
  const signed = crypto.createHmac('sha256', secret).update('i.1.').update(body).digest('base64');
  const headers = {
    'webhook-id': 'i', 'webhook-timestamp': '1', 'webhook-signature': `v1,${signed}` };
  assert.equal(detent.verifyWebhook(key, headers, body, { now: 1000 }), 'i');
});
