// all_calls.mjs URL: makes each call of the client once, with all arguments, for openapi_test.py. It
// prints each result as a line of JSON: {"call": NAME, "value": RESULT}.
import { Client } from '../../../clients/typescript/dist/index.js';

const now = new Date();
const key = { queue: 'q', key: 'k' };
const bytes = new Uint8Array([255]);
const backoff = { initial: 1_000, max: 60_000 };
const rules = { priority: 7, maxAttempts: 2, visibilityTimeout: 30_000, backoff };
const task = {
  onKey: 'replace', maxWait: 60_000,
  queue: 'q', payload: { n: 1 }, delay: 1_000, key: 'k', ...rules, webhook: 'http://a/',
  headers: { 'X-A': 'b' },
};
const schedule = {
  queue: 'q', payload: 1, cron: '* * * * *', ...rules, timeZone: 'UTC', gap: 'skip',
  repeat: 'first', count: 5, start: now, end: now, jitter: 1_000, misfire: 'all',
  misfireGrace: 1_000, misfireLimit: 5, overlap: 'skip',
};
const settings = {
  paused: true, maxAttempts: 2, visibilityTimeout: 30_000, backoff, retention: 1_000,
  keyRetention: 1_000, maxTasks: 5, maxBytes: 5, rate: 5, concurrency: 5, webhook: 'http://a/',
  sink: 's', partitions: 2,
};
const calendar = { every: 1, unit: 'day', month_end: 'skip' };

const client = new Client(process.argv[2], { retryFor: 0 });
const orNull = (_, member) => (member === undefined ? null : member); // JSON would leave it out
const say = async (call, result) =>
  console.log(JSON.stringify({ call, value: await result }, orNull));

await say('schedule', client.schedule(task));
const other = { queue: 'q', payload: bytes, dueAt: now };
await client.schedule(other);
await say('scheduleMany', client.scheduleMany([task, other]));
await say('get', client.get('256'));
await client.get(key);
await say('list', client.list(
  { queue: 'q', state: 'dead', key: 'k', dueAfter: now, dueBefore: now, limit: 5 }));
await client.list({ cursor: 'c' });
await client.cancel('256');
await client.cancel(key);
await client.cancelMany(['1', '2']);
await client.cancelMany([key]);
for (const name of ['256', key]) {
  await say('move', client.move(name, { delay: 1_000 }));
  await client.move(name, { dueAt: now });
  await say('moveMany', client.moveMany([name], { delay: 1_000 }));
  await client.moveMany([name], { dueAt: now });
}
await say('runNow', client.runNow('256'));
await say('lease', client.lease(
  'q', { max: 5, wait: 1_000, visibilityTimeout: 30_000, worker: 'w' }));
await say('complete', client.complete(['1-1', '1-2']));
await say('fail', client.fail(['1-1'], { error: 'e', delay: 1_000 }));
await say('fail', client.fail(['1-1'], { error: 'e', final: true }));
await say('extend', client.extend(['1-1'], 30_000));
await say('release', client.release(['1-1'], { delay: 1_000, priority: 7 }));
await say('queues', client.queues());
await say('queue', client.queue('q'));
await say('changeQueue', client.changeQueue('q', settings));
await client.removeQueue('q');
await say('pause', client.pause('q'));
await say('resume', client.resume('q'));
await say('purge', client.purge('q'));
await say('redrive', client.redrive('q'));
await say('putSchedule', client.putSchedule('s', schedule));
await client.putSchedule('s', { queue: 'q', payload: bytes, every: 60_000, anchor: now });
await client.putSchedule('s', { queue: 'q', calendar });
await say('getSchedule', client.getSchedule('s'));
await say('schedules', client.schedules());
await say('nextOccurrences', client.nextOccurrences('s', 3));
await say('pauseSchedule', client.pauseSchedule('s'));
await say('resumeSchedule', client.resumeSchedule('s'));
await say('triggerSchedule', client.triggerSchedule('s'));
await client.removeSchedule('s');
await say('stats', client.stats());
