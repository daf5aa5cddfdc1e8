// The views of recurring schedules: the list, a single schedule, and the form.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { press, shows, startServer, until, withPage } from './harness.mjs';

describe('Schedules', () => {
  let server;
  before(async () => {
    server = await startServer();
    await server.call('PUT', '/v1/schedules/report', { cron: '0 9 * * MON', time_zone: 'America/New_York', queue: 'reports' });
    await server.call('PUT', '/v1/schedules/clean', { every: '15m', queue: 'house', jitter: '5s', misfire_limit: 7 });
  });
  after(() => server.stop());
  const viewer = { timezoneId: 'Asia/Tokyo' };
  const line = (page, name) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });

  test('are listed in words, with the next time in both zones', () => withPage(server, 'schedules', async (page) => {
    await shows(page, 'tr', 'At 09:00 on Monday');
    const next = await line(page, 'report').locator('td').nth(3).textContent();
    assert.match(next, /^Mon \d{4}-\d\d-\d\d 09:00 America\/New_York(Mon|Tue) \d{4}-\d\d-\d\d (22|23):00 here$/);
  }, viewer));

  test('that are broken come first', () => withPage(server, 'schedules', async (page) => {
    await page.route('**/v1/schedules?*', async (route) => {
      const answer = await (await route.fetch()).json();
      const schedules = answer.schedules.map((schedule) => (schedule.name === 'report' ? { ...schedule, state: 'broken', error: 'no such time zone' } : schedule));
      await route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify({ ...answer, schedules }) });
    });
    await page.reload();
    await shows(page, '.wrong', 'no such time zone');
    assert.deepEqual(await page.locator('td.title').allTextContents(), ['report', 'clean']);
  }));

  test('are paused, resumed and triggered', () => withPage(server, 'schedules', async (page) => {
    await line(page, 'report').getByRole('button', { name: 'Pause' }).click();
    await line(page, 'report').getByText('paused', { exact: true }).waitFor();
    assert.equal((await server.call('GET', '/v1/schedules/report')).state, 'paused');
    await line(page, 'report').getByRole('button', { name: 'Resume' }).click();
    await line(page, 'report').getByText('active', { exact: true }).waitFor();
    await line(page, 'report').getByRole('button', { name: 'Trigger' }).click();
    await shows(page, '#messages', /Task \d+ was created/);
    await line(page, 'report').getByText('ready', { exact: true }).waitFor();
    assert.equal((await server.call('GET', '/v1/queues/reports')).ready, 1);
  }));

  test('show their next ten occurrences in both zones', () => withPage(server, 'schedule/report', async (page) => {
    await shows(page, '.verdict', 'At 09:00 on Monday');
    await until('ten', async () => await page.locator('tbody tr').count() === 10);
    await shows(page, 'tbody tr', /09:00Mon|09:00Tue/);
  }, viewer));

  test('are made with a preview that follows what is typed', () => withPage(server, 'schedule', async (page) => {
    await page.getByLabel('Name').fill('nightly');
    await page.getByLabel('Target queue').fill('backups');
    await page.getByLabel('Time zone').fill('Europe/Berlin');
    await page.getByLabel(/Cron expression/).fill('30 2 31 2 *');
    await shows(page, '.preview', /never|not occur/i);
    await page.getByLabel(/Cron expression/).fill('30 2 * *');
    await shows(page, '.preview .wrong', /cron|field|column/i);
    await page.getByLabel(/Cron expression/).fill('30 2 * * *');
    await shows(page, '.preview', /At 02:30/);
    await shows(page, '.preview li', /02:30 · .* here/);
    await page.getByLabel('Payload of each task').fill('{"n": 12345678901234567890}');
    await page.getByRole('button', { name: 'Create' }).click();
    await shows(page, 'h1', 'nightly');
    await shows(page, 'pre', '12345678901234567890');
    const made = await server.call('GET', '/v1/schedules/nightly');
    assert.equal(made.cron, '30 2 * * *');
    assert.equal(made.time_zone, 'Europe/Berlin');
  }, { ...viewer, expected: [/400/] }));

  test('keep what the form does not show when they are edited', async () => {
    const before = await server.call('GET', '/v1/schedules/clean');
    await withPage(server, 'schedule/clean/edit', async (page) => {
      await page.getByLabel(/^Every \(/).fill('20m');
      await shows(page, '.preview', 'Every 20 minutes');
      await page.getByLabel('If the last task has not ended').selectOption('skip');
      await page.getByRole('button', { name: 'Save' }).click();
      await shows(page, 'h1', 'clean');
    });
    const now = await server.call('GET', '/v1/schedules/clean');
    assert.equal(now.every_ms, 1_200_000);
    assert.equal(now.overlap, 'skip');
    for (const member of ['anchor', 'jitter_ms', 'misfire_limit', 'queue', 'payload']) assert.deepEqual(now[member], before[member], member);
  });

  test('tell what is wrong with what is saved', () => withPage(server, 'schedule', async (page) => {
    await page.getByLabel('Name').fill('bad name');
    await page.getByLabel('Target queue').fill('q');
    await page.getByRole('button', { name: 'Create' }).click();
    await shows(page, 'form > .wrong', /name/);
    await page.getByLabel('Payload of each task').fill('{oops');
    await page.getByRole('button', { name: 'Create' }).click();
    await shows(page, 'form > .wrong', 'The payload is not JSON');
  }, { expected: [/400/] }));

  test('are removed after a question', async () => {
    await server.call('PUT', '/v1/schedules/old', { every: '1h', queue: 'q' });
    await withPage(server, 'schedule/old', async (page) => {
      await page.getByRole('button', { name: 'Remove …' }).click();
      await press(page, 'Remove');
      await shows(page, 'h1', 'Schedules');
      assert.equal((await fetch(server.url + '/v1/schedules/old')).status, 404);
    }, { expected: [/404/] });
  });

  test('that are not there are told kindly', () => withPage(server, 'schedule/none', async (page) => {
    await shows(page, '.verdict', 'There is no such schedule');
  }, { expected: [/404/] }));
});
