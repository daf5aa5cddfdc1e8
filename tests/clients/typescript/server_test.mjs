// Tests the compiled TypeScript client and worker with the real server, which some tests kill or
// stop. The tests check which events happened and how often, but never when.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import * as detent from '../../../clients/typescript/dist/index.js';
import { RealServer } from './real_server.mjs';

const { Client, Worker } = detent;
const names = ['a', 'A-+/;:.$_()z9', 'q'.repeat(200), '/', 'a//b', '$(x)'];
const payloads = [null, true, 0, -1, 2 ** 53, 1.5, '', 'é\n"\\\u2028\0🕰', [], {},
  { '': [{ a: null }] }, new Uint8Array(), new Uint8Array([0, 255, 13, 10]), 'x'.repeat(60_000)];

/** A server and a client, and what makes workers that are stopped before the server. */
async function withServer(t, ...flags) {
  const server = await new RealServer(...flags).start();
  const client = new Client(server.url, { retryFor: 60_000 });
  const workers = [];
  t.after(async () => {
    await Promise.all(workers.map((worker) => worker.stop(0)));
    await server.close();
  });
  const workerOf = (handler, options, its = client) => {
    workers.push(new Worker(its, 'q', handler, { wait: 1_000, ...options }));
    return workers.at(-1);
  };
  return { server, client, workerOf };
}

/** Waits until the condition is true. */
async function until(isSo) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A promise and what resolves it. */
function signal() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

test('a task goes through all verbs', async (t) => {
  const { client } = await withServer(t);
  const wanted = { queue: 'q', payload: { n: 1 }, delay: '30d', key: 'k-1', priority: 7 };
  const task = await client.schedule(wanted);
  assert.deepEqual([task.queue, task.state, task.wasThere], ['q', 'scheduled', false]);
  assert.ok((await client.schedule(wanted)).wasThere);
  await assert.rejects(client.schedule({ ...wanted, payload: { n: 2 } }), detent.Conflict);
  const found = await client.get({ queue: 'q', key: 'k-1' });
  assert.deepEqual([found.id, found.payload, found.priority], [task.id, { n: 1 }, 7]);
  assert.deepEqual(found.dueAt, task.dueAt);
  assert.deepEqual(await client.get(task.id), found);
  const later = new Date(task.dueAt.getTime() + 1);
  assert.deepEqual((await client.move(task.id, { dueAt: later })).dueAt, later);
  const page = await client.list({ queue: 'q', dueAfter: later, dueBefore: '9000-01-01T00:00:00Z' });
  assert.deepEqual(page.tasks.map(({ id }) => id), [task.id]);
  assert.equal((await client.runNow(task.id)).state, 'ready');
  let [leased] = await client.lease('q', { visibilityTimeout: 60_000, worker: 'w' });
  assert.deepEqual([leased.id, leased.attempt, leased.key], [task.id, 1, 'k-1']);
  await assert.rejects(client.cancel(task.id), detent.Conflict);
  assert.deepEqual(await client.extend([leased.lease], 120_000), ['done']);
  assert.deepEqual(await client.release([leased.lease], { priority: 1 }), ['done']);
  [leased] = await client.lease('q');
  assert.deepEqual(await client.fail([leased.lease], { error: 'no\nroute', delay: 0 }), ['done']);
  [leased] = await client.lease('q', { wait: '5s' });
  assert.equal(leased.attempt, 2);
  assert.equal((await client.get(task.id)).lastError, 'no\nroute');
  assert.deepEqual(await client.complete([leased.lease, '1-1']), ['done', 'conflict']);
  await assert.rejects(client.get(task.id), detent.NotFound);
});

