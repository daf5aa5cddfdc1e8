// The views Tasks and Task: search, the reason for lateness, move, run now and cancel.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { press, shows, startServer, until, withPage } from './harness.mjs';

describe('Tasks', () => {
  let server;
  let ids;
  before(async () => {
    server = await startServer();
    const tasks = Array.from({ length: 250 }, (_, i) => ({ queue: i % 2 ? 'odd' : 'even', delay_ms: 3_600_000 + i * 60_000,
      key: `k-${i}`, payload: { n: i } }));
    ids = (await server.call('POST', '/v1/tasks/batch', tasks)).results.map(({ id }) => id);
  });
  after(() => server.stop());
  const lines = (page) => page.locator('tbody tr').count();

  test('are listed in pages until the end', () => withPage(server, 'tasks', async (page) => {
    await until('a page', async () => await lines(page) === 100);
    const more = page.getByRole('button', { name: 'Show more' });
    await more.click();
    await until('two pages', async () => await lines(page) === 200);
    await more.click();
    await until('all', async () => await lines(page) === 250);
    assert.equal(await more.isVisible(), false);
    await shows(page, 'main', '250 tasks');
  }));

  test('are found by queue, by key and by due time', () => withPage(server, 'tasks', async (page) => {
    await page.getByLabel('Queue', { exact: true }).fill('odd');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await until('those of odd only', async () => await page.locator('td:has-text("even")').count() === 0 && await lines(page) === 100);
    assert.match(page.url(), /queue=odd/);
    await page.getByLabel('Key', { exact: true }).fill('k-7');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await until('one', async () => await lines(page) === 1);
    await shows(page, 'td', '{"n":7}');
    await page.goto(`${server.url}/#/tasks?due_before=${new Date(Date.now() + 3_600_000 + 9.5 * 60_000).toISOString()}`);
    await until('the first ten', async () => await lines(page) === 10);
    await page.goto(`${server.url}/#/tasks?key=none`);
    await shows(page, '.empty', 'No task matches');
  }));

  test('are reached by the search field: an id or a key', () => withPage(server, 'now', async (page) => {
    await page.keyboard.press('/');
    await page.keyboard.type(ids[3]);
    await page.keyboard.press('Enter');
    await shows(page, 'h1', 'Task ' + ids[3]);
    await page.keyboard.press('/');
    await page.locator('#search').fill('k-9');
    await page.keyboard.press('Enter');
    await until('one', async () => await lines(page) === 1);
    await shows(page, 'td', ids[9]);
  }));

  test('are moved and cancelled together', () => withPage(server, 'tasks?queue=even', async (page) => {
    await page.getByLabel(`Choose task ${ids[0]}`, { exact: true }).check();
    await page.getByLabel(`Choose task ${ids[2]}`, { exact: true }).check();
    await shows(page, 'main', '2 tasks chosen');
    await page.getByRole('button', { name: 'Move …' }).click();
    await page.locator('dialog input').fill('2030-01-02T03:04:05');
    await press(page, 'Move');
    await shows(page, '#messages', '2 tasks moved');
    const due = (await server.call('GET', '/v1/tasks/' + ids[2])).due_at;
    assert.equal(new Date(due).getTime(), new Date('2030-01-02T03:04:05').getTime());
    await page.getByLabel(`Choose task ${ids[4]}`, { exact: true }).check();
    await page.getByRole('button', { name: 'Cancel …' }).click();
    await press(page, 'Cancel 1 task');
    await shows(page, '#messages', '1 task cancelled');
    assert.equal((await fetch(`${server.url}/v1/tasks/${ids[4]}`)).status, 404);
  }));
});

