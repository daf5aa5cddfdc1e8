// An open page while the server is killed, its store has failed, or its disk is nearly full.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { shows, startServer, until, withPage } from './harness.mjs';

const problem = (status, detail) => ({ status, contentType: 'application/problem+json',
  body: JSON.stringify({ type: 'about:blank', title: 'x', status, detail }) });

describe('An open page', () => {
  let server;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/v1/tasks', { queue: 'mail', delay: '1h' });
  });
  after(() => server.stop());

  const pause = (page) => page.getByRole('button', { name: 'Pause', exact: true });
  const isOld = (page) => page.evaluate(() => document.body.classList.contains('old'));

  test('of a server that was killed is dimmed and says how old it is, until the server is back', () => withPage(server, 'queues', async (page) => {
    await shows(page, '.status', 'live');
    await pause(page).waitFor();
    assert.ok(await pause(page).isEnabled());
    assert.equal(await page.locator('.banner').isVisible(), false);
    await server.kill();
    await shows(page, '.banner', /The server does not answer\./);
    await shows(page, '.banner', /The figures are .* old; next try in/);
    await shows(page, '.status', 'no answer');
    assert.ok(await isOld(page));
    assert.ok(await pause(page).isDisabled());
    assert.equal(await pause(page).getAttribute('title'), 'The server does not answer');
    const widths = await page.evaluate(() => [document.querySelector('.banner').getBoundingClientRect().width, document.body.clientWidth]);
    assert.equal(widths[0], widths[1], 'over the whole width');
    const colours = await page.getByRole('button', { name: 'Try now' }).evaluate((button) => [getComputedStyle(button).color, getComputedStyle(button).backgroundColor]);
    assert.deepEqual(colours, ['rgb(255, 255, 255)', 'rgba(0, 0, 0, 0)'], 'white on the red of the banner');
    await server.start();
    await page.getByRole('button', { name: 'Try now' }).click({ timeout: 5_000 }).catch(() => {}); // the page may have tried already
    await shows(page, '.status', 'live');
    await page.locator('.banner').waitFor({ state: 'hidden' });
    await until('its actions are on', () => pause(page).isEnabled());
    assert.equal(await isOld(page), false);
  }, { expected: [/ERR_/] }));

  test('asks a server that is away less and less often, and nothing else of it', () => withPage(server, 'queues', async (page) => {
    await shows(page, '.status', 'live');
    await page.clock.install();
    await page.route('**/v1/**', (route) => route.abort());
    const asked = [];
    await page.route('**/readyz', (route) => {
      asked.push(route.request().url());
      return route.abort();
    });
    await until('it is lost', async () => {
      await page.clock.runFor(1_000);
      return (await page.locator('.status').textContent()) === 'no answer';
    });
    let others = 0;
    page.on('request', (request) => { if (request.url().includes('/v1/')) ++others; });
    const before = asked.length;
    for (let second = 0; second < 60; ++second) await page.clock.runFor(1_000);
    const tries = asked.length - before;
    assert.ok(tries >= 1 && tries <= 8, `${tries} tries in a minute`);
    assert.equal(others, 0);
  }, { expected: [/ERR_/] }));

  test('of a server whose store has failed has a red banner, whatever its stream tells', () => withPage(server, 'queues', async (page) => {
    await shows(page, '.status', 'live');
    await page.route('**/readyz', (route) => route.fulfill(problem(503, 'the store failed: No space left on device')));
    await shows(page, '.banner', 'cannot accept tasks or hand them out: the store failed: No space left on device');
    await shows(page, '.status', 'not ready');
    assert.ok(await pause(page).isDisabled());
    await page.unroute('**/readyz');
    await page.locator('.banner').waitFor({ state: 'hidden' });
    await until('its actions are on', () => pause(page).isEnabled());
  }, { expected: [/503/] }));

  test('says that the disk is nearly full', () => withPage(server, 'now', async (page) => {
    await page.route('**/v1/stats?queues=0', async (route) => {
      const stats = await (await route.fetch()).json();
      assert.ok(stats.data_free_bytes > 0, 'the server tells it');
      await route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify({ ...stats, data_free_bytes: 12 << 20 }) });
    });
    await page.reload();
    await shows(page, '.banner', /disk of the data folder is nearly full: 12\.0\sMiB are free/);
    await shows(page, '.status', 'live');
  }));

  test('says that new tasks are refused', () => withPage(server, 'now', async (page) => {
    await page.route('**/v1/stats?queues=0', async (route) => {
      const stats = await (await route.fetch()).json();
      assert.equal(stats.refuses_tasks, false);
      await route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify({ ...stats, data_free_bytes: 12 << 20, refuses_tasks: true }) });
    });
    await page.reload();
    await shows(page, '.banner', /12\.0\sMiB are free\. The server refuses new tasks; workers can lease and complete tasks\./);
  }));
});