test('cancelling and moving many', async (t) => {
  const { client } = await withServer(t);
  const ids = [];
  for (const n of [0, 1, 2]) {
    ids.push((await client.schedule({ queue: 'q', payload: n, delay: '60s', key: `${n}` })).id);
  }
  const moved = await client.moveMany([ids[0], '1'], { delay: '1h' });
  assert.equal(moved[0].id, ids[0]);
  assert.equal(moved[1].constructor, detent.NotFound);
  const keys = ['0', '2', 'none'].map((key) => ({ queue: 'q', key }));
  const results = await client.cancelMany(keys);
  assert.deepEqual(results.slice(0, 2), [null, null]);
  assert.equal(results[2].constructor, detent.NotFound);
  await client.cancel(ids[1]);
  assert.deepEqual((await client.list()).tasks, []);
  await assert.rejects(client.cancelMany([keys[0], ids[0]]), TypeError);
});

test('ten thousand at once, and read back by pages', async (t) => {
  const { client } = await withServer(t);
  const tasks = Array.from({ length: 10_000 },
    (_, n) => ({ queue: 'q', payload: n, delay: '1h', key: `k${n}` }));
  const first = await client.scheduleMany(tasks);
  assert.equal(new Set(first.map(({ id }) => id)).size, 10_000);
  const again = await client.scheduleMany(tasks); // like a repeat after a lost answer
  assert.deepEqual(again.map(({ id }) => id), first.map(({ id }) => id));
  assert.ok(again.every(({ wasThere }) => wasThere));
  await assert.rejects(client.scheduleMany([...tasks, { queue: 'q' }]), detent.TooLarge);
  const seen = [];
  let cursor;
  do {
    const page = await client.list({ queue: 'q', limit: 1000, cursor });
    seen.push(...page.tasks.map(({ payload }) => payload));
    ({ cursor } = page);
  } while (cursor !== null);
  assert.deepEqual(seen.sort((a, b) => a - b), tasks.map(({ payload }) => payload));
});

test('odd names and payloads come back as they went', async (t) => {
  const { client } = await withServer(t);
  for (const name of names) {
    const key = 'é?#%"🕰';
    await client.schedule({ queue: name, payload: { queue: name }, key });
    assert.equal((await client.queue(name)).ready, 1);
    await client.get({ queue: name, key });
    const [leased] = await client.lease(name);
    assert.deepEqual([leased.queue, leased.payload], [name, { queue: name }]);
  }
  for (const payload of payloads) {
    await client.schedule({ queue: 'q', payload });
    const [leased] = await client.lease('q');
    assert.deepEqual(leased.payload, payload);
  }
  for (const queue of ['', '-a', 'a b', 'é', 'q'.repeat(201)]) {
    await assert.rejects(client.schedule({ queue }), (error) =>
      error instanceof detent.InvalidArgument && error.field === 'queue');
  }
});

test('queues and schedules', async (t) => {
  const { client } = await withServer(t);
  const limited = await client.changeQueue('q', { maxTasks: 1, retention: '1d' });
  assert.equal(limited.settings.max_tasks, 1);
  await client.schedule({ queue: 'q', delay: '60s' });
  await assert.rejects(client.schedule({ queue: 'q' }), detent.ResourceExhausted);
  const queue = await client.changeQueue('q', { maxTasks: null, visibilityTimeout: 1500 });
  assert.equal(queue.settings.visibility_timeout_ms, 1500);
  assert.equal((await client.pause('q')).settings.paused, true);
  assert.equal((await client.resume('q')).settings.paused, false);
  assert.deepEqual((await client.queues()).map((one) => [one.name, one.scheduled]), [['q', 1]]);
  assert.deepEqual([await client.redrive('q'), await client.purge('q')], [0, 1]);
  const schedule = await client.putSchedule('s/1', {
    queue: 'q', payload: [1], cron: '0 9 LW * *', timeZone: 'Asia/Shanghai', jitter: 60_000 });
  assert.deepEqual([schedule.name, schedule.state], ['s/1', 'active']);
  assert.deepEqual((await client.nextOccurrences('s/1', 3))[0], schedule.nextAt);
  assert.deepEqual(await client.getSchedule('s/1'), schedule);
  assert.deepEqual((await client.schedules()).map(({ name }) => name), ['s/1']);
  assert.equal((await client.pauseSchedule('s/1')).state, 'paused');
  assert.equal((await client.resumeSchedule('s/1')).state, 'active');
  const { id } = await client.triggerSchedule('s/1');
  assert.deepEqual((await client.get(id)).payload, [1]);
  await client.removeSchedule('s/1');
  await assert.rejects(client.getSchedule('s/1'), detent.NotFound);
  assert.equal((await client.stats()).tasks.leased, 0);
  await assert.rejects(client.removeQueue('q'), detent.Conflict);
});

