// Forecast: the number of due tasks over time, of all queues or of one. Drag over the bars to zoom in;
// press a bar to list its tasks. The server counts by the minute, so a minute is the narrowest bar.
import { get } from './api.js';
import { makeChart } from './chart.js';
import { debounce, every, h, replace, setText } from './dom.js';
import { fetchBins, MINUTE } from './forecast_bins.js';
import { compact, count, duration, localTime, plural } from './format.js';
import { tabs } from './parts.js';
import { makeTable } from './table.js';

export const title = 'Forecast';

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SPANS = [['hour', HOUR, 60], ['6 hours', 6 * HOUR, 72], ['day', DAY, 96], ['week', 7 * DAY, 84],
  ['month', 30 * DAY, 60], ['year', 365 * DAY, 73], ['10 years', 3_650 * DAY, 120]];
const REST = 60_000; // ms between two counts of a queue: the server reads tasks for each count

const listOf = (queue, from, until) => '#/tasks?' + new URLSearchParams({ ...(queue && { queue }), due_after: new Date(from).toISOString(),
  due_before: new Date(until).toISOString() });

/** "every 5 min", in units that people use. */
const binText = (ms) => (ms === MINUTE ? 'a minute' : ms === HOUR ? 'an hour' : ms === DAY ? 'a day' : duration(ms));

function busiest({ first, bin_ms: width, counts }) {
  return counts.map((n, i) => ({ from: first + i * width, until: first + (i + 1) * width, n }))
    .filter(({ n }) => n > 0).sort((a, b) => b.n - a.n || a.from - b.from).slice(0, 8);
}

export function show(root, route, signal) {
  let view = { ...spanOf(route.query.get('span')) };
  let shown = null;
  const spans = tabs('How far ahead', SPANS.map(([name]) => [name, name]), (name) => choose(spanOf(name)));
  const scale = tabs('Scale', [['log', 'logarithmic'], ['linear', 'linear']], (name) => chart.setLog(name === 'log'));
  const names = h('datalist', { id: 'forecast-queues' });
  const queue = h('input', { list: 'forecast-queues', placeholder: 'All queues', 'aria-label': 'Queue', autocomplete: 'off', spellcheck: 'false',
    value: route.query.get('queue') ?? '', oninput: debounce(400, () => load()) });
  const queueName = () => queue.value.trim();
  const zoomed = h('button', { type: 'button', hidden: true, onclick: () => choose(spanOf(view.name)) }, 'Zoom out');
  const sub = h('p', { class: 'sub', role: 'status' });
  const note = h('p', { class: 'note' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const chart = makeChart({ label: 'Tasks due in each part of the time ahead', height: 320,
    format: compact, log: true, bars: true, select: zoom,
    series: [{ label: 'due', stroke: '--accent', fill: '--accent', value: (u, n) => (n == null ? '–' : count(n)) }],
    onPress: (at) => shown && listBin(at) }, signal);
  const peaks = makeTable({ label: 'The busiest times', key: ({ from }) => `${from} ${queueName()}`, empty: 'No task is due in this time.', columns: [
    { label: 'From', kind: 'title', of: ({ from }) => from, cell: ({ from, until }) => h('a', { href: listOf(queueName(), from, until) }, localTime(from)) },
    { label: 'Until', of: ({ until }) => until, cell: ({ until }) => localTime(until) },
    { label: 'Tasks', kind: 'number', of: ({ n }) => n, cell: ({ n }) => count(n) },
  ] });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Forecast'), zoomed, queue, names, spans.element), sub, wrong,
    h('section', { class: 'card' }, h('div', { class: 'head' }, h('h2', {}, 'Tasks due ', h('span', { class: 'sub' }, 'drag to zoom, press a bar for its tasks')), scale.element),
      chart.element, note),
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
    location.hash = listOf(queueName(), shown.first + i * shown.bin_ms, shown.first + (i + 1) * shown.bin_ms);
  }
  async function load() {
    const asked = view;
    const name = queueName();
    try {
      const now = Date.now();
      const range = { from: view.from ?? now, until: view.from ? view.until : now + view.span, bins: view.bins };
      const forecast = await fetchBins(name, range, signal);
      if (asked !== view || name !== queueName()) return null; // the viewer has moved on to another range or queue
      shown = forecast;
      setText(wrong, '');
      draw();
    } catch (error) {
      if (error.name !== 'AbortError') setText(wrong, error.message);
    }
    return name === '' ? null : REST;
  }
  function draw() {
    spans.press(view.from ? null : view.name);
    zoomed.hidden = !view.from;
    const { first, bin_ms: width, counts, overdue, later, before, coarse, counted_to: countedTo } = shown;
    const sum = counts.reduce((total, n) => total + n, 0);
    // An empty bin has no bar; an additional place at the end closes the scale.
    chart.setData([[...counts, 0].map((_, i) => (first + i * width) / 1_000), [...counts.map((n) => (n > 0 ? n : null)), null]]);
    setText(sub, `${countedTo ? 'More than ' : ''}${plural(sum, 'task')} due from ${localTime(first)} to ${localTime(first + counts.length * width)}; ` +
      `a bar is ${binText(width)}`);
    setText(note, [overdue > 0 && `${count(overdue)} overdue`, before > 0 && `${count(before)} before this`,
      countedTo ? `${count(later)} later, or not counted: the server has counted up to ${localTime(countedTo)}` : `${count(later)} later`, coarse > 0 && `${count(coarse)} known by the day only, so spread evenly over it`].filter(Boolean).join(' · '));
    peaks.setRows(busiest(shown));
  }
  every(10_000, signal, load);
  get('/v1/stats?queues=1000', signal).then(({ queues }) => replace(names, queues.map(({ queue: name }) => h('option', { value: name }))))
    .catch(() => {}); // suggested names are optional
}
