// A page that gets its figures from a history and a stream: first the last hour, then each second. The
// test simulates the server's answers, so that it knows the expected figures.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { shows, startServer, until, withPage } from './harness.mjs';

const us = (p50, p99) => ({ p50, p99, max: p99 });

function point(at, more = {}) {
  return { at: new Date(at).toISOString(), span_ms: 10_000, accepted: 1_000, fired: 500, leased: 400, completed: 300,
    failed: 1, died: 0, late: { before_start: 0, engine: 0, limit: 2, worker: 1 }, tasks: { scheduled: 42, ready: 3, leased: 2, dead: 1 }, loaded: 5, waiting_workers: 1,
    lateness_us: us(700, 9_000), commit_us: us(2_000, 4_000), ...more };
}

const event = (data) => `event: stats\nid: 1\ndata: ${JSON.stringify(data)}\n\n`;
const json = (body) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });

describe('A server with a history and a stream', () => {
  let server;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/v1/tasks', { queue: 'q', delay: '1h' });
  });
  after(() => server.stop());

  test('is shown over its last hour, and as its stream tells', async () => {
    await withPage(server, 'now', async (page) => {
      const now = Date.now();
      await page.route('**/v1/stats?queues=0', async (route) => {
        const stats = await (await route.fetch()).json();
        await route.fulfill(json({ ...stats, tasks: { scheduled: 1, ready: 0, leased: 0, dead: 0 }, queue_count: 77 }));
      });
      await page.route('**/v1/stats/history?span=1h', (route) => route.fulfill(json({ step_ms: 10_000,
        points: Array.from({ length: 360 }, (_, i) => point(now - (360 - i) * 10_000)) })));
      const streamed = { ...point(now, { span_ms: 1_000, accepted: 123, lateness_us: null }),
        recent: { span_ms: 10_000, lateness_us: us(1_500, 25_000), commit_us: us(3_000, 5_000) } };
      // The format of the stream also allows comments, other events, and both kinds of line ends.
      const body = `: hello\n\n${event(streamed)}event: task\ndata: {"id":"1"}\r\n\r\n`;
      let opened = 0;
      await page.route('**/v1/events?types=stats', (route) => {
        assert.equal(route.request().headers().accept, 'text/event-stream');
        ++opened;
        return route.fulfill({ status: 200, contentType: 'text/event-stream', body });
      });
      await page.reload();
      await shows(page, '.tile', /scheduled\s*42/);
      await shows(page, '.tile', /accepted\s*123\/s/);
      await shows(page, '.tile', /lateness p50\s*1\.5\sms/);
      await shows(page, '.tile', /lateness p99\s*25\sms/);
      await shows(page, '.tile', /store commit p99\s*5\sms/);
      await shows(page, 'main', /the last (1\sh|59\smin)/);
      await shows(page, 'main', '77 queues');
      // 60 steps of ten seconds, and the points from the stream.
      await shows(page, '.verdict', /In the last 10\smin \d+ tasks were handed out more than a second late: 1[12]\d held back by a limit, [56]\d no worker asked/);
      // Without a pointer, the legends have the last values.
      await shows(page, '.u-series', /accepted\s*123\/s/);
      await shows(page, '.u-series', /failed attempts\s*1\.0\/s/);
      await page.getByRole('button', { name: '5 min', exact: true }).click();
      await shows(page, 'main', /the last (5\smin|4\smin 5\d\ss)/);
      await page.route('**/v1/stats/history?span=24h&step=5m', (route) => route.fulfill(json({ step_ms: 300_000,
        points: Array.from({ length: 288 }, (_, i) => point(Date.now() - (287 - i) * 300_000, { span_ms: 300_000, accepted: i === 200 ? 9_000_000 : 3_000 })) })));
      await page.getByRole('button', { name: '24 h' }).click();
      await shows(page, 'main', /the last 23\sh 5\d\smin/);
      await shows(page, '.note', /The peak of 30\sk\/s at .* is cut off\./);
      await page.getByRole('button', { name: 'Show it' }).click();
      await shows(page, '.note', /The peak of .* is shown\./);
      // After the stream has ended, the page opens it again.
      await until('opened again', () => opened >= 2);
    });
  });

  test('has its tasks that wait counted, not those that are due just now', () => withPage(server, 'now', async (page) => {
    const queue = (name, age) => ({ queue: name, scheduled: 0, ready: 2, leased: 0, dead: 0, oldest_ready_age_ms: age, last_handed_out_age_ms: null, settings: { paused: name === 'stuck-9' } });
    await page.route('**/v1/queues?by=age&limit=1000', (route) => {
      const queues = [...Array.from({ length: 10 }, (_, i) => queue(`stuck-${i}`, 60_000 - i)), queue('quick', 20)];
      return route.fulfill(json({ queues }));
    });
    await page.reload();
    await shows(page, '.verdict', '18 tasks are due and not taken.');
    await shows(page, '.verdict li', 'and 5 more queues.');
    await shows(page, '.verdict li', '1 paused queue holds 2 ready tasks: stuck-9.');
  }));

  test('whose stream breaks is asked as before', () => withPage(server, 'now', async (page) => {
    await page.route('**/v1/stats?queues=0', async (route) => {
      const stats = await (await route.fetch()).json();
      await route.fulfill(json({ ...stats, queue_count: 1 }));
    });
    await page.route('**/v1/stats/history?span=1h', (route) => route.abort());
    await page.reload();
    await shows(page, '.status', 'live');
    await server.call('POST', '/v1/tasks', { queue: 'q', delay: '1h' });
    await shows(page, '.tile', /scheduled\s*2/);
  }, { expected: [/ERR_FAILED/] }));
});
