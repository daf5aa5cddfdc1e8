// The view Queues and its actions.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { press, shows, startServer, until, withPage } from './harness.mjs';

describe('More queues than a page can show', () => {
  let server;
  before(async () => {
    server = await startServer();
    const tasks = Array.from({ length: 1_300 }, (_, i) => ({ queue: `tenant-${i}`, delay: '1h' }));
    const more = tasks.map(({ queue }) => ({ queue, delay: '2h' }));
    await server.call('POST', '/v1/tasks/batch', [...tasks, ...more, { queue: 'a-small-one', delay: '1ms' }]);
  });
  after(() => server.stop());

  test('are asked for by the thousand, and found by a part of their name', () => withPage(server, 'queues', async (page) => {
    let told = 0;
    page.on('response', async (response) => {
      if (!response.url().includes('/v1/queues')) return;
      const answer = await response.json().catch(() => null); // the page was closed first
      if (answer) told = Math.max(told, answer.queues.length);
    });
    await shows(page, 'main', /1,301 queues; the 1,000 with most tasks and the 1,000 whose tasks wait longest are listed/);
    await until('a page', async () => await page.locator('tbody tr').count() === 100);
    await until('an answer', () => told === 1_000);
    await shows(page, '.pager', '1 to 100 of 1,001');
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await shows(page, '.pager', '101 to 200 of 1,001');
    await page.getByRole('button', { name: 'Waiting', exact: true }).click();
    await until('the small one', async () => (await page.locator('td.title').allTextContents()).join() === 'a-small-one');
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.getByLabel('Filter queues by name').fill('TENANT-129');
    await until('tenant-129 and 1290 to 1299', async () => await page.locator('tbody tr').count() === 11);
    await page.getByLabel('Filter queues by name').fill('none');
    await shows(page, '.empty', 'No queue name matches.');
    assert.ok(told <= 1_000, 'never more');
    await page.getByLabel('Filter queues by name').fill('');
    await page.getByRole('button', { name: 'List 1,000 more queues' }).click();
    await shows(page, '.pager', 'of 1,301');
  }));

  test('hide no small one that is stuck', () => withPage(server, 'now', async (page) => {
    await until('it has waited', async () => (await server.call('GET', '/v1/queues/a-small-one')).oldest_ready_age_ms > 5_000);
    await shows(page, '.verdict', '1 task is due and not taken.');
    await shows(page, '.verdict li', /a-small-one: 1 task, .* none handed out since the server started/);
  }));

  test('hide no small queue that is paused or has a dead task', () => withPage(server, 'queues?show=paused', async (page) => {
    await server.call('PATCH', '/v1/queues/a-paused-one', { paused: true });
    await shows(page, 'td', 'a-paused-one');
    await server.call('POST', '/v1/tasks', { queue: 'a-dead-one', max_attempts: 1 });
    const { tasks: [{ lease }] } = await server.call('POST', '/v1/queues/a-dead-one/lease', { wait: '5s' });
    await server.call('POST', '/v1/leases/fail', { leases: [lease] });
    await page.getByLabel('Which queues').getByRole('button', { name: 'Dead' }).click();
    await shows(page, 'td', 'a-dead-one');
    assert.equal(await page.locator('tbody tr').count(), 1);
  }));
});

