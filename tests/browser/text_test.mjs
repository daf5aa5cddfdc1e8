// The modules that only compute and write text: JSON as text, histograms, durations, choices, reasons.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import './no_browser.mjs';
import { lonely, rangeOf, stepsFrom, timeTexts, topOf } from '../../dashboard/chart.js';
import { groupsOf } from '../../dashboard/errors.js';
import { compact, duration, durationText, plural, rate } from '../../dashboard/format.js';
import { ofCounts, quantile, since } from '../../dashboard/histogram.js';
import { sampleOf } from '../../dashboard/queue_feed.js';
import { changesOf } from '../../dashboard/queue_settings.js';
import { indented, rawMember, withRaw } from '../../dashboard/raw_json.js';
import { choices, curlOf } from '../../dashboard/task_actions.js';
import { readSearch, shapeOf } from '../../dashboard/task_search.js';
import { alignedStart } from '../../dashboard/wheel_draw.js';
import { byWorker } from '../../dashboard/workers.js';
import { causesOf, lateTasks, timeSpent, whyLate, whyQueueWaits } from '../../dashboard/why.js';

const plain = (text) => text.replaceAll('\u00a0', ' ');

test('a payload stays byte for byte', () => {
  const text = '{"id":"1","headers":{"payload":"no","x":"}\\",\\"payload\\":2"},"payload":{ "n" : 12345678901234567890, "s":"a,}\\"" },"z":1}';
  assert.equal(rawMember(text, 'payload'), '{ "n" : 12345678901234567890, "s":"a,}\\"" }');
  assert.equal(rawMember(text, 'z'), '1');
  assert.equal(rawMember(text, 'none'), undefined);
  assert.equal(rawMember('{"payload":1.0}', 'payload'), '1.0');
  assert.equal(withRaw({}, 'p', '1.0'), '{"p":1.0}');
  assert.equal(withRaw({ a: 1 }, 'p', '[ ]'), '{"a":1,"p":[ ]}');
  assert.equal(indented('{"a":[1.0,{}],"b":"x:,{"}'), '{\n  "a": [\n    1.0,\n    {}\n  ],\n  "b": "x:,{"\n}');
  const task = { queue: 'q', due_at: 'D', priority: 1, max_attempts: 2, visibility_timeout_ms: 3, backoff: {}, payload: "{\"it's\":1.0}" };
  assert.match(curlOf(task, 'http://h'), /"payload":\{"it'\\''s":1\.0\}\}'$/);
  assert.match(curlOf({ ...task, webhook: 'http://w', headers: { 'X-A': 'b' } }, 'http://h'), /"webhook":"http:\/\/w","headers":\{"X-A":"b"\}/);
});

test('numbers and durations are short', () => {
  assert.deepEqual([0, 9_999, 10_000, 99_950, 123_456, 999_999, 1_234_567, 10_000_000].map((n) => plain(compact(n))),
    ['0', '9,999', '10 k', '100 k', '123 k', '1 M', '1.2 M', '10 M']);
  assert.deepEqual([0, 0.02, 4.2, 12, 999, 1_500, 59_000, 61_000, 3_700_000, 90_000_000, 1e12].map((ms) => plain(duration(ms))),
    ['0 ms', '0.02 ms', '4.2 ms', '12 ms', '999 ms', '1.5 s', '59 s', '1 min 1 s', '1 h 1 min', '1 d 1 h', '31.7 years']);
  assert.equal(plural(1, 'task'), '1 task');
  assert.deepEqual([900_000, 1_500, 86_400_000, 1].map(durationText), ['15m', '1500ms', '1d', '1ms']);
});

test('no two marks of an axis read alike', () => {
  for (const [format, least] of [[compact, 1], [rate, 0.1]]) {
    assert.equal(stepsFrom(least)[0], least);
    for (const step of stepsFrom(least).filter((each) => each <= 1e9)) {
      const marks = [0, 1, 2, 3, 4, 5, 6].map((n) => format(n * step));
      assert.equal(new Set(marks).size, marks.length, marks.join());
    }
  }
});

test('no two marks of a second read alike', () => {
  const texts = timeTexts(null, [1_000, 1_000.5, 1_001, 1_001.5], 0, 0, 0.5);
  assert.equal(new Set(texts.filter(Boolean)).size, 2);
  assert.deepEqual([texts[1], texts[3]], ['', '']);
});

