// Narrow and wide screens, light and dark, use with the keyboard only, and many tasks and queues.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { expectNoSidewaysScroll, shows, startServer, until, withPage } from './harness.mjs';
import { fill } from './lifelike.mjs';

const VIEWS = ['now', 'wheel', 'forecast', 'queues', 'queue/hooks', 'tasks', 'tasks?state=dead', 'errors', 'workers', 'schedules', 'schedule', 'schedule/month-end-report', 'schedule/invoices/edit', 'cluster'];

/** Text that nobody can read: it is off the screen, in a cut column, or a date on two lines. */
const unreadable = (page) => page.evaluate(() => {
  const faults = [];
  for (const element of document.querySelectorAll('header *, nav *, main *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    const { right, left, width } = element.getBoundingClientRect();
    // Long payloads end with an ellipsis, and names for screen readers only are clipped.
    if (!hasText || width <= 1 || element.closest('pre, .uplot, thead, .cut') || getComputedStyle(element).clipPath !== 'none') continue;
    const isCut = right > innerWidth + 1 || left < -1;
    if (isCut) faults.push(`off the screen: ${element.tagName} ${element.textContent.slice(0, 30)}`);
  }
  for (const table of document.querySelectorAll('main .table')) {
    if (table.scrollWidth > table.clientWidth + 1) faults.push(`${table.scrollWidth - table.clientWidth} px of a table are cut off`);
  }
  for (const span of document.querySelectorAll('time span')) {
    if (new Set([...span.getClientRects()].map(({ top }) => Math.round(top))).size > 1) faults.push(`a date on two lines: ${span.textContent}`);
  }
  return [...new Set(faults)];
});

describe('The page', () => {
  let server;
  let id;
  before(async () => {
    server = await startServer();
    await fill(server.url);
    const long = 'x'.repeat(300);
    ({ id } = await server.call('POST', '/v1/tasks', { queue: 'q'.repeat(200), key: 'k'.repeat(200), payload: { long }, delay: '0s' }));
    const { tasks: [{ lease }] } = await server.call('POST', `/v1/queues/${'q'.repeat(200)}/lease`, { wait: '5s', worker: 'w'.repeat(200) });
    await server.call('POST', '/v1/leases/fail', { leases: [lease], error: 'e'.repeat(400), delay: '1h' });
  });
  after(() => server.stop());

  for (const [name, width] of [['a phone', 390], ['a small phone', 320], ['a tablet', 768], ['half a desk', 900], ['a desk', 1440]]) {
    test(`fits ${name}`, () => withPage(server, '', async (page) => {
      for (const view of [...VIEWS, 'task/' + id, 'tasks?queue=' + 'q'.repeat(200), 'queue/' + 'q'.repeat(200)]) {
        await page.goto(`${server.url}/#/${view}`);
        await page.locator('h1').first().waitFor();
        await until(view + ' is filled', () => page.evaluate(() => document.querySelector('main').innerText.length > 80));
        await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
        await expectNoSidewaysScroll(page, view);
        assert.deepEqual(await unreadable(page), [], view);
      }
    }, { viewport: { width, height: 740 } }));
  }

  for (const width of [800, 1000, 1200, 1440]) {
    test(`has the buttons of a queue within its card, ${width} px`, () => withPage(server, 'queues', async (page) => {
      await page.locator('td.actions button:visible').first().waitFor();
      const rooms = await page.evaluate(() => [...document.querySelectorAll('td.actions button')].map((button) =>
        button.closest('.card').getBoundingClientRect().right - button.getBoundingClientRect().right));
      assert.ok(rooms.length > 8 && rooms.every((room) => room >= 8), `px to the card's edge: ${rooms}`);
    }, { viewport: { width, height: 740 } }));
  }

  test('has every column of the queues and the schedules on a tablet, and their actions in a menu', () => withPage(server, 'queues', async (page) => {
    const cut = (table) => page.getByRole('table', { name: table }).evaluate((element) => element.scrollWidth - element.closest('.table').clientWidth);
    await shows(page, 'td', 'thumbnails');
    assert.ok(await cut('Queues') <= 0, `${await cut('Queues')} px are cut off`);
    await page.getByRole('button', { name: 'Actions of thumbnails' }).click();
    const menu = await page.locator('.menu > :popover-open').evaluate((element) => element.getBoundingClientRect().toJSON());
    assert.ok(menu.width < 200 && menu.height < 300, `the menu has ${menu.width} × ${menu.height} px`);
    await page.getByRole('button', { name: 'Resume' }).click();
    await shows(page, '#messages', 'thumbnails is resumed');
    await server.call('POST', '/v1/queues/thumbnails/pause');
    await page.goto(`${server.url}/#/schedules`);
    await shows(page, 'td', 'cleanup');
    assert.ok(await cut('Schedules') <= 0, `${await cut('Schedules')} px are cut off`);
  }, { viewport: { width: 768, height: 900 } }));

  test('lays out forms, cards and headings without a cut or a gap', () => withPage(server, 'schedule', async (page) => {
    await page.getByLabel('Missed occurrences').waitFor();
    // A select that is narrower than its content cuts the text off.
    const cut = await page.evaluate(() => [...document.querySelectorAll('select')].filter((select) => select.offsetParent !== null).filter((select) => {
      const copy = select.cloneNode(true);
      copy.className = 'measured';
      document.body.append(copy);
      const isCut = copy.getBoundingClientRect().width > select.getBoundingClientRect().width + 1;
      copy.remove();
      return isCut;
    }).map((select) => select.labels[0].textContent));
    assert.deepEqual(cut, []);
    for (const view of [...VIEWS, 'task/' + id]) {
      await page.goto(`${server.url}/#/${view}`);
      await page.locator('h1').first().waitFor();
      await until(view + ' is filled', () => page.evaluate(() => document.querySelector('main').innerText.length > 80));
      const found = await page.evaluate(() => {
        const levels = [...document.querySelectorAll('main :is(h1, h2, h3)')].map(({ tagName }) => Number(tagName[1]));
        const cards = [...document.querySelectorAll('main .card')].map((card) => [card, card.getBoundingClientRect()]).filter(([, { height }]) => height > 0);
        const touching = cards.filter(([card, { bottom, left, right }]) => cards.some(([other, at]) => other !== card && !card.contains(other) && !other.contains(card) &&
          at.left < right && at.right > left && at.top >= bottom - 1 && at.top < bottom + 4));
        return { skipped: levels.filter((level, i) => level > (levels[i - 1] ?? 0) + 1), touching: touching.map(([card]) => card.innerText.slice(0, 30)) };
      });
      assert.deepEqual(found, { skipped: [], touching: [] }, view);
    }
  }, { viewport: { width: 1440, height: 900 } }));

  test('has each line of a card over its whole width on a phone', () => withPage(server, 'schedules', async (page) => {
    await shows(page, 'td', 'cleanup');
    const rights = await page.evaluate(() => [...document.querySelectorAll('tbody tr:first-child td:not(.actions, .title)')].map((cell) => Math.round(cell.getBoundingClientRect().right)));
    assert.equal(new Set(rights).size, 1, rights.join());
  }, { viewport: { width: 390, height: 844 } }));

  test('is dark where the system is, and switches', () => withPage(server, 'now', async (page) => {
    await shows(page, '.status', 'live');
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await back();
    assert.match(dark, /^rgb\(1\d, 2\d, 2\d\)$/);
    await page.getByRole('button', { name: 'Light or dark' }).click();
    assert.notEqual(await back(), dark);
    await page.reload();
    await shows(page, '.status', 'live');
    assert.notEqual(await back(), dark);
  }, { colorScheme: 'dark' }));

  for (const colorScheme of ['light', 'dark']) {
    test(`has text that can be read, ${colorScheme}`, () => withPage(server, 'now', async (page) => {
      await shows(page, '.verdict', 'not taken');
      const poor = await page.evaluate(() => {
        const parse = (text) => text.match(/[\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
          .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const backOf = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
          }
          return [255, 255, 255];
        };
        const found = [];
        for (const element of document.querySelectorAll('body *')) {
          const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
          if (!hasText || element.offsetParent === null || element.closest('svg, .u-legend')) continue;
          const [a, b] = [light(parse(getComputedStyle(element).color)), light(backOf(element))].sort((x, y) => y - x);
          const contrast = (a + 0.05) / (b + 0.05);
          if (contrast < 4.5) found.push(`${element.className || element.tagName} ${contrast.toFixed(2)} ${element.textContent.slice(0, 20)}`);
        }
        return found;
      });
      assert.deepEqual(poor, []);
    }, { colorScheme }));
  }

  test('is used with the keyboard alone', () => withPage(server, 'now', async (page) => {
    await shows(page, '.status', 'live');
    for (const [key, heading] of [['w', 'The wheel'], ['f', 'Forecast'], ['q', 'Queues'], ['t', 'Tasks'], ['e', 'Errors'], ['o', 'Workers'], ['s', 'Schedules'], ['c', 'Cluster'], ['n', 'Now']]) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await shows(page, 'h1', heading);
    }
    await page.keyboard.press('?');
    await shows(page, 'dialog', 'search for a task');
    await page.keyboard.press('Escape');
    await until('closed', async () => await page.locator('dialog').count() === 0);
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    await shows(page, 'td', 'thumbnails');
    const resume = page.getByRole('row', { name: /thumbnails/ }).getByRole('button', { name: 'Resume' });
    for (let i = 0; i < 80; ++i) {
      if (await resume.evaluate((button) => button === document.activeElement)) break;
      await page.keyboard.press('Tab');
    }
    assert.ok(await resume.evaluate((button) => getComputedStyle(button).outlineStyle !== 'none'), 'the focus is seen');
    await page.keyboard.press('Enter');
    await until('resumed', async () => !(await server.call('GET', '/v1/queues/thumbnails')).settings.paused);
  }));

  test('does nothing to what is typed', () => withPage(server, 'queues', async (page) => {
    await page.getByLabel('Filter queues by name').fill('');
    await page.getByLabel('Filter queues by name').pressSequentially('gw?/d');
    assert.equal(await page.getByLabel('Filter queues by name').inputValue(), 'gw?/d');
    await shows(page, 'h1', 'Queues');
  }));

  test('has a name for everything that can be pressed or filled in', () => withPage(server, '', async (page) => {
    for (const view of [...VIEWS, 'task/' + id]) {
      await page.goto(`${server.url}/#/${view}`);
      await page.locator('h1').first().waitFor();
      await until(view + ' is filled', () => page.evaluate(() => document.querySelector('main').innerText.length > 80));
      const nameless = await page.evaluate(() => [...document.querySelectorAll('button, a, input, select, textarea')]
        .filter((element) => !(element.textContent.trim() || element.getAttribute('aria-label') || element.labels?.length))
        .map((element) => element.outerHTML.slice(0, 120)));
      assert.deepEqual(nameless, [], view);
    }
  }));
});

