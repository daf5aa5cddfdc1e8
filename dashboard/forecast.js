// Forecast: the number of due tasks over time. Drag over the bars to zoom in; press a bar to list its
// tasks. The server counts by the minute, so a minute is the narrowest bar.
import { get, withQuery } from './api.js';
import { makeChart } from './chart.js';
import { every, h, replace, setText } from './dom.js';
import { compact, count, duration, localTime, plural } from './format.js';
import { makeTable } from './table.js';

export const title = 'Forecast';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SPANS = [['hour', HOUR, 60], ['6 hours', 6 * HOUR, 72], ['day', DAY, 96], ['week', 7 * DAY, 84],
  ['month', 30 * DAY, 60], ['year', 365 * DAY, 73], ['10 years', 3_650 * DAY, 120]];
const MOST = 10_000; // bins that the server returns in one answer

const listOf = (from, until) => '#/tasks?' + new URLSearchParams({ due_after: new Date(from).toISOString(),
  due_before: new Date(until).toISOString() });

/** Bins within [from, until) of a forecast: {from, bin_ms, counts, overdue, later, coarse}. */
async function fetchBins({ from, until, bins }, signal) {
  const now = Date.now();
  const start = Math.max(0, from - now);
  const finest = Math.max((until - Math.max(from, now)) / bins, (until - now) / MOST);
  const width = Math.max(1, Math.ceil(finest / MINUTE)) * MINUTE;
  const asked = Math.min(MOST, Math.max(1, Math.ceil((until - now) / width)));
  const forecast = await get(withQuery('/v1/forecast', { bins: asked, span: `${Math.max(MINUTE, asked * width)}ms` }), signal);
  const skipped = Math.floor(start / forecast.bin_ms);
  const first = new Date(forecast.from).getTime() + skipped * forecast.bin_ms;
  return { ...forecast, first, counts: forecast.counts.slice(skipped),
    before: forecast.counts.slice(0, skipped).reduce((sum, n) => sum + n, 0) };
}

/** "every 5 min", in units that people use. */
const binText = (ms) => (ms === MINUTE ? 'a minute' : ms === HOUR ? 'an hour' : ms === DAY ? 'a day' : duration(ms));

function busiest({ first, bin_ms: width, counts }) {
  return counts.map((n, i) => ({ from: first + i * width, until: first + (i + 1) * width, n }))
    .filter(({ n }) => n > 0).sort((a, b) => b.n - a.n || a.from - b.from).slice(0, 8);
}

export function show(root, route, signal) {
  let view = { ...spanOf(route.query.get('span')) };
  let shown = null;
  const tabs = SPANS.map(([name]) => h('button', { type: 'button', onclick: () => choose(spanOf(name)) }, name));
  const zoomed = h('button', { type: 'button', hidden: true, onclick: () => choose(spanOf(view.name)) }, 'Zoom out');
  const sub = h('p', { class: 'sub', role: 'status' });
  const note = h('p', { class: 'note' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const chart = makeChart({ label: 'Tasks due in each part of the time ahead, on a logarithmic scale', height: 320,
    format: compact, log: true, bars: true, select: zoom,
    series: [{ label: 'due', stroke: '--accent', fill: '--accent', value: (u, n) => (n == null ? '–' : count(n)) }],
    onPress: (at) => shown && listBin(at) }, signal);
  const peaks = makeTable({ label: 'The busiest times', key: ({ from }) => from, empty: 'No task is due in this time.', columns: [
    { label: 'From', kind: 'title', of: ({ from }) => from, cell: ({ from, until }) => h('a', { href: listOf(from, until) }, localTime(from)) },
    { label: 'Until', of: ({ until }) => until, cell: ({ until }) => localTime(until) },
    { label: 'Tasks', kind: 'number', of: ({ n }) => n, cell: ({ n }) => count(n) },
  ] });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Forecast'), zoomed,
    h('div', { class: 'tabs', role: 'group', 'aria-label': 'How far ahead' }, tabs)), sub, wrong,
    h('section', { class: 'card' }, h('h2', {}, 'Tasks due', h('span', { class: 'sub' }, 'log scale; drag to zoom, press a bar for its tasks')), chart.element, note),
    h('h2', {}, 'Busiest times'), peaks.element);

  function spanOf(name) {
    const [found, span, bins] = SPANS.find(([one]) => one === name) ?? SPANS[0];
    return { name: found, span, bins, from: null };
  }
  function choose(next) {
    view = next;
    load();
  }
  function zoom(fromSeconds, untilSeconds) {
    const from = Math.floor((fromSeconds * 1_000) / MINUTE) * MINUTE;
    const until = Math.max(from + 5 * MINUTE, untilSeconds * 1_000);
    choose({ ...view, from, until, bins: 60 });
  }
  function listBin(seconds) {
    const i = Math.floor((seconds * 1_000 - shown.first) / shown.bin_ms);
    if (i < 0 || i >= shown.counts.length) return;
    location.hash = listOf(shown.first + i * shown.bin_ms, shown.first + (i + 1) * shown.bin_ms);
  }
  async function load() {
    try {
      const now = Date.now();
      const asked = view;
      const forecast = await fetchBins({ from: view.from ?? now, until: view.from ? view.until : now + view.span, bins: view.bins }, signal);
      if (asked !== view) return; // the viewer has moved on to another range
      shown = forecast;
      setText(wrong, '');
      draw();
    } catch (error) {
      if (error.name !== 'AbortError') setText(wrong, error.message);
    }
  }
  function draw() {
    tabs.forEach((tab, i) => tab.setAttribute('aria-pressed', String(SPANS[i][0] === view.name && !view.from)));
    zoomed.hidden = !view.from;
    const { first, bin_ms: width, counts, overdue, later, before, coarse } = shown;
    const sum = counts.reduce((total, n) => total + n, 0);
    // An empty bin has no bar; an additional place at the end closes the scale.
    chart.setData([[...counts, 0].map((_, i) => (first + i * width) / 1_000), [...counts.map((n) => (n > 0 ? n : null)), null]]);
    setText(sub, `${plural(sum, 'task')} due from ${localTime(first)} to ${localTime(first + counts.length * width)}; ` +
      `a bar is ${binText(width)}`);
    setText(note, [overdue > 0 && `${count(overdue)} overdue`, before > 0 && `${count(before)} before this`,
      `${count(later)} later`, coarse > 0 && `${count(coarse)} known by the day only, so spread evenly over it`].filter(Boolean).join(' · '));
    peaks.setRows(busiest(shown));
  }
  every(10_000, signal, load);
}