test('a single value is in the middle of a minute', () => {
  assert.deepEqual(rangeOf([1_000], 1_000, 86_401_000), [970, 1_030]);
  assert.deepEqual(rangeOf([1_000, 1_010], 1_000, 1_010), [1_000, 1_010]);
  assert.deepEqual(rangeOf([], null, null), [null, null]);
});

test('a value without a neighbour is a point of a chart', () => {
  assert.deepEqual(lonely([null, 3, null, 4, 5, null, 6]), [1, 6]);
  assert.deepEqual(lonely([0]), [0]);
  assert.deepEqual(lonely([1, 2, undefined]), []);
});

test('one burst does not flatten the scale of a chart', () => {
  const quiet = Array.from({ length: 100 }, (_, i) => 10 + (i % 5));
  assert.equal(topOf([quiet]), 14);
  assert.equal(topOf([[...quiet, 12_000], [0, 0]]), 28);
  assert.equal(topOf([[...quiet, 60]]), 60, 'a little more is no burst');
  assert.equal(topOf([[0, 5_000, 0]]), 5_000, 'a few values are all usual');
  assert.equal(topOf([[]]), 1);
});

test('errors are grouped without the parts that differ from task to task', () => {
  assert.equal(shapeOf('order 123456 of 0190a7c4-1111-7222-8333-444455556666 failed\nat line 3'), 'order … of … failed');
  assert.notEqual(shapeOf('HTTP 503'), shapeOf('HTTP 500'));
  const dead = (id, queue, error) => ({ id, queue, last_error: error, died_at: `2026-01-02T03:0${id}:00.000Z` });
  assert.deepEqual(groupsOf([dead('1', 'a', 'x'), dead('2', 'b', 'x'), dead('3', 'a', 'x'), dead('4', 'a')]).map(({ queue, error, ids, last }) => [queue, error, ids, last.slice(14, 16)]),
    [['a', 'x', ['1', '3'], '03'], ['a', '', ['4'], '04'], ['b', 'x', ['2'], '02']]);
});

test('a search looks into payloads and errors itself', () => {
  const search = readSearch(new URLSearchParams('queue=q&payload=ADA&error=order+12345&cursor=x'));
  assert.deepEqual(search.parameters, { queue: 'q' });
  const task = { payload: { to: 'ada@example.org' }, last_error: 'order 99999' };
  assert.equal(search.matches(task), true);
  assert.equal(search.matches({ ...task, last_error: 'other' }), false);
  assert.equal(search.matches({ ...task, payload: 'bob' }), false);
  assert.equal(search.matches({ payload_base64: btoa('for ada'), last_error: 'order 10000' }), true);
});

test('the events of a queue become rates, and an expired lease is a failed attempt', () => {
  const point = { at: '2026-01-02T03:04:10.000Z', span_ms: 10_000, accepted: 20, fired: 20, leased: 10, completed: 5, failed: 2, expired: 3, died: 1, lateness_ms: { mean: 4, max: 9 } };
  assert.deepEqual(sampleOf(point), { at: Date.UTC(2026, 0, 2, 3, 4, 10), rates: { scheduled: 2, leased: 1, completed: 0.5, died: 0.1, failed: 0.5 }, late: { mean: 4, max: 9 } });
});

test('only changed settings of a queue are sent', () => {
  const settings = { rate: 50, concurrency: null, max_tasks: null, max_bytes: null, max_attempts: null, visibility_timeout_ms: 90_000, backoff: null,
    retention_ms: 0, key_retention_ms: 600_000, webhook: { url: 'https://a.test/', keys: ['whsec_…'] }, sink: null };
  const same = { rate: '50', concurrency: '', max_tasks: '', max_bytes: '', max_attempts: '', visibility_timeout: '90s', 'backoff.initial': '', 'backoff.max': '',
    retention: '0s', key_retention: '10m', webhook: 'https://a.test/', keys: '', sink: '' };
  const changes = (more) => changesOf(settings, { ...same, ...more });
  assert.deepEqual(changes({}), {});
  assert.deepEqual(changes({ rate: '', concurrency: '4', retention: '1d' }), { rate: null, concurrency: 4, retention: '1d' });
  assert.deepEqual(changes({ 'backoff.initial': '1s', 'backoff.max': '1h' }), { backoff: { initial: '1s', max: '1h' } });
  assert.deepEqual(changes({ webhook: 'https://b.test/' }), { webhook: 'https://b.test/' });
  assert.deepEqual(changes({ keys: 'k1 k2' }), { webhook: { url: 'https://a.test/', keys: ['k1', 'k2'] } });
  assert.deepEqual(changes({ webhook: '', sink: 'kafka' }), { webhook: null, sink: 'kafka' });
  assert.throws(() => changes({ rate: 'many' }), /whole number/);
});