describe('A task', () => {
  let server;
  before(async () => { server = await startServer(); });
  after(() => server.stop());

  const schedule = async (body) => (await server.call('POST', '/v1/tasks', body)).id;
  const lease = async (queue) => (await server.call('POST', `/v1/queues/${queue}/lease`, { wait: '5s', worker: 'w-7' })).tasks[0].lease;
  const fail = async (queue, error, more = {}) => server.call('POST', '/v1/leases/fail', { leases: [await lease(queue)], error, ...more });
  const button = (page, name) => page.locator('main').getByRole('button', { name, exact: true });

  test('that failed shows each attempt and when the next one is', async () => {
    const id = await schedule({ queue: 'retried', payload: { a: 1 } });
    await fail('retried', 'no route to host', { delay: '1ms' });
    await fail('retried', 'HTTP 503', { delay: '10m' });
    await withPage(server, 'task/' + id, async (page) => {
      await shows(page, '.verdict', /It failed and waits: its next attempt is in (10|9)\smin/);
      await shows(page, '.verdict', '2 attempts failed. The last one said: “HTTP 503”');
      await shows(page, '.way li.failed', /Attempt 1 failed.*by worker w-7.*no route to host/);
      await shows(page, '.way li.failed', /Attempt 2 failed.*HTTP 503/);
      await shows(page, '.way li.ahead', 'Next attempt');
      await shows(page, 'pre', '"a": 1');
    });
  });

  test('that is dead, leased, paused or done says so in words', async () => {
    const dead = await schedule({ queue: 'deadly', max_attempts: 1 });
    await fail('deadly', 'broken for good');
    const leased = await schedule({ queue: 'busy' });
    await lease('busy');
    const held = await schedule({ queue: 'held' });
    await server.call('POST', '/v1/queues/held/pause');
    await server.call('PATCH', '/v1/queues/kept', { retention: '1h' });
    const done = await schedule({ queue: 'kept' });
    await server.call('POST', '/v1/leases/complete', { leases: [await lease('kept')] });
    await withPage(server, 'task/' + dead, async (page) => {
      await shows(page, '.verdict.bad', 'It is dead: all 1 attempt failed');
      await shows(page, '.verdict', 'broken for good');
      await page.goto(`${server.url}/#/task/${leased}`);
      await shows(page, '.verdict', /Worker w-7 has had it for/);
      assert.equal(await button(page, 'Run now').count(), 0);
      await page.goto(`${server.url}/#/task/${held}`);
      await shows(page, '.verdict', /It has been due for .*: the queue is paused/);
      await page.goto(`${server.url}/#/task/${done}`);
      await shows(page, '.verdict', /It was completed/);
      await shows(page, '.way li', 'Attempt 1 ended');
    });
  });

  test('is moved to tomorrow with two presses', async () => {
    const id = await schedule({ queue: 'q', delay: '1h' });
    await withPage(server, 'task/' + id, async (page) => {
      await button(page, 'Move …').click();
      await page.getByRole('button', { name: 'Tomorrow, 09:00' }).click();
      await press(page, 'Move');
      await shows(page, '#messages', 'is due at');
      const due = new Date((await server.call('GET', '/v1/tasks/' + id)).due_at);
      const expected = new Date();
      expected.setDate(expected.getDate() + 1);
      expected.setHours(9, 0, 0, 0);
      assert.equal(due.getTime(), expected.getTime());
    });
  });

  test('is run now and cancelled', async () => {
    const id = await schedule({ queue: 'q', delay: '1h' });
    await withPage(server, 'task/' + id, async (page) => {
      await shows(page, '.verdict', 'Not late: it is due in');
      await button(page, 'Run now').click();
      await shows(page, '.state', 'ready');
      await button(page, 'Cancel …').click();
      await press(page, 'Cancel');
      assert.equal((await server.call('GET', '/v1/tasks/' + id)).state, 'ready');
      await button(page, 'Cancel …').click();
      await press(page, 'Cancel the task');
      await shows(page, '.verdict', 'no such task here');
    }, { expected: [/404/] });
  });

  test('that changed meanwhile is not changed by a stale page', async () => {
    const id = await schedule({ queue: 'q', delay: '1h' });
    await withPage(server, 'task/' + id, async (page) => {
      await button(page, 'Move …').click();
      await server.call('PATCH', '/v1/tasks/' + id, { priority: 1 });
      await press(page, 'Move');
      await shows(page, '#messages [role=alert]', 'read it again');
    }, { expected: [/412/] });
  });

  test('is made again by the curl that is shown', async () => {
    const id = await schedule({ queue: 'q', delay: '1h', payload: { text: "it's ü $HOME `x`" } });
    await withPage(server, 'task/' + id, async (page) => {
      await page.locator('summary').click();
      const curl = await page.locator('details code').textContent();
      const { execFileSync } = await import('node:child_process');
      const made = JSON.parse(execFileSync('sh', ['-c', curl], { encoding: 'utf8' }));
      const task = await server.call('GET', '/v1/tasks/' + made.id);
      assert.deepEqual(task.payload, { text: "it's ü $HOME `x`" });
    });
  });

  test('that is not there is told kindly', () => withPage(server, 'task/999424', async (page) => {
    await shows(page, '.verdict', 'There is no such task here, or not any more');
  }, { expected: [/404/] }));
});
