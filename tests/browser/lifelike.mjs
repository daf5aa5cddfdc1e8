// Fills a server with tasks that a shop could have: orders to cancel, mails, failing webhooks, reports.
// For the tests and for the pictures in docs/images: `node lifelike.mjs http://127.0.0.1:7070`.
import { pathToFileURL } from 'node:url';

export function client(url) {
  return async (method, path, body) => {
    const response = await fetch(url + path, { method, body: body === undefined ? undefined : JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  };
}

/** Returns a generator of pseudo-random numbers, which are the same in each run. */
function makeRandom(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

const NAMES = ['ada', 'grace', 'edsger', 'barbara', 'donald', 'tony', 'frances', 'alan'];

function tasksOf(queue, n, delayOf, payloadOf, more = {}) {
  return Array.from({ length: n }, (_, i) => ({ queue, delay_ms: Math.round(delayOf(i)), payload: payloadOf(i), ...more }));
}

async function failSome(call, queue, error, delay) {
  const { tasks } = await call('POST', `/v1/queues/${queue}/lease`, { max: 6, worker: 'hooks-2' });
  if (tasks.length > 0) await call('POST', '/v1/leases/fail', { leases: tasks.map(({ lease }) => lease), error, delay });
}

export async function fill(url, { scale = 1 } = {}) {
  const call = client(url);
  const random = makeRandom(7);
  const name = () => NAMES[Math.floor(random() * NAMES.length)];
  const hour = 3_600_000;
  const batches = [
    tasksOf('orders.cancel', 900 * scale, () => random() ** 2 * 0.5 * hour + 2_000, (i) => ({ order: 1000 + i, why: 'not paid' })),
    tasksOf('mail', 1400 * scale, () => random() ** 3 * 20 * hour + 1_000, () => ({ to: `${name()}@example.org`, template: 'reminder' })),
    tasksOf('reminders', 2000 * scale, () => random() * 40 * 24 * hour, () => ({ user: name(), days: 3 })),
    tasksOf('subscriptions.renew', 1200 * scale, () => (1 + random() * 11) * 30 * 24 * hour, (i) => ({ subscription: i })),
    tasksOf('hooks', 12, () => 0, (i) => ({ url: `https://shop.example/hook/${i}` }), { max_attempts: 2, backoff: { initial: '4m', max: '1h' } }),
    tasksOf('thumbnails', 40, () => 0, (i) => ({ image: `img-${i}.jpg` })),
    tasksOf('exports', 6, () => 0, (i) => ({ report: i })),
  ];
  for (const batch of batches) {
    for (let i = 0; i < batch.length; i += 10_000) await call('POST', '/v1/tasks/batch', batch.slice(i, i + 10_000));
  }
  await failSome(call, 'hooks', 'connect: no route to host', '1ms');
  await call('POST', '/v1/queues/hooks/lease', { max: 6, wait: '1s', worker: 'hooks-2' })
    .then(({ tasks }) => call('POST', '/v1/leases/fail', { leases: tasks.map(({ lease }) => lease), error: 'HTTP 503 Service Unavailable' }));
  await failSome(call, 'hooks', 'HTTP 503 Service Unavailable');
  await call('POST', '/v1/queues/exports/lease', { max: 4, worker: 'exporter-1', visibility_timeout: '30m' });
  await call('POST', '/v1/queues/thumbnails/pause');
  await call('PATCH', '/v1/queues/mail', { rate: 50 });
  await call('PATCH', '/v1/queues/exports', { concurrency: 4, retention: '1d' });
  const put = (schedule, body) => call('PUT', '/v1/schedules/' + schedule, body);
  await put('month-end-report', { cron: '0 9 LW * *', time_zone: 'America/New_York', queue: 'reports', payload: { kind: 'month' } });
  await put('cleanup', { every: '15m', queue: 'housekeeping' });
  await put('invoices', { calendar: { every: 1, unit: 'month', month_end: 'clamp' }, anchor: '2026-01-31T08:00:00Z', time_zone: 'Europe/Berlin', queue: 'invoices' });
  await put('backup', { cron: '30 2 * * *', time_zone: 'Asia/Shanghai', queue: 'backups', overlap: 'skip' });
  await call('POST', '/v1/schedules/cleanup/trigger');
  await call('POST', '/v1/schedules/backup/pause');
}

/** Runs workers and producers for `seconds`. */
export async function work(url, seconds) {
  const call = client(url);
  const end = Date.now() + seconds * 1_000;
  const worker = async (queue) => {
    while (Date.now() < end) {
      const { tasks } = await call('POST', `/v1/queues/${queue}/lease`, { max: 20, wait: '1s', worker: queue + '-1' });
      if (tasks.length > 0) await call('POST', '/v1/leases/complete', { leases: tasks.map(({ lease }) => lease) });
    }
  };
  const producer = async () => {
    while (Date.now() < end) {
      const n = 20 + Math.round(15 * Math.sin(Date.now() / 4_000));
      await call('POST', '/v1/tasks/batch', tasksOf('orders.cancel', n, () => 500 + Math.random() * 20_000, (i) => ({ order: i })));
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  };
  await Promise.all([worker('orders.cancel'), worker('mail'), worker('orders.cancel'), producer()]);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , url, seconds = '0'] = process.argv;
  await fill(url);
  await work(url, Number(seconds));
}