describe('200,000 tasks over 500 queues', () => {
  let server;
  before(async () => {
    server = await startServer();
    for (let part = 0; part < 20; ++part) {
      await server.call('POST', '/v1/tasks/batch', Array.from({ length: 10_000 }, (_, i) => {
        const n = part * 10_000 + i;
        return { queue: `shop-${n % 500}`, delay_ms: 600_000 + (n * 7_919) % 86_400_000 };
      }));
    }
  });
  after(() => server.stop());

  test('are shown in every view', () => withPage(server, 'now', async (page) => {
    await shows(page, '.tile', /scheduled\s*200\sk/);
    for (const [view, selector, text] of [['queues', 'main', '500 queues'],
      ['forecast?span=day', 'main', /1\d\d,\d{3} tasks due from/], ['tasks', 'main', 'The first 100 tasks'],
      ['tasks?queue=shop-499', 'main', 'The first 100 tasks'], ['wheel', 'main', /more tasks wait on disk/]]) {
      await page.goto(`${server.url}/#/${view}`);
      await shows(page, selector, text);
    }
  }));

  test('leave the queues quick to filter and sort', () => withPage(server, 'queues', async (page) => {
    await shows(page, 'main', '500 queues');
    await shows(page, '.pager', '1 to 100 of 500');
    await page.getByRole('button', { name: 'Scheduled' }).click();
    await page.getByLabel('Filter queues by name').fill('shop-49');
    await until('eleven', async () => await page.locator('tbody tr').count() === 11);
  }));
});
