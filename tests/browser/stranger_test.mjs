// A new user of Detent, who reads only the screen and presses only the buttons and links on it. The
// user wants to know why the mail to Ada was late, and moves the reminder to Grace to tomorrow. The
// test therefore uses labels, roles and texts only: no addresses, selectors or known ids.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startServer, until, withPage } from './harness.mjs';
import { fill } from './lifelike.mjs';

describe('A stranger', () => {
  let server;
  let reminder;
  before(async () => {
    server = await startServer();
    await fill(server.url);
    const { call } = server;
    await call('PATCH', '/v1/queues/invites', { paused: true, retention: '1d' });
    await call('POST', '/v1/tasks', { queue: 'invites', key: 'mail-to-ada', payload: { to: 'ada@example.org' } });
    await until('it is late', async () => (await call('GET', '/v1/queues/invites')).oldest_ready_age_ms > 1_500);
    await call('POST', '/v1/queues/invites/resume');
    const { tasks } = await call('POST', '/v1/queues/invites/lease', { worker: 'mailer-1' });
    await call('POST', '/v1/leases/complete', { leases: [tasks[0].lease] });
    reminder = await call('POST', '/v1/tasks', { queue: 'reminders', key: 'remind-grace', delay: '20m', payload: { user: 'grace' } });
  });
  after(() => server.stop());

  const press = (page, role, name) => page.getByRole(role, { name, exact: true }).click();
  const reads = (page, text) => page.getByText(text).first().waitFor();
  const find = async (page, key) => {
    await press(page, 'link', 'Tasks');
    await page.getByLabel('Key', { exact: true }).fill(key);
    await press(page, 'button', 'Search');
  };

  for (const [screen, options] of [['a desk', {}], ['a phone', { viewport: { width: 390, height: 844 }, hasTouch: true }]]) {
    test(`finds out at ${screen} why a task was late, and moves another to tomorrow`, () => withPage(server, '', async (page) => {
      await find(page, 'mail-to-ada');
      await page.getByRole('link', { name: /ada@example\.org|^\d+$/ }).first().click();
      await reads(page, /It was completed, but a worker took it only .* after its due time/);
      await reads(page, /Of that: .*: a pause, the rate or the number of leases of its queue held it back/);

      await find(page, 'remind-grace');
      await page.getByRole('link', { name: reminder.id, exact: true }).click();
      await reads(page, /Not late: it is due in/);
      const before = new Date((await server.call('GET', '/v1/tasks/' + reminder.id)).due_at);
      await press(page, 'button', 'Move …');
      await press(page, 'button', 'Tomorrow, this time');
      await press(page, 'button', 'Move');
      await reads(page, /is due at/);
      await reads(page, /Not late: it is due in (23|24|1)/);
      const due = new Date((await server.call('GET', '/v1/tasks/' + reminder.id)).due_at);
      const day = 86_400_000;
      assert.ok(Math.abs(due - Date.now() - day) < 2 * 3_600_000, `${due.toISOString()} is about a day from now`);
      assert.ok(due > before || screen !== 'a desk');
    }, options));
  }

  test('is told by the first page what waits, and comes from there to the tasks that do', () => withPage(server, '', async (page) => {
    await reads(page, /thumbnails/);
    await page.getByRole('link', { name: 'thumbnails', exact: true }).first().click();
    await until('its tasks', async () => await page.getByRole('row').count() > 10);
    await page.getByRole('row').nth(1).getByRole('link').first().click();
    await reads(page, /It has been due for .*: the queue is paused/);
  }));
});