test('leased tasks are told by worker, the longest lease first', () => {
  const leased = (id, worker, minute) => ({ id, queue: 'q' + id, worker, leased_at: `2026-01-02T03:0${minute}:00.000Z` });
  const workers = byWorker([leased('1', 'a', 5), leased('2', 'b', 4), leased('3', 'a', 3), leased('4', undefined, 6)]);
  assert.deepEqual(workers.map(({ worker, tasks, oldest }) => [worker, tasks, oldest.id]), [['a', 2, '3'], ['b', 1, '2'], ['', 1, '4']]);
  assert.deepEqual([...workers[0].queues], ['q1', 'q3']);
});

test('quantiles are those of what was added', () => {
  const before = ofCounts([0, 10]);
  const now = ofCounts([0, 10, 0, 8, 2]);
  assert.equal(quantile(since(now, before), 0.4), 0.006); // the middle of the bucket from 4 to 8 us
  assert.equal(quantile(since(now, before), 0.9), 0.012);
  assert.equal(quantile(since(before, before), 0.5), null);
  assert.equal(quantile(ofCounts([...Array(34).fill(0), 5]), 0.99), 0.001 * 2 ** 33);
});

test('the wheel finds where its hands are', () => {
  const base = 1_000_000_000_123;
  const levels = [{ slot_ms: 1, slots: [] }, { slot_ms: 256, slots: [{ slot: 7, from: new Date(base + (256 * 5 + 7) * 256).toISOString() }] }];
  assert.equal(alignedStart({ levels, slots_per_level: 256 }, base + 40), base);
  assert.equal(alignedStart({ levels: [{ slot_ms: 1, slots: [] }], slots_per_level: 256 }, 5), 5);
});

test('the choices of a due time are in the future, in the hours that they say', () => {
  for (const day of [1, 2, 3, 4, 5, 6, 7]) {
    const now = new Date(2026, 1, day, 23, 30);
    const [, tomorrow, morning, monday] = choices(now).map(([, time]) => time);
    assert.equal(tomorrow.getHours(), 23);
    assert.equal(morning.getDate(), day + 1);
    assert.equal(monday.getDay(), 1);
    assert.ok(monday > now && monday - now <= 8 * 86_400_000);
  }
});

const NOW = Date.parse('2026-01-02T12:00:00Z');
const at = (ms) => new Date(NOW + ms).toISOString();
const task = (more) => ({ id: '1', queue: 'q', state: 'ready', due_at: at(-200_000), created_at: at(-900_000), priority: 1024,
  max_attempts: 25, visibility_timeout_ms: 60_000, backoff: { initial_ms: 1_000, max_ms: 3_600_000 }, attempts: 0, ...more });
const queue = (more, settings) => ({ queue: 'q', ready: 1, leased: 0, oldest_ready_age_ms: 200_000, settings: { paused: false, rate: null, concurrency: null, ...settings }, ...more });
const told = (...given) => {
  const { headline, points } = whyLate(...given, NOW);
  return plain([headline, ...points].join(' '));
};