describe('Queues', () => {
  let server;
  before(async () => {
    server = await startServer();
    for (const queue of ['mail', 'orders.cancel', 'reports']) {
      await server.call('POST', '/v1/tasks/batch', Array.from({ length: 3 }, () => ({ queue, delay: '1h' })));
    }
    await server.call('PATCH', '/v1/queues/mail', { rate: 50, concurrency: 4, max_tasks: 10_000 });
  });
  after(() => server.stop());

  const line = (page, queue) => page.getByRole('row').filter({ has: page.getByRole('link', { name: queue, exact: true }) });
  const button = (page, queue, name) => line(page, queue).getByRole('button', { name, exact: true });

  test('shows counts and limits', () => withPage(server, 'queues', async (page) => {
    await shows(page, 'tr', /mail\s*3\s*0\s*0\s*0/);
    await shows(page, 'tr', '50/s, 4 leases, 10,000 tasks');
    await shows(page, 'main', '3 queues');
  }));

  test('filters by name and sorts by a column', () => withPage(server, 'queues', async (page) => {
    await shows(page, 'td', 'orders.cancel');
    await page.getByLabel('Filter queues by name').fill('REP');
    await until('one line', async () => await page.locator('tbody tr').count() === 1);
    await page.getByLabel('Filter queues by name').fill('');
    await page.getByRole('button', { name: 'Queue', exact: true }).click();
    await page.getByRole('button', { name: 'Queue', exact: true }).click();
    await until('sorted downwards', async () => (await page.locator('tbody tr td').first().textContent()) === 'reports');
    assert.equal(await page.locator('th').first().getAttribute('aria-sort'), 'descending');
  }));

  test('pauses and resumes', () => withPage(server, 'queues', async (page) => {
    const paused = async () => (await server.call('GET', '/v1/queues/mail')).settings.paused;
    await button(page, 'mail', 'Pause').click();
    await button(page, 'mail', 'Resume').waitFor();
    assert.equal(await paused(), true);
    await shows(page, 'tr', /mail.*paused/);
    await button(page, 'mail', 'Resume').click();
    await button(page, 'mail', 'Pause').waitFor();
    assert.equal(await paused(), false);
  }));

  test('purges only when the name has been typed', () => withPage(server, 'queues', async (page) => {
    await button(page, 'reports', 'Purge').click();
    await shows(page, 'dialog', '3 tasks will be deleted for good');
    await page.locator('dialog input').fill('report');
    await press(page, 'Purge');
    await shows(page, 'dialog', 'This is a different name');
    await press(page, 'Cancel');
    assert.equal((await server.call('GET', '/v1/queues/reports')).scheduled, 3);
    await button(page, 'reports', 'Purge').click();
    await page.locator('dialog input').fill('reports');
    await press(page, 'Purge');
    await shows(page, '#messages', '3 tasks removed from reports');
    assert.equal((await server.call('GET', '/v1/queues/reports')).scheduled, 0);
  }));

  test('redrives what is dead', async () => {
    await server.call('POST', '/v1/tasks', { queue: 'hooks', delay: '0s', max_attempts: 1 });
    const { tasks: [{ lease }] } = await server.call('POST', '/v1/queues/hooks/lease', { wait: '5s' });
    await server.call('POST', '/v1/leases/fail', { leases: [lease], error: 'no' });
    await withPage(server, 'queues', async (page) => {
      await button(page, 'hooks', 'Redrive').click();
      await press(page, 'Redrive');
      await shows(page, '#messages', '1 task of hooks due again');
      await until('it is ready', async () => (await server.call('GET', '/v1/queues/hooks')).ready === 1);
    });
  });

  test('opens the page of a queue, with its limits, receiver and workers', async () => {
    await server.call('POST', '/v1/tasks', { queue: 'mail' });
    await server.call('POST', '/v1/queues/mail/lease', { wait: '5s', worker: 'mailer-1' });
    await withPage(server, 'queues', async (page) => {
      await page.getByRole('link', { name: 'mail', exact: true }).click();
      await shows(page, 'h1', 'mail');
      await shows(page, '.facts', /leases at a time\s*4, 1 used/);
      await shows(page, '.facts', 'workers that lease them');
      await shows(page, 'tr', /mailer-1\s*1\s*task \d+ for/);
      await page.goto(`${server.url}/#/workers`);
      await shows(page, 'tr', /mailer-1\s*1\s*mail/);
    });
  });

  test('shows the history of a queue that the server keeps', () => withPage(server, 'queue/busy', async (page) => {
    await shows(page, '.verdict', 'There is no such queue');
    await server.call('POST', '/v1/tasks/batch', Array.from({ length: 9 }, () => ({ queue: 'busy', max_attempts: 1 })));
    await shows(page, '.verdict', /9 tasks are ready, the oldest for .*: none handed out since the server started/);
    const { tasks } = await server.call('POST', '/v1/queues/busy/lease', { max: 9 });
    const leases = tasks.map(({ lease }) => lease);
    await server.call('POST', '/v1/leases/fail', { leases: leases.slice(0, 3), error: 'no route to host' });
    await server.call('POST', '/v1/leases/complete', { leases: leases.slice(3) });
    // The server shows a step of ten seconds after its end. A reload shows it, too: the server keeps the history.
    const total = ({ points }, member) => points.reduce((sum, point) => sum + point[member], 0);
    await until('the events', async () => {
      const [answer] = await Promise.all([page.waitForResponse((response) => response.url().includes('/v1/stats/history?queue=busy')), page.reload()]);
      const history = await answer.json();
      return total(history, 'completed') === 6 && total(history, 'failed') === 3 && total(history, 'died') === 3;
    });
    const last = page.locator('.u-series', { hasText: 'completed' }).locator('.u-value').first();
    await until('a figure in the chart', async () => /\d/.test(await last.textContent()));
    await shows(page, 'tr', 'no route to host');
  }, { expected: [/404/] }));

  test('ends its stream while nobody looks, because a browser has few connections', () => withPage(server, 'queue/mail', async (page) => {
    const open = new Set();
    page.on('request', (request) => { if (request.url().includes('/v1/events')) open.add(request); });
    page.on('requestfailed', (request) => open.delete(request));
    await page.reload();
    await until('it is open', () => open.size === 1);
    const setHidden = (hidden) => page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
    await setHidden(true);
    await until('it has ended', () => open.size === 0);
    await setHidden(false);
    await until('it is open again', () => open.size === 1);
  }));

  test('changes the settings of a queue, and says which are wrong', () => withPage(server, 'queue/orders.cancel', async (page) => {
    await page.getByRole('button', { name: 'Edit settings …' }).click();
    await page.getByLabel('Rate: tasks per second').fill('0');
    await press(page, 'Save');
    await shows(page, 'dialog .wrong', /rate/);
    await page.getByLabel('Rate: tasks per second').fill('25');
    await page.getByLabel('Visibility timeout').fill('90s');
    await page.getByLabel('Backoff, first').fill('5s');
    await press(page, 'Save');
    await shows(page, 'dialog .wrong', 'The backoff needs both durations');
    await page.getByLabel('Backoff, longest').fill('2m');
    await page.getByLabel(/^Webhook/).fill('https://example.org/hook');
    await press(page, 'Save');
    await shows(page, '.facts', '25 tasks per second');
    await shows(page, '.facts', "the webhook https://example.org/hook · signed with the server's key");
    const { settings } = await server.call('GET', '/v1/queues/orders.cancel');
    assert.deepEqual([settings.rate, settings.visibility_timeout_ms, settings.backoff], [25, 90_000, { initial_ms: 5_000, max_ms: 120_000 }]);
    assert.equal(settings.max_tasks, null);
  }, { expected: [/400/] }));

  test('says what the server refuses', () => withPage(server, 'queues', async (page) => {
    await page.route('**/pause', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json',
      body: JSON.stringify({ type: 'x', title: 'x', status: 503, detail: 'the store failed' }) }));
    await button(page, 'mail', 'Pause').click();
    await shows(page, '#messages [role=alert]', 'the store failed');
  }, { expected: [/503/] }));
});
