// The frame of the page, and the view Now.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { newTokenText, shows, startServer, until, withPage } from './harness.mjs';

describe('an empty server', () => {
  let server;
  before(async () => { server = await startServer(); });
  after(() => server.stop());

  test('shows what to do first, and the curl that it shows works', () => withPage(server, '', async (page) => {
    await shows(page, 'main', 'Schedule a first task');
    const curl = await page.locator('.steps code').first().textContent();
    const [, url, body] = /^curl -s (\S+) -d '(.*)'$/.exec(curl);
    assert.equal(url, server.url + '/v1/tasks');
    const answer = await fetch(url, { method: 'POST', body });
    assert.equal(answer.status, 201);
    await shows(page, '.tile', /scheduled\s*1/);
    await page.locator('.steps').waitFor({ state: 'hidden' });
  }));

  test('has every view without an error', () => withPage(server, '', async (page) => {
    for (const name of ['Now', 'Queues', 'Tasks', 'Errors', 'Workers', 'Schedules', 'Wheel', 'Forecast', 'Cluster']) {
      await page.getByRole('link', { name, exact: true }).click();
      await shows(page, 'h1', name === 'Wheel' ? /wheel/i : name);
      assert.equal(await page.locator('nav [aria-current]').textContent(), name);
    }
  }));

  test('leads an unknown address to Now', () => withPage(server, 'nowhere/at/all', async (page) => {
    await shows(page, 'h1', 'Now');
  }));
});

describe('Now', () => {
  let server;
  before(async () => { server = await startServer(); });
  after(() => server.stop());

  test('tells what is due and why nobody takes it', async () => {
    await server.call('POST', '/v1/tasks', { queue: 'held', delay: '1ms' });
    await server.call('POST', '/v1/queues/held/pause');
    await server.call('POST', '/v1/tasks', { queue: 'lonely', delay: '1ms' });
    await server.call('PATCH', '/v1/queues/tight', { concurrency: 1 });
    for (let i = 0; i < 2; ++i) await server.call('POST', '/v1/tasks', { queue: 'tight', delay: '1ms' });
    await until('one of tight is leased', async () => (await server.call('POST', '/v1/queues/tight/lease', { wait: '5s' })).tasks.length > 0);
    await withPage(server, 'now', async (page) => {
      await shows(page, '.verdict', 'due and not taken');
      await shows(page, '.verdict li', /1 paused queue holds 1 ready task: held\./);
      await shows(page, '.verdict li', /lonely: 1 task, oldest waiting .*; none handed out since the server started\./);
      await shows(page, '.verdict li', /tight: 1 task, .* limit of 1 lease at a time is used up/);
    });
  });

  test('tells what tasks were handed out late for, of one task and of all', async () => {
    await server.call('PATCH', '/v1/queues/late', { paused: true, retention: '1h' });
    const { id } = await server.call('POST', '/v1/tasks', { queue: 'late', payload: 1 });
    await until('it is late', async () => (await server.call('GET', '/v1/queues/late')).oldest_ready_age_ms > 1_100);
    let tasks;
    await withPage(server, 'now', async (page) => {
      await shows(page, '.status', 'live');
      await server.call('POST', '/v1/queues/late/resume');
      ({ tasks } = await server.call('POST', '/v1/queues/late/lease', { worker: 'w' }));
      await shows(page, '.verdict', /1 task was handed out more than a second late: 1 held back by a limit/);
    });
    const cause = /handed out .* after its due time\..*Of that: .*: a pause, the rate or the number of leases/;
    await withPage(server, `task/${id}`, (page) => shows(page, '.verdict', cause));
    await server.call('POST', '/v1/leases/complete', { leases: [tasks[0].lease] });
    await withPage(server, `task/${id}`, async (page) => {
      await shows(page, '.verdict', /Of that: .*: a pause/);
      await shows(page, '.way', /Attempt 1 ended.*began late\. .*: a pause/);
    });
  });

  test('follows the server without being loaded again', () => withPage(server, 'now', async (page) => {
    await shows(page, '.status', 'live');
    const before = await page.locator('.tile', { hasText: 'scheduled' }).locator('.value').textContent();
    for (let i = 0; i < 5; ++i) await server.call('POST', '/v1/tasks', { queue: 'later', delay: '1h' });
    await shows(page, '.tile', new RegExp(`scheduled\\s*${Number(before) + 5}`));
    assert.equal(await page.locator('.chart canvas').count(), 4);
  }));

  test('has its rates in sight on a screen of 900 px', () => withPage(server, 'now', async (page) => {
    await shows(page, '.verdict', 'not taken');
    const bottoms = await page.locator('.tile').evaluateAll((tiles) => tiles.map((tile) => tile.getBoundingClientRect().bottom));
    assert.ok(bottoms.length === 12 && Math.max(...bottoms) <= 900, bottoms.join());
  }, { viewport: { width: 1440, height: 900 } }));

  test('moves nothing when figures change', () => withPage(server, 'now', async (page) => {
    await shows(page, '.status', 'live');
    await page.locator('.chart canvas').first().waitFor();
    await shows(page, '.verdict', 'not taken');
    await page.evaluate(() => {
      window.shifts = 0;
      new PerformanceObserver((list) => { for (const shift of list.getEntries()) window.shifts += shift.value; })
        .observe({ type: 'layout-shift' });
    });
    for (let i = 0; i < 3; ++i) {
      await server.call('POST', '/v1/tasks/batch', Array.from({ length: 500 }, () => ({ queue: 'later', delay: '1h' })));
      await page.waitForResponse((response) => response.url().endsWith('/v1/stats?queues=0'));
    }
    assert.ok(await page.evaluate(() => window.shifts) < 0.01);
  }));

  test('says when the server does not answer, and when it is back', () => withPage(server, 'now', async (page) => {
    await page.route('**/v1/events?types=stats', (route) => route.abort()); // an open stream would show that the server works
    await page.reload();
    await shows(page, '.status', 'live');
    await page.route('**/v1/stats?queues=0', (route) => route.abort());
    await shows(page, '.status', 'no answer');
    await page.unroute('**/v1/stats?queues=0');
    await shows(page, '.status', 'live');
  }, { expected: [/ERR_FAILED/] }));

  test('asks for nothing while nobody looks', () => withPage(server, 'now', async (page) => {
    await shows(page, '.status', 'live');
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    const asked = page.waitForRequest((request) => request.url().endsWith('/v1/stats?queues=0'), { timeout: 5_000 })
      .then(() => 'asked', () => 'quiet');
    const first = await asked;
    if (first === 'asked') { // a request that was already running
      assert.equal(await page.waitForRequest((request) => request.url().endsWith('/v1/stats?queues=0'), { timeout: 5_000 })
        .then(() => 'asked', () => 'quiet'), 'quiet');
    }
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: false, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await page.waitForRequest((request) => request.url().endsWith('/v1/stats?queues=0'));
  }));
});

