// Hostile texts of tasks have no effect on the page. Tokens. The page sends nothing to other servers.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { press, shows, startServer, until, withPage } from './harness.mjs';

const MARKS = [
  '<script>window.hit=1</script>', '<img src=x onerror="window.hit=1">', '"><svg onload=window.hit=1>',
  "'-alert(1)-'", 'javascript:window.hit=1', '<a href="javascript:window.hit=1">x</a>', '</pre><iframe srcdoc="<script>parent.hit=1</script>">',
  '{{constructor.constructor("window.hit=1")()}}', '<style>*{display:none}</style>', '<!--<img src=x onerror=window.hit=1>',
  '\u202Egnp.exe', '&lt;script&gt;window.hit=1&lt;/script&gt;', '<base href="https://evil.example/">', '<form action=https://evil.example>',
];

async function expectHarmless(page, text) {
  assert.equal(await page.evaluate(() => window.hit), undefined, text);
  assert.equal(await page.locator('main script, main img, main iframe, main style, main form[action], base').count(), 0, text);
  assert.equal(await page.locator('main a[href^="javascript"]').count(), 0, text);
}

describe('What others have written', () => {
  let server;
  before(async () => { server = await startServer(); });
  after(() => server.stop());

  test('is text in every view of a task', async () => {
    await withPage(server, 'now', async (page) => {
      for (const mark of MARKS) {
        const { id } = await server.call('POST', '/v1/tasks', { queue: 'q', key: mark, payload: { [mark]: mark, list: [mark] } });
        const { tasks: [{ lease }] } = await server.call('POST', '/v1/queues/q/lease', { wait: '5s', worker: mark });
        await page.goto(`${server.url}/#/task/${id}`);
        await shows(page, '.way', mark);
        await server.call('POST', '/v1/leases/fail', { leases: [lease], error: mark, delay: '1h' });
        await page.reload();
        await shows(page, '.way .error', mark);
        await shows(page, '.verdict', mark);
        await shows(page, 'pre', mark.slice(0, 5));
        await page.locator('summary').click();
        await expectHarmless(page, mark);
        await page.goto(`${server.url}/#/tasks?` + new URLSearchParams({ key: mark }));
        await shows(page, 'td', mark);
        await expectHarmless(page, mark);
      }
    });
  });

  test('is text in schedules, queue names, the address and the search field', async () => {
    const odd = "$(alert)/;+_.'".replace("'", '');
    await server.call('PUT', '/v1/schedules/' + encodeURIComponent(odd), { cron: '0 9 * * *', queue: odd, payload: MARKS });
    await server.call('POST', '/v1/schedules/' + encodeURIComponent(odd) + '/trigger');
    await withPage(server, 'schedules', async (page) => {
      await shows(page, 'td', odd);
      await page.getByRole('link', { name: odd, exact: true }).first().click();
      await shows(page, 'h1', odd);
      await shows(page, 'pre', '<script>window.hit=1</script>');
      await page.goto(`${server.url}/#/queues`);
      await shows(page, 'td', odd);
      await page.goto(`${server.url}/#/tasks?queue=` + encodeURIComponent(odd));
      await until('its task', async () => await page.locator('tbody tr').count() === 1);
      for (const mark of MARKS) {
        for (const view of ['task/', 'schedule/', 'tasks?state=', 'tasks?queue=', 'forecast?span=', '']) {
          await page.goto(`${server.url}/#/${view}${encodeURIComponent(mark)}`);
          await page.locator('h1').first().waitFor();
          await expectHarmless(page, view + mark);
        }
        await page.locator('#search').fill(mark);
        await page.keyboard.press('Enter');
        await shows(page, 'h1', 'Tasks');
        await expectHarmless(page, mark);
      }
    }, { expected: [/40[04]/] });
  });

  test('of an error of the server is text', () => withPage(server, 'queues', async (page) => {
    await page.route('**/v1/queues?*', (route) => route.fulfill({ status: 500, contentType: 'application/problem+json',
      body: JSON.stringify({ type: 'x', title: 'x', status: 500, detail: MARKS[0] }) }));
    await shows(page, '.wrong', MARKS[0]);
    await expectHarmless(page, MARKS[0]);
  }, { expected: [/500/] }));

  test('could not run a script even as markup', () => withPage(server, 'now', async (page) => {
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.hit = 1';
      document.body.append(script);
      const image = document.createElement('img');
      image.src = 'https://evil.example/x.png';
      document.body.append(image);
    });
    await assert.rejects(page.evaluate(() => fetch('https://evil.example/')));
    assert.equal(await page.evaluate(() => window.hit), undefined);
  }, { expected: [/CSP|Content Security Policy|Content-Security-Policy|evil\.example/] }));
});

describe('A server that asks for a token', () => {
  let server;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/v1/tasks', { queue: 'q', delay: '1h' });
  });
  after(() => server.stop());

  /** Simulates a server with tokens: 401 without the right token, 403 for a change. */
  const guard = (page, { mayChange }) => page.route('**/v1/**', async (route) => {
    const sent = route.request().headers().authorization;
    const refuse = (status, title) => route.fulfill({ status, contentType: 'application/problem+json',
      body: JSON.stringify({ type: 'about:blank', title, status, detail: title }) });
    if (sent !== 'Bearer s3cret') return refuse(401, 'a token is needed');
    if (!mayChange && route.request().method() !== 'GET') return refuse(403, 'not with this token');
    return route.continue();
  });
  const expected = [/401/, /403/];

  test('is given it once, and it is kept for the tab only', () => withPage(server, '', async (page) => {
    await guard(page, { mayChange: true });
    await page.reload();
    await shows(page, 'dialog', 'This server asks for a token');
    assert.equal(await page.locator('dialog').count(), 1);
    await page.locator('dialog input').fill('wrong');
    await press(page, 'Sign in');
    await shows(page, 'dialog', 'not valid here');
    await page.locator('dialog input').fill('s3cret');
    await press(page, 'Sign in');
    await shows(page, '.tile', /scheduled\s*1/);
    await page.reload();
    await shows(page, '.tile', /scheduled\s*1/);
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage)), '{}');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await shows(page, 'dialog', 'This server asks for a token');
  }, { expected }));

  test('that allows no change is told so, and the actions are off', () => withPage(server, '', async (page) => {
    await guard(page, { mayChange: false });
    await page.evaluate(() => sessionStorage.setItem('detent.token', 's3cret'));
    await page.goto(`${server.url}/#/queues`);
    await page.reload();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await shows(page, '#messages [role=alert]', 'allows you to look, not to change');
    await until('off', async () => await page.getByRole('button', { name: 'Pause', exact: true }).isDisabled());
    await until('off', async () => await page.getByRole('button', { name: 'Purge' }).isDisabled());
  }, { expected }));
});
