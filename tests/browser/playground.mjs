// The playground of timer queues in a real browser, from its file, in English and in Chinese. It adds
// and cancels timers, turns time, and shows the queues. The page may request nothing but itself.
//
//   node tests/browser/playground.mjs
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { expectNoSidewaysScroll, shows, startBrowser, stopBrowser, withPageAt } from './harness.mjs';

const PLAYGROUND = new URL('../../docs/playground/index.html', import.meta.url).href;

describe('The playground', () => {
  before(startBrowser);
  after(stopBrowser);

  const withPlayground = (use, { query = '', ...options } = {}) => withPageAt(PLAYGROUND, query, async (page) => {
    await page.locator('body[data-ready=yes]').waitFor();
    await use(page);
  }, options);
  const press = (page, name) => page.getByRole('button', { name, exact: true }).click();
  const jump = async (page, tick, button = 'Jump') => {
    await page.locator('#goal').fill(String(tick));
    await press(page, button);
  };
  /** Chooses a design and its sizes in a panel. */
  const choose = async (page, panel, design, sizes) => {
    await page.locator(`${panel} .design`).selectOption(design);
    if (sizes === undefined) return;
    await page.locator(`${panel} .sizes`).fill(sizes);
    await page.locator(`${panel} .sizes`).press('Enter');
    await page.locator(`${panel} .sizes`).blur();
  };
  const example = (page, name) => page.locator('#example').selectOption({ label: name });
  const figure = (page, panel, name) => page.locator(`${panel} dd.${name}`).innerText();
  /** The slots of a level that have timers, as '5: 350'. */
  const slots = (page, panel, level) => page.locator(`${panel} [data-level="${level}"] .chips span`).allInnerTexts();
  /** What the table says about a timer in both panels. */
  const outcomes = async (page, timer) => (await page.locator(`tr[data-timer="${timer}"] td`).allInnerTexts()).slice(2, 4);
  const plain = (text) => text.replaceAll('\u00a0', ' ');

  test('shows levels, overflow, the cascade and the delay queue of one timer', () => withPlayground(async (page) => {
    assert.deepEqual(await slots(page, '#left', 0), ['5: 125']);
    assert.deepEqual(await slots(page, '#left', 1), ['5: 350', '16: 1000']);
    assert.equal(await figure(page, '#left', 'next-wake-up'), '125');
    await shows(page, '#left .log', 'tick 117: 350 goes to level 1, slot 5: it overflows');
    assert.deepEqual(await slots(page, '#right', 1), ['17: 350']);
    await shows(page, '#right .picture', 'delay queue');
    await shows(page, '#right .chips span', '340: 1/17');
    await jump(page, 300);
    assert.deepEqual(await slots(page, '#left', 0), ['50: 350']);
    await shows(page, '#left .log', 'tick 300: 350 cascades from level 1, slot 5 to level 0, slot 50');
    await jump(page, 340);
    assert.deepEqual(await slots(page, '#right', 0), ['10: 350']);
    assert.equal(await figure(page, '#left', 'next-wake-up'), '350');
    await press(page, 'To the next wake-up');
    await shows(page, '#now', '350');
    assert.deepEqual(await outcomes(page, 2), ['fired at 350, on time', 'fired at 350, on time']);
  }));

  test('adds, cancels and turns time tick by tick', () => withPlayground(async (page) => {
    await page.locator('#delay').fill('3');
    await press(page, 'Add a timer');
    await press(page, 'Add a timer');
    await page.locator('tr[data-timer="5"] button').click();
    await press(page, '+1 tick');
    await press(page, '+1 tick');
    assert.deepEqual(await outcomes(page, 4), ['pending', 'pending']);
    await press(page, '+1 tick');
    assert.deepEqual(await outcomes(page, 4), ['fired at 120, on time', 'fired at 120, on time']);
    assert.deepEqual(await outcomes(page, 5), ['cancelled', 'cancelled']);
    assert.equal(await figure(page, '#right', 'schedules'), '5');
    assert.equal(await figure(page, '#right', 'cancels'), '1');
    assert.equal(await figure(page, '#right', 'fired'), '1');
    assert.equal(await figure(page, '#right', 'pending'), '3');
  }));

  test('plays until it is told to stop', () => withPlayground(async (page) => {
    await press(page, 'Play');
    await shows(page, '#left .log', 'tick 125: 125 fires');
    await press(page, 'Play');
    assert.equal(await page.locator('#play').getAttribute('aria-pressed'), 'false');
  }));

  for (const [design, sizes] of [['simple', '2000'], ['hashed', '8'], ['hierarchical', '20,20,20'], ['ticking', '60,60,24'], ['demand', '5'], ['timer'], ['dense'],
    ['fifo'], ['heap'], ['tree'], ['list']]) {
    test(`fires the same timers on time: ${design}`, () => withPlayground(async (page) => {
      await press(page, 'Add 10 random timers');
      await jump(page, 2000);
      await choose(page, '#left', design, sizes); // repeats all commands
      for (let timer = 1; timer <= 13; ++timer) assert.match((await outcomes(page, timer))[0], /^fired at \d+, on time$/, `timer ${timer}`);
      assert.equal(await figure(page, '#left', 'fired'), '13');
      assert.equal(await figure(page, '#left', 'pending'), '0');
      assert.ok(Number(plain(await figure(page, '#left', 'bytes-of-the-queue')).replaceAll(' ', '')) > 50);
    }));
  }

  test('shows the rounds of a ring, and refuses what is beyond a round', () => withPlayground(async (page) => {
    await choose(page, '#left', 'hashed', '64');
    await choose(page, '#right', 'simple', '256');
    assert.deepEqual(await slots(page, '#left', 0), ['30: 350 (3 rounds)', '40: 1000 (13 rounds)', '61: 125']);
    assert.deepEqual(await outcomes(page, 3), ['pending', 'refused']);
  }));

  test('says which sizes a queue refuses', () => withPlayground(async (page) => {
    await choose(page, '#left', 'hierarchical', '60,1');
    await shows(page, '#left .note', 'level_sizes[1] is 1: a level has at least 2 slots');
    await choose(page, '#left', 'hierarchical', 'sixty');
    await shows(page, '#left .note', 'Sizes are numbers');
    await choose(page, '#left', 'hierarchical', '60,60');
    assert.deepEqual(await slots(page, '#left', 1), ['5: 350', '16: 1000']);
  }));

  test('refuses ticks and delays that are no numbers, and a step back', () => withPlayground(async (page) => {
    await jump(page, 'soon');
    await shows(page, '#fault', "The tick must be a whole number from 0 to 9 000 000 000 000 000, got 'soon'");
    await jump(page, 5);
    await shows(page, '#fault', 'Time moves only forward');
    await shows(page, '#now', '117');
  }));

  // The wrong and the right result of each known failure, as in tests/regress/classic/cases.md.
  const on = (tick) => `fired at ${tick}, on time`;
  const CASES = [
    ['SW_ALIAS: a delay of more than a round', [['fired at 1, 7 early', on(8)], ['fired at 2, 7 early', on(9)], ['fired at 3, 7 early', on(10)],
      ['fired at 1, 15 early', on(16)], ['fired at 2, 15 early', on(17)]]],
    ['LK_FULL_TURN: a delay of exactly one round', [['fired at 1, 9 early', on(10)], ['fired at 11, 9 early', on(20)]]],
    ['HW_OWN_EXAMPLE: 5 seconds, 2 minutes, 1 hour', [['fired at 6, 1 late', on(5)], ['fired at 180, 60 late', on(120)], ['fired at 7200, 3600 late', on(3600)]]],
    ['HW_NO_CASCADE: all of a minute at once', [['fired at 120, 60 late', on(60)], ['fired at 120, 45 late', on(75)], ['fired at 120, 30 late', on(90)],
      ['fired at 120, 1 late', on(119)]]],
    ['HW_SILENT_LOSS: more than a day', [['overdue', 'refused']]],
    ['EW_360_365: a year of 360 days', [['fired at 43 200, 600 early', on('43 800')]]],
    ['KW_003_PARTIAL_SLOT: the delay decides the slot', [['fired at 399, 2 early', on(401)]]],
    ['DW_UNDRIVEN: a level that stands still', [[on(7), on(7)], ['overdue', on(123)]]],
    ['KW_EARLY_FLOOR: rounded down', [['fired at 1000, 195 early', 'fired at 2000, 805 late'], ['fired at 2000, 295 early', 'fired at 3000, 705 late'],
      ['fired at 2000, 995 early', 'fired at 3000, 5 late']]],
  ];
  for (const [name, expected] of CASES) {
    test(`replays ${name}`, () => withPlayground(async (page) => {
      await example(page, name);
      await press(page, 'Run to the end');
      for (const [index, both] of expected.entries()) assert.deepEqual((await outcomes(page, index + 1)).map(plain), both, `timer ${index + 1}`);
    }));
  }

  test('replays HW_CANCEL_AFTER_PROMOTE: a cancelled timer fires', () => withPlayground(async (page) => {
    await example(page, 'HW_CANCEL_AFTER_PROMOTE: a cancelled timer fires');
    await press(page, 'Run to the end');
    assert.deepEqual(await outcomes(page, 1), ['fired at 150, although it was cancelled', 'fired at 90, on time']);
  }));

  describe('in Chinese', () => {
    const inChinese = (use) => withPlayground(use, { query: '?lang=zh' });
    /** All texts that a reader sees or hears, without code and without the name of the other language. */
    const texts = (page) => page.evaluate(() => {
      const hidden = 'script, style, template, code, #language';
      const found = [document.title];
      for (const element of document.querySelectorAll('[title], [aria-label]')) found.push(element.title, element.getAttribute('aria-label') ?? '');
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest(hidden) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
      while (walker.nextNode()) found.push(walker.currentNode.data);
      return [...new Set(found.map((text) => text.trim()).filter((text) => text !== ''))];
    });
    // Types, options and cases have names that are not translated.
    const NAMES = /\b(?:Detent|Kafka|(?:[A-Z][a-z]+){2,}|[A-Z]{2}_[A-Z0-9_]+|(?:slot|level|slots)_[a-z_]+)\b/g;
    const expectChinese = async (page, what) => {
      const all = await texts(page);
      assert.ok(all.length > 60, `${what}: only ${all.length} texts`);
      assert.deepEqual(all.filter((text) => /[a-z]/i.test(text.replace(NAMES, ''))), [], what);
    };
    const names = (page, selector) => page.locator(`${selector} option`).evaluateAll((options) => options.map(({ value }) => value));

    test('has no English word on any example, before and after its end', () => inChinese(async (page) => {
      for (const value of await names(page, '#example')) {
        await page.locator('#example').selectOption(value);
        await expectChinese(page, `example ${value}`);
        await press(page, '运行到结尾');
        await press(page, '随机添加 10 个');
        await expectChinese(page, `the end of example ${value}`);
      }
    }));

    test('has no English word on any design', () => inChinese(async (page) => {
      await press(page, '随机添加 10 个');
      await page.locator('tr[data-timer="4"] button').click();
      await page.locator('tr[data-timer="4"] button').click();
      await jump(page, 200, '跳转');
      for (const design of await names(page, '#left .design')) {
        await choose(page, '#left', design);
        await expectChinese(page, design);
      }
    }));

    test('has no English word in a complaint', () => inChinese(async (page) => {
      const complaints = [['#goal', '跳转', '-', '刻度必须是'], ['#goal', '跳转', '5', '时间只能前进'], ['#delay', '添加定时器', '', '延迟必须是']];
      for (const [field, button, value, words] of complaints) {
        await page.locator(field).fill(value);
        await press(page, button);
        await shows(page, '#fault', words);
        await expectChinese(page, words);
      }
      for (const [design, sizes, words] of [['hierarchical', '60,1', 'level_sizes[1] 是 1：一层至少有 2 个槽'], ['hierarchical', '60;60', '半角逗号'],
        ['hierarchical', '', '至少有一层'], ['hierarchical', '900000000,900000000', '至多有'], ['hierarchical', '60000,60000,60000,60000,60000', '超出 64 位'],
        ['demand', '1', 'slots_per_level 是 1'], ['demand', '20,0', 'slot_width 是 0'], ['simple', '0', 'slot_count 是 0'], ['hashed', '999999999', 'slot_count 是 999999999'],
        ['published-kafka', '1', '已发表的时间轮的大小是 2 到 10000'], ['published-relative', '0', '乘积至多'], ['published-circle', '999999999', '乘积至多'],
        ['published-relative', '10000,10000,10000', '乘积至多']]) {
        await choose(page, '#left', design, sizes);
        await shows(page, '#left .note', words);
        await expectChinese(page, `${design} ${sizes}`);
      }
      await page.locator('#example').selectOption({ label: 'SW_ALIAS：延迟超过一圈' });
      await jump(page, 3_000_000, '跳转');
      await shows(page, '#fault', '至多跳 2 000 000 个刻度');
      for (let tens = 0; tens < 50; ++tens) await press(page, '随机添加 10 个');
      await shows(page, '#fault', '至多容纳 500 个定时器');
    }));

    test('says what happens to a timer', () => inChinese(async (page) => {
      await shows(page, '#left .log', '刻度 117：350 溢出到第 1 层，第 5 槽');
      await jump(page, 300, '跳转');
      await shows(page, '#left .log', '刻度 300：350 降级，从第 1 层第 5 槽到第 0 层第 50 槽');
      await jump(page, 350, '跳转');
      assert.deepEqual(await outcomes(page, 2), ['在 350 准时触发', '在 350 准时触发']);
      await choose(page, '#left', 'hashed', '64');
      assert.deepEqual(await slots(page, '#left', 0), ['40: 1000（剩余轮次 10）']);
    }));
  });

  const language = (page) => page.locator('html').getAttribute('lang');
  test('begins in the language of the browser, or of its address', async () => {
    await withPlayground(async (page) => assert.equal(await language(page), 'zh-CN'), { locale: 'zh-TW' });
    await withPlayground(async (page) => assert.equal(await language(page), 'en'), { locale: 'zh-CN', query: '?lang=en' });
    await withPlayground(async (page) => assert.equal(await language(page), 'en'), { locale: 'fr' });
    await withPlayground(async (page) => assert.equal(await language(page), 'zh-CN'), { locale: 'fr', query: '?lang=zh' });
  });

  test('changes its language, keeps its state, and remembers the language', () => withPlayground(async (page) => {
    await jump(page, 300);
    const english = await page.locator('body').innerText();
    await press(page, '中文');
    await shows(page, 'h1', '时间轮试验场');
    await shows(page, '#now', '300');
    await shows(page, '#left .log', '刻度 300：350 降级');
    assert.equal(await page.locator('#example').evaluate((choice) => choice.selectedOptions[0].text), '一个定时器，两种设计');
    await press(page, 'English');
    assert.equal(await page.locator('body').innerText(), english);
    assert.deepEqual(english.match(/[\u4e00-\u9fff]+/g), ['中文']);
    await press(page, '中文');
    await page.reload();
    await page.locator('body[data-ready=yes]').waitFor();
    assert.equal(await language(page), 'zh-CN');
  }));

  for (const query of ['?lang=en', '?lang=zh']) {
    test(`fits a phone: ${query}`, () => withPlayground((page) => expectNoSidewaysScroll(page, 'the playground'), { query, viewport: { width: 360, height: 740 } }));
  }
});
