// The views Wheel, Forecast and Cluster.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { shows, startServer, until, withPage } from './harness.mjs';

describe('The wheel, the forecast and the cluster', () => {
  let server;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/v1/tasks/batch', Array.from({ length: 40 }, () => ({ queue: 'soon', delay: '5m' })));
    await server.call('POST', '/v1/tasks/batch', Array.from({ length: 30 }, () => ({ queue: 'later', delay: '20d' })));
    await server.call('POST', '/v1/tasks', { queue: 'soon', delay: '4m' });
  });
  after(() => server.stop());

  /** The position of a slot on the canvas, in pixels; wheel_draw.js places the rings in the same way. */
  const placeOf = (size, levels, level, slot) => {
    const inner = size * 0.11;
    const radius = inner + (level + 0.5) * ((size * 0.49 - inner) / levels);
    const turn = ((slot + 0.5) / 256) * 2 * Math.PI;
    return { x: size / 2 + radius * Math.sin(turn), y: size / 2 - radius * Math.cos(turn) };
  };

  test('the wheel shows its slots, tells the one under the pointer, and lists its tasks', () => withPage(server, 'wheel', async (page) => {
    await shows(page, '.tip', '41 timers');
    await shows(page, 'main', '30 more tasks wait on disk');
    // A task due in five minutes is on level 2, or on level 3 shortly before a turn of level 2 ends.
    const { levels } = await server.call('GET', '/v1/wheel');
    const rings = Math.max(3, levels.findLastIndex(({ slots }) => slots.length > 0) + 1);
    const { level, slots } = levels.find(({ slots: some }) => some.some(({ count }) => count >= 40));
    const full = slots.find(({ count }) => count >= 40);
    const box = await page.locator('canvas').boundingBox();
    const place = placeOf(box.width, rings, level, full.slot);
    await page.mouse.move(box.x + place.x, box.y + place.y);
    await shows(page, '.tip', `level ${level}, slot ${full.slot}`);
    await shows(page, '.tip', `${full.count} timers`);
    await page.mouse.click(box.x + place.x, box.y + place.y);
    await shows(page, 'h1', 'Tasks');
    await until('its tasks', async () => await page.locator('tbody tr').count() === full.count);
  }));

  test('the wheel draws its slots, and the hands move', () => withPage(server, 'wheel', async (page) => {
    await shows(page, '.tip', '41 timers');
    const pixels = () => page.locator('canvas').evaluate((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) sum = (sum * 31 + data[i] + 3 * data[i + 1] + 5 * data[i + 2]) | 0;
      return sum;
    });
    const first = await pixels();
    await until('another picture', async () => await pixels() !== first);
  }, { expected: [/willReadFrequently/] }));

  test('the wheel has its fullest slots as a table, for those who do not point', () => withPage(server, 'wheel', async (page) => {
    await page.getByRole('row', { name: /level [23], slot \d+/ }).first().waitFor();
    await page.getByRole('link', { name: /level [23], slot/ }).first().press('Enter');
    await shows(page, 'h1', 'Tasks');
  }));

  test('the wheel names its hands, streaks and fullest slot', () => withPage(server, 'wheel', async (page) => {
    await shows(page, '.legend', /a hand: the present time.*a streak: tasks that fall/);
    await page.getByRole('link', { name: /^Open the fullest slot: 4[01] timers/ }).click();
    await until('its tasks', async () => await page.locator('tbody tr').count() >= 40);
  }));

  test('the wheel stands still for who wants no motion', () => withPage(server, 'wheel', async (page) => {
    await shows(page, '.tip', '41 timers');
    const frames = await page.evaluate(() => new Promise((resolve) => {
      let drawn = 0;
      const real = CanvasRenderingContext2D.prototype.drawImage;
      CanvasRenderingContext2D.prototype.drawImage = function count(...given) {
        ++drawn;
        return real.apply(this, given);
      };
      let left = 20;
      const next = () => (--left > 0 ? requestAnimationFrame(next) : resolve(drawn));
      requestAnimationFrame(next);
    }));
    assert.ok(frames <= 2, `${frames} drawings in 20 frames`);
  }, { reducedMotion: 'reduce' }));

  test('the forecast counts what is due in a span, and what is later', () => withPage(server, 'forecast', async (page) => {
    await shows(page, 'main', /41 tasks due from/);
    await shows(page, '.note', '30 later');
    await page.getByRole('button', { name: 'month', exact: true }).click();
    await shows(page, 'main', /71 tasks due from/);
    assert.equal(await page.getByRole('button', { name: 'month', exact: true }).getAttribute('aria-pressed'), 'true');
    await shows(page, 'tbody tr', /41$/);
  }));

  test('the forecast counts one queue, and has a linear scale', () => withPage(server, 'forecast?span=month', async (page) => {
    await shows(page, 'main', /71 tasks due from/);
    await page.getByLabel('Queue').fill('later');
    await shows(page, 'main', /30 tasks due from/);
    const chart = await page.locator('.u-axis canvas, .chart canvas').first().evaluate((canvas) => canvas.toDataURL());
    await page.getByRole('button', { name: 'linear' }).click();
    await until('another scale', async () => await page.locator('.chart canvas').first().evaluate((canvas) => canvas.toDataURL()) !== chart);
    await page.getByRole('table', { name: 'The busiest times' }).getByRole('link').first().click();
    await until('its tasks', async () => await page.locator('tbody tr').count() === 30);
  }));

  test('the forecast is zoomed by dragging and lists a bar when pressed', () => withPage(server, 'forecast?span=month', async (page) => {
    await shows(page, 'main', /71 tasks due from/);
    const over = await page.locator('.u-over').boundingBox();
    const y = over.y + over.height / 2;
    await page.mouse.move(over.x + over.width * 0.6, y);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * 0.75, y, { steps: 5 });
    await page.mouse.up();
    await shows(page, 'main', /30 tasks due from/);
    await page.getByRole('button', { name: 'Zoom out' }).click();
    await shows(page, 'main', /71 tasks due from/);
    await page.mouse.click(over.x + 4, y);
    await shows(page, 'h1', 'Tasks');
    await until('those of the first bar', async () => await page.locator('tbody tr').count() === 41);
  }));

  test('the forecast zooms into a minute of a far month', () => withPage(server, 'forecast?span=year', async (page) => {
    await shows(page, 'main', /71 tasks due from/);
    for (let i = 0; i < 3; ++i) {
      const over = await page.locator('.u-over').boundingBox();
      const answered = page.waitForResponse((response) => response.url().includes('/v1/forecast'));
      await page.mouse.move(over.x + over.width * 0.7, over.y + 50);
      await page.mouse.down();
      await page.mouse.move(over.x + over.width * 0.72, over.y + 50, { steps: 3 });
      await page.mouse.up();
      assert.equal((await answered).status(), 200);
    }
    await shows(page, 'main', /tasks due from/);
  }));

  test('an address that was cut in the middle of an escape is a task that is not there', () => withPage(server, 'task/%', async (page) => {
    await shows(page, 'main', 'There is no such task here');
  }, { expected: [/404/] }));

  test('the cluster is one server, which tells its facts', () => withPage(server, 'cluster', async (page) => {
    await shows(page, '.verdict', 'This server is not part of a cluster');
    await shows(page, '.facts', (await server.call('GET', '/v1/stats')).version);
    await shows(page, '.facts', server.url);
  }));
});