test('the reason why a queue waits is the one that counts', () => {
  assert.equal(whyQueueWaits(queue({ ready: 0 })), null);
  assert.equal(whyQueueWaits(queue({}, { paused: true, concurrency: 0 })).kind, 'paused');
  assert.equal(whyQueueWaits(queue({ leased: 3 }, { concurrency: 3 })).kind, 'concurrency');
  assert.equal(whyQueueWaits(queue({ leased: 2 }, { concurrency: 3 })).kind, 'busy');
  assert.equal(whyQueueWaits(queue({}, { rate: 5 })).kind, 'either');
  assert.equal(whyQueueWaits(queue({ leased: 1 }, { rate: 5 })).kind, 'rate');
  assert.match(whyQueueWaits(queue({}, { rate: 0 })).text, /hands out nothing/);
  assert.equal(whyQueueWaits(queue({})).kind, 'workers');
  assert.equal(whyQueueWaits(queue({}, { webhook: { url: 'https://a.test/' } })).kind, 'delivery');
});

test('that no lease is open at this instant does not mean that no worker takes tasks', () => {
  const seen = (age, settings) => whyQueueWaits(queue({ last_handed_out_age_ms: age }, settings));
  assert.equal(seen(300).kind, 'busy');
  assert.match(plain(seen(300).text), /took the last one 300 ms ago and are not fast enough/);
  assert.equal(seen(300, { rate: 5 }).kind, 'rate');
  assert.equal(seen(180_000).kind, 'workers');
  assert.match(plain(seen(180_000).text), /^last handed out 3 min ago$/);
  assert.match(seen(null).text, /^none handed out since the server started$/);
});

test('the causes of lateness are told, the longest first', () => {
  assert.equal(causesOf(undefined), null);
  assert.equal(causesOf({ before_start: 0, engine: 0, limit: 0, worker: 0 }), null);
  assert.match(plain(causesOf({ before_start: 0, engine: 0, limit: 2_000, worker: 5_000 })), /^5 s: .*no worker asked.* · 2 s: a pause, /);
  const late = { before_start: 0, engine: 1, limit: 0, worker: 4 };
  assert.equal(lateTasks([{ late: undefined }, { late: { ...late, engine: 0, worker: 0 } }]), null);
  assert.match(lateTasks([{ late }, { late }]), /^10 tasks were handed out more than a second late: 8 no worker asked, 2 server behind\.$/);
  const leased = task({ state: 'leased', leased_at: at(-10_000), late_ms: { before_start: 0, engine: 0, limit: 190_000, worker: 0 } });
  assert.match(told(leased, null), /Of that: 3 min 10 s: a pause, the rate or the number of leases/);
  const history = [{ started_at: at(-100_000), ended_at: at(-99_000), late_ms: { before_start: 100_000, engine: 0, limit: 0, worker: 0 } }];
  assert.match(told(task({ state: 'completed', history }), null), /Of that: 1 min 40 s: it was due before the server started/);
  assert.match(told(task({ created_at: at(0), due_at: at(-60_000) }), null), /created 1 min after its due time/);
});

test('why a task is late is told for each state', () => {
  assert.match(told(task(), queue({}, { paused: true })), /due for 3 min 20 s: the queue is paused/);
  assert.match(told(task({ priority: 5_000 }), queue({ ready: 9 })), /8 other tasks.*ready too.*5,000 is less urgent/);
  assert.match(told(task({ state: 'scheduled', due_at: at(60_000) }), null), /^Not late: it is due in 1 min/);
  const history = [{ started_at: at(-600_000), ended_at: at(-598_000), error: 'a' }, { started_at: at(-500_000), ended_at: at(-499_000), error: 'b' }];
  assert.deepEqual(timeSpent(history), { working: 3_000, between: 98_000 });
  assert.match(told(task({ state: 'scheduled', due_at: at(5_000), attempts: 2, history }), null), /next attempt is in 5 s.*2 attempts failed.*“b”.*took 3 s, and it waited 1 min 38 s/);
  assert.match(told(task({ state: 'leased', leased_at: at(-10_000), worker: 'w' }), null), /Worker w has had it for 10 s.*handed out 3 min 10 s after/);
  assert.match(told(task({ state: 'dead', attempts: 25, history }), null), /dead: all 25 attempts failed.*“b”/);
  assert.match(told(task({ state: 'dead', attempts: 1, history: [] }), null), /it was buried/);
  assert.match(told(task({ state: 'completed', history: [{ started_at: at(-100_000), ended_at: at(-99_000) }] }), null), /only 1 min 40 s after its due time.*work took 1 s/);
  assert.match(told(task({ state: 'cancelled' }), null), /cancelled/);
});
