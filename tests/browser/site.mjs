// The site of the documentation in a real browser: its search in both languages, its colours, and no
// request to another server.
//
//   node tests/browser/site.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { shows, startBrowser, stopBrowser, until, withPageAt } from './harness.mjs';

const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png' };

/** Serves the files of a folder on a free port. Resolves with the server. */
function serve(folder) {
  const server = http.createServer((request, response) => {
    const file = path.join(folder, decodeURIComponent(new URL(request.url, 'http://x').pathname));
    const name = fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() ? path.join(file, 'index.html') : file;
    fs.readFile(name, (error, content) => {
      response.writeHead(error ? 404 : 200, { 'content-type': TYPES[path.extname(name)] ?? 'text/plain' });
      response.end(content);
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

describe('The site', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-site-'));
  let server;
  let base;
  before(async () => {
    const build = fileURLToPath(new URL('../../tools/site/build', import.meta.url));
    const run = spawnSync(build, [path.join(folder, 'site')], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
    server = await serve(path.join(folder, 'site'));
    base = `http://127.0.0.1:${server.address().port}/`;
    await startBrowser();
  });
  after(async () => {
    await stopBrowser();
    server.close();
    fs.rmSync(folder, { recursive: true });
  });

  /** Types a query. The search notices released keys only. */
  const type = async (page, query) => {
    await page.locator('.md-search__input').fill(query);
    await page.locator('.md-search__input').press('End');
  };

  /** The pages that the search finds for a query, best first. */
  const found = async (page, query) => {
    await type(page, query);
    const links = page.locator('.md-search-result__link');
    await links.first().waitFor();
    return links.evaluateAll((all) => all.map((link) => new URL(link.href).pathname));
  };

  for (const [query, target] of [['kafka bucket', '/designs/kafka-wheel.html'], ['next_wakeup', '/internals/wheel.html'],
    ['--external-after', '/guides/external-scheduler.html'], ['层级时间轮', '/zh/designs/hierarchical-wheel.html'], ['溢出轮', '/zh/designs/kafka-wheel.html'],
    ['取消定时器', '/zh/guides/scheduler.html']]) {
    test(`finds ${target} for '${query}'`, () => withPageAt(base, 'index.html', async (page) => {
      const pages = await found(page, query);
      assert.ok(pages.some((address) => address.startsWith(target)), pages.join(' '));
    }));
  }

  test('finds nothing for words that no page has', () => withPageAt(base, 'zh/index.html', async (page) => {
    await found(page, '时间轮');
    await type(page, '鸵鸟');
    await shows(page, '.md-search-result__meta', '没有找到');
  }));

  test('speaks the language of the page, and leads to the same page in the other language', () =>
    withPageAt(base, 'designs/kafka-wheel.html', async (page) => {
      assert.equal(await page.locator('html').getAttribute('lang'), 'en');
      await page.locator('.md-select__link[hreflang=zh]').evaluate((link) => link.click());
      await page.waitForURL(base + 'zh/designs/kafka-wheel.html');
      assert.equal(await page.locator('html').getAttribute('lang'), 'zh');
    }));

  /** The colour of the first pixel of the figure, as the page shows it. */
  const corner = (page) => page.locator('article img').first().evaluate(async (image) => {
    await image.decode();
    const canvas = document.createElement('canvas');
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return [...context.getImageData(2, 2, 1, 1).data].slice(0, 3);
  });
  for (const target of ['designs/kafka-wheel.html', 'guides/choosing-a-queue.html', 'internals/wheel.html', 'benchmarks.html']) {
    test(`draws the figures of ${target} light and dark`, () => withPageAt(base, target, async (page) => {
      const light = await corner(page);
      assert.ok(Math.min(...light) > 200, `light: ${light}`);
      await page.locator('label[for=__palette_2]').click();
      await until('the figure is dark', async () => Math.max(...await corner(page)) < 60);
    }, { colorScheme: 'light' }));
  }
});
