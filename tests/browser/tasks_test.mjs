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
    await shows(page, '.empty', 'No matching tasks');
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

  test('are found by a part of their payload', () => withPage(server, 'tasks?queue=odd', async (page) => {
    await page.getByLabel('Payload contains').fill('"N":77}');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await until('one', async () => await lines(page) === 1);
    await shows(page, 'td', '{"n":77}');
    await shows(page, 'main', /^(?!.*may be more)/);
  }));

  test('that match are all chosen, moved and cancelled, beyond the page', async () => {
    await server.call('POST', '/v1/tasks/batch', Array.from({ length: 2_100 }, (_, i) => ({ queue: 'many', delay: '2h', payload: { big: i % 2 } })));
    await withPage(server, 'tasks?queue=many&payload=' + encodeURIComponent('"big":1'), async (page) => {
      await page.getByRole('button', { name: 'Choose all matching' }).click();
      await shows(page, '.bulk', 'All 1,050 matching tasks chosen');
      await page.getByRole('button', { name: 'Move …' }).click();
      await page.locator('dialog input').fill('2030-01-02T03:04:05');
      await press(page, 'Move');
      await shows(page, '#messages', '1,050 tasks moved to 2030-01-02 03:04:05.');
      await page.getByRole('button', { name: 'Choose all matching' }).click();
      await page.getByRole('button', { name: 'Cancel …' }).click();
      await press(page, 'Cancel 1,050 tasks');
      await shows(page, '#messages', '1,050 tasks cancelled.');
      assert.equal((await server.call('GET', '/v1/queues/many')).scheduled, 1_050);
      await page.goto(`${server.url}/#/tasks?queue=many`);
      await page.getByRole('button', { name: 'Purge the queue …' }).click();
      await page.locator('dialog input').fill('many');
      await press(page, 'Purge');
      await shows(page, '#messages', '1,050 tasks removed from many');
    });
  });

  test('are changed part by part, until the viewer stops', async () => {
    await server.call('POST', '/v1/tasks/batch', Array.from({ length: 3_000 }, () => ({ queue: 'long', delay: '2h' })));
    await withPage(server, 'tasks?queue=long', async (page) => {
      await page.getByRole('button', { name: 'Choose all matching' }).click();
      await shows(page, '.bulk', 'All 3,000 matching tasks chosen');
      let parts = 0;
      let stopped;
      const isStopped = new Promise((resolve) => { stopped = resolve; });
      await page.route('**/v1/tasks/cancel', async (route) => {
        if (++parts === 2) await isStopped;
        await route.continue();
      });
      await page.getByRole('button', { name: 'Cancel …' }).click();
      await press(page, 'Cancel 3,000 tasks');
      await shows(page, 'dialog', '1,000 of 3,000');
      await press(page, 'Stop');
      stopped();
      await shows(page, '#messages', '2,000 tasks cancelled; stopped, 1,000 left.');
      assert.equal((await server.call('GET', '/v1/queues/long')).scheduled, 1_000);
    });
  });
});

describe('Dead tasks', () => {
  let server;
  const dead = []; // ids, in the order of their deaths
  before(async () => {
    server = await startServer();
    for (const [queue, error] of [['hooks', 'HTTP 503 for order 123456'], ['mail', 'mailbox full'], ['hooks', 'HTTP 503 for order 987654'], ['hooks', 'HTTP 404']]) {
      const { id } = await server.call('POST', '/v1/tasks', { queue, max_attempts: 1 });
      const { tasks: [{ lease }] } = await server.call('POST', `/v1/queues/${queue}/lease`, { wait: '5s' });
      await server.call('POST', '/v1/leases/fail', { leases: [lease], error });
      dead.push(id);
    }
  });
  after(() => server.stop());

  test('are listed with their time of death, the last first', () => withPage(server, 'tasks?state=dead', async (page) => {
    await until('their times', async () => await page.locator('td[data-label=Died] time').count() === 4);
    assert.deepEqual(await page.locator('td.title').allTextContents(), [...dead].reverse());
  }));

  test('are grouped by queue and error, and a group is listed and retried', () => withPage(server, 'errors', async (page) => {
    await shows(page, 'main', '4 dead tasks in 3 groups');
    const group = page.getByRole('row').filter({ hasText: 'HTTP 503 for order …' });
    await group.locator('time').waitFor();
    assert.match(await group.textContent(), /hooks2/);
    await group.getByRole('link', { name: /HTTP 503/ }).click();
    await until('its tasks', async () => await page.locator('tbody tr').count() === 2);
    await page.goBack();
    await page.getByRole('row').filter({ hasText: 'HTTP 503' }).getByRole('button', { name: 'Retry' }).click();
    await shows(page, '#messages', '2 tasks due now.');
    await shows(page, 'main', '2 dead tasks in 2 groups');
    assert.equal((await server.call('GET', '/v1/queues/hooks')).ready, 2);
  }));

  test('are retried with the main button', () => withPage(server, 'task/' + dead[1], async (page) => {
    await shows(page, '.way li', /Dead.*\d{4}-/);
    const retry = page.locator('main').getByRole('button', { name: 'Retry', exact: true });
    assert.equal(await retry.getAttribute('class'), 'primary');
    await retry.click();
    await shows(page, '.state', 'ready');
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

  test('is edited, and its payload keeps every digit', async () => {
    const id = await schedule({ queue: 'q', delay: '1h' });
    await withPage(server, 'task/' + id, async (page) => {
      await button(page, 'Edit …').click();
      await page.getByLabel('Payload (JSON)').fill('{oops');
      await press(page, 'Save');
      await shows(page, 'dialog .wrong', /JSON/);
      await page.getByLabel('Payload (JSON)').fill('{"n": 12345678901234567890}');
      await page.getByLabel(/^Priority/).fill('7');
      await press(page, 'Save');
      await shows(page, 'pre', '"n": 12345678901234567890');
      assert.equal((await server.call('GET', '/v1/tasks/' + id)).priority, 7);
    });
  });

  test('shows the URL that it is delivered to, its own or that of its queue', async () => {
    await server.call('PATCH', '/v1/queues/hooked', { webhook: 'http://127.0.0.1:9/of-queue', paused: true });
    const id = await schedule({ queue: 'hooked' });
    const own = await schedule({ queue: 'hooked', webhook: 'http://127.0.0.1:9/own' });
    await withPage(server, 'task/' + id, async (page) => {
      await shows(page, '.facts', 'http://127.0.0.1:9/of-queue of its queue');
      await page.goto(`${server.url}/#/task/${own}`);
      await shows(page, '.facts', 'http://127.0.0.1:9/own');
    });
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