describe('Now, with a token for some queues', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-token-'));
  /** Returns a new token, after adding its line to `file`, the token file of the server. */
  const newToken = (file, name, scope) => {
    const made = newTokenText(name, scope);
    fs.appendFileSync(file, made, { mode: 0o600 });
    return /dt_[\w-]+/.exec(made)[0];
  };
  let server;
  let some;
  let none;
  before(async () => {
    const file = path.join(folder, 'tokens.toml');
    const all = newToken(file, 'all', 'admin');
    some = newToken(file, 'some', 'read:shop.');
    none = newToken(file, 'none', 'read:empty.');
    server = await startServer(['--auth', file]);
    for (const queue of ['shop.mail', 'shop.mail', 'other']) {
      const answer = await fetch(server.url + '/v1/tasks', { method: 'POST', headers: { authorization: `Bearer ${all}` },
        body: JSON.stringify({ queue, delay: '1ms' }) });
      assert.equal(answer.status, 201);
    }
  });
  after(async () => {
    await server.stop();
    fs.rmSync(folder, { recursive: true });
  });

  const signIn = async (page, token) => {
    await shows(page, 'dialog', 'This server asks for a token');
    await page.locator('dialog input').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await shows(page, '.status', 'live');
  };

  test('that have no tasks, says so and shows no rates of the server', () => withPage(server, '', async (page) => {
    await signIn(page, none);
    await shows(page, '.verdict', 'No tasks in the queues that this token may see.');
    for (const name of ['accepted', 'completed', 'lateness p50']) {
      assert.equal(await page.locator('.tile', { hasText: name }).isVisible(), false, name);
    }
    await page.goto(`${server.url}/#/queues`);
    await shows(page, 'main', 'No tasks in the queues that this token may see.');
    assert.doesNotMatch(await page.locator('body').textContent(), /Nothing here yet/);
    await page.goto(`${server.url}/#/cluster`);
    await shows(page, '.facts', 'running for');
  }, { expected: [/401/, /403/] }));

  test('shows the figures of those, and why their tasks wait', () => withPage(server, '', async (page) => {
    await signIn(page, some);
    await shows(page, '.tile', /ready\s*2/);
    await shows(page, '.verdict li', /shop.mail: 2 tasks, .* none handed out since the server started/);
    assert.doesNotMatch(await page.locator('main').textContent(), /other/);
    await page.locator('.tile', { hasText: 'store commit p99' }).waitFor({ state: 'hidden' });
  }, { expected: [/401/, /403/] }));
});