test('the result of a handler is reported', async (t) => {
  const { client, workerOf } = await withServer(t);
  await client.schedule({ queue: 'q', payload: 'good' });
  const bad = await client.schedule({ queue: 'q', payload: 'bad', maxAttempts: 1 });
  const later = await client.schedule({ queue: 'q', payload: 'later' });
  const overdue = await client.schedule({ queue: 'q', payload: 'overdue', maxAttempts: 1 });
  const useless = await client.schedule({ queue: 'q', payload: 'useless' });
  const handle = ({ payload }) => {
    if (payload === 'overdue') throw new detent.Retry('late', -5);
    if (payload === 'bad') throw new TypeError('no \ud800 route');
    if (payload === 'later') throw new detent.Retry('busy', '1h');
    if (payload === 'useless') throw new detent.Dead('no such order');
  };
  workerOf(handle, { concurrency: 2 }).start();
  await until(async () => (await client.get(bad.id)).state === 'dead');
  assert.equal((await client.get(bad.id)).lastError, 'TypeError: no ? route');
  await until(async () => (await client.get(later.id)).attempts === 1);
  assert.equal((await client.get(later.id)).lastError, 'busy');
  await until(async () => (await client.get(overdue.id)).lastError === 'late');
  await until(async () => (await client.get(useless.id)).state === 'dead');
  assert.equal((await client.get(useless.id)).lastError, 'no such order');
  await until(async () => (await client.stats()).counters.completed === 1);
});

test('a handler longer than the visibility timeout keeps its task', async (t) => {
  const { server, client, workerOf } = await withServer(t);
  for (const n of [0, 1, 2]) await client.schedule({ queue: 'q', payload: n });
  let extensions = 0;
  const enough = signal();
  class Counting extends Client {
    async report(verb, ...call) {
      const results = await super.report(verb, ...call);
      // One extension for each third of the timeout, so the handler takes longer than the timeout.
      if (verb === 'extend' && ++extensions === 5) enough.resolve();
      return results;
    }
  }
  const runs = [];
  const handle = async ({ payload }) => {
    runs.push(payload);
    if (payload === 0) await enough.promise;
  };
  const options = { prefetch: 2, visibilityTimeout: 3_000 };
  workerOf(handle, options, new Counting(server.url)).start();
  await until(async () => (await client.stats()).counters.completed === 3);
  const { counters } = await client.stats();
  assert.deepEqual([runs, counters.leases_expired, counters.conflicts], [[0, 1, 2], 0, 0]);
});

test('a stop releases unbegun tasks and waits for the others', async (t) => {
  const { client, workerOf } = await withServer(t);
  await client.scheduleMany(Array.from({ length: 10 }, (_, n) => ({ queue: 'q', payload: n })));
  const goOn = signal();
  const [done, taken] = [[], []];
  const handle = async ({ id }) => {
    await goOn.promise;
    done.push(id);
  };
  const first = workerOf(handle, { concurrency: 2, prefetch: 8 });
  first.start();
  await until(async () => (await client.queue('q')).leased === 10);
  const stopping = first.stop();
  await until(async () => (await client.queue('q')).ready === 8);
  workerOf((task) => taken.push(task), { concurrency: 4 }).start();
  await until(() => taken.length === 8);
  goOn.resolve();
  await stopping;
  await until(async () => (await client.stats()).counters.completed === 10);
  assert.equal(new Set([...done, ...taken.map(({ id }) => id)]).size, 10);
  assert.ok(taken.every(({ attempt }) => attempt === 1));
});

test('a handler that outlives the grace is abandoned and its task released', async (t) => {
  const { client, workerOf } = await withServer(t);
  await client.schedule({ queue: 'q' });
  const [began, abandoned] = [signal(), signal()];
  const worker = workerOf(async (task) => {
    task.abandoned.addEventListener('abort', abandoned.resolve);
    began.resolve();
    await abandoned.promise;
  });
  worker.start();
  await began.promise;
  await worker.stop(0);
  await abandoned.promise;
  const [leased] = await client.lease('q', { wait: '5s' });
  assert.equal(leased.attempt, 1);
});

test('an idle worker stops immediately and holds no task', async (t) => {
  const { client, workerOf } = await withServer(t);
  const worker = workerOf(() => {}, { wait: 60_000 });
  worker.start();
  await until(async () => (await client.stats()).waiting_workers === 1);
  await worker.stop();
  await until(async () => (await client.stats()).waiting_workers === 0);
  await client.schedule({ queue: 'q' });
  assert.equal((await client.lease('q')).length, 1);
});

test('a server killed twice loses nothing and repeats only open leases', async (t) => {
  const { server, client, workerOf } = await withServer(t);
  const [count, concurrency, prefetch, kills] = [600, 4, 8, 2];
  const runs = new Map();
  const reached = [signal(), signal()];
  const handle = ({ payload }) => {
    runs.set(payload, (runs.get(payload) ?? 0) + 1);
    reached.forEach(({ resolve }, kill) => runs.size >= ((kill + 1) * count) / 3 && resolve());
  };
  await client.scheduleMany(Array.from({ length: count },
    (_, n) => ({ queue: 'q', payload: n, key: `${n}` })));
  const worker = workerOf(handle,
    { concurrency, prefetch, visibilityTimeout: 60_000, onError: () => {} });
  worker.start();
  for (const { promise } of reached) {
    await promise;
    await server.kill();
    await server.start();
  }
  await until(async () => {
    const { tasks } = await client.stats();
    return tasks.scheduled + tasks.ready + tasks.leased + tasks.dead === 0;
  });
  await worker.stop();
  assert.equal(runs.size, count);
  const all = [...runs.values()].reduce((sum, n) => sum + n, 0);
  assert.ok(all - count <= kills * (concurrency + prefetch), `${all - count} were run again`);
});

test('scheduling continues after a kill', async (t) => {
  const { server, client } = await withServer(t);
  let isOver = false;
  const killer = (async () => {
    for (let kill = 0; kill < 3; ++kill) {
      await server.kill();
      await server.start();
    }
    isOver = true;
  })();
  let made = 0;
  while (!isOver) {
    await client.schedule({ queue: 'q', payload: made, delay: '1h', key: `${made}` });
    ++made;
  }
  await killer;
  assert.equal((await client.queue('q')).scheduled, made);
});

test('a delivery of the server is genuine', async (t) => {
  const { server, client } = await withServer(t, '--webhook-allow', '127.0.0.0/8');
  const arrived = signal();
  const receiver = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    response.writeHead(204).end();
    arrived.resolve({ headers: request.headers, body: Buffer.concat(parts) });
  });
  await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  t.after(() => receiver.close());
  const webhook = `http://127.0.0.1:${receiver.address().port}/`;
  const { id } = await client.schedule({ queue: 'q', payload: { é: '🕰' }, webhook });
  const { headers, body } = await arrived.promise;
  const key = fs.readFileSync(path.join(server.data, 'webhook.key'), 'utf8').trim();
  assert.equal(detent.verifyWebhook(key, headers, body), `task_${id}`);
  assert.throws(() => detent.verifyWebhook(key, headers, `${body} `), detent.InvalidSignature);
});
