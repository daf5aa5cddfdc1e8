// Charts over time, by uPlot (global, from /assets/uplot.js), in the page's colours.
import { h, setText } from './dom.js';
import { localTime } from './format.js';
import { colour } from './theme.js';

const FONT = '11px system-ui, sans-serif';

/** Colours may be "--name" of style.css; they are read when the chart is made. */
const paint = (value, alpha = '') => (value?.startsWith('--') ? colour(value.slice(2)) + alpha : value);

const two = (n) => String(n).padStart(2, '0');
const DAY = 86_400; // seconds

/** Times on the axis, as short as the distance between marks allows; with the date at midnight. */
export function timeTexts(plot, times, axis, space, step) {
  return times.map((time) => {
    const at = new Date(time * 1_000);
    const day = `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
    if (time % 1 !== 0) return ''; // several marks in a second would have the same text
    if (step >= 365 * DAY) return String(at.getFullYear());
    if (step >= 28 * DAY) return `${at.getFullYear()}-${two(at.getMonth() + 1)}`;
    if (step >= DAY || clock === '00:00') return day;
    return step >= 60 ? clock : `${clock}:${two(at.getSeconds())}`;
  });
}

const powersOfTen = (plot, axis, low, high) =>
  Array.from({ length: Math.max(1, Math.round(Math.log10(high)) + 1) }, (_, i) => 10 ** i);

/** Steps between marks of an axis, from `least` on: marks that are closer would have equal labels. */
export const stepsFrom = (least) => Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** (power - 1)))
  .flat().filter((step) => step >= least);

const HALF_MINUTE = 30; // seconds

/** The range of the time axis. Of a single value, uPlot would show years. */
export const rangeOf = (times, low, high) => (times.length === 1 ? [times[0] - HALF_MINUTE, times[0] + HALF_MINUTE] : [low, high]);

/** The indices of values without a neighbour: no line shows them. */
export const lonely = (column) => column.flatMap((value, i) => (value != null && column[i - 1] == null && column[i + 1] == null ? [i] : []));

const PEAK = 5; // a value this many times the usual high values is a peak

/** The top of a linear scale. A short peak does not count, because it would flatten all other values. */
export function topOf(columns) {
  const values = columns.flat().filter((value) => value > 0).sort((a, b) => a - b);
  const most = values.at(-1) ?? 1;
  const usual = values.length < 20 ? most : values[Math.floor(values.length * 0.95)];
  return most > PEAK * usual ? 2 * usual : most;
}

function optionsOf({ series, format, step = 1, width, height, cursor, bars, log, select, top }) {
  const axis = { stroke: colour('muted'), font: FONT, grid: { stroke: colour('line'), width: 1 },
    ticks: { stroke: colour('line'), width: 1, size: 4 } };
  // Without a pointer over the chart, the legend has the last values.
  const show = (u, value, i, at) => {
    const shown = at === null ? u.data[i].findLast((one) => one !== null && one !== undefined) : value;
    return shown === null || shown === undefined ? '–' : format(shown);
  };
  return {
    width, height, cursor: { y: false, points: { size: 6 }, drag: { x: Boolean(select), y: false }, ...cursor },
    legend: { show: true, live: true },
    scales: { x: { time: true, range: (u, low, high) => rangeOf(u.data[0], low, high) }, y: log
      ? { distr: 3, log: 10, range: (u, low, high) => [0.8, Math.max(10, 10 ** Math.ceil(Math.log10(high || 1)))] }
      : { range: () => [0, top() * 1.1] } },
    axes: [{ ...axis, size: 28, values: timeTexts }, { ...axis, size: 62, incrs: stepsFrom(step), splits: log ? powersOfTen : undefined,
      values: (u, values) => values.map((value) => (value === null ? '' : format(value))) }],
    hooks: select ? { setSelect: [(u) => u.select.width > 3 && select(
      u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x'))] } : {},
    series: [
      { label: 'at', value: (u, at) => (at ? localTime(at * 1_000) : '') },
      ...series.map((one) => ({ label: one.label, stroke: paint(one.stroke), width: one.width ?? 1.6,
        dash: one.dash, fill: one.fill ? paint(one.fill, bars ? 'b0' : '30') : undefined, value: one.value ?? show,
        points: bars ? { show: false } : { size: 4, fill: paint(one.stroke), filter: (u, i) => lonely(u.data[i]) },
        paths: bars ? window.uPlot.paths.bars({ size: [0.9, 40], align: 1 }) : undefined })),
    ],
  };
}

/** Calls `onPress(x)` for a press that is not a drag. */
function watchPresses(plot, onPress) {
  let from = 0;
  plot.over.addEventListener('mousedown', (event) => { from = event.clientX; });
  plot.over.addEventListener('mouseup', (event) => {
    if (Math.abs(event.clientX - from) > 3) return;
    onPress(plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, 'x'));
  });
}

/**
 * A chart in its own element: {element, setData([[s…], [y…]…]), setLog(isLog)}. It follows the size of its
 * parent and the theme, until `signal` aborts. `label` describes the chart for screen readers.
 */
export function makeChart({ label, height = 180, ...given }, signal) {
  const element = h('div', { class: 'chart', role: 'img', 'aria-label': label });
  const cut = h('span');
  const whole = h('button', { type: 'button', class: 'link', onclick: () => {
    isWhole = !isWhole;
    update();
  } }, 'Show it');
  const note = h('p', { class: 'note', hidden: true }, cut, ' ', whole);
  let plot = null;
  let isLog = Boolean(given.log);
  let isWhole = false; // with its peaks
  let data = [[], ...given.series.map(() => [])];
  const most = () => Math.max(1e-9, ...data.slice(1).flat().filter((value) => value > 0));
  const top = () => (isWhole || given.bars ? most() : topOf(data.slice(1)));
  const update = () => {
    const peak = most();
    const isCut = !given.bars && topOf(data.slice(1)) < peak;
    note.hidden = !isCut;
    if (isCut) {
      const at = data[0][Math.max(...data.slice(1).map((column) => column.indexOf(peak)))];
      setText(cut, `The peak of ${given.format(peak)} at ${localTime(at * 1_000).slice(11)} is ${isWhole ? 'shown' : 'cut off'}.`);
      setText(whole, isWhole ? 'Cut it off' : 'Show it');
    }
    plot?.setData(data);
  };
  const draw = () => {
    const width = Math.floor(element.clientWidth);
    if (width === 0) return;
    plot?.destroy();
    plot = new window.uPlot(optionsOf({ ...given, log: isLog, width, height, top }), data, element);
    if (given.onPress) watchPresses(plot, given.onPress);
  };
  const sizes = new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width === 0 || plot?.width === width) return;
    if (plot) plot.setSize({ width, height });
    else draw();
  });
  sizes.observe(element);
  document.addEventListener('themechange', draw, { signal });
  signal.addEventListener('abort', () => {
    sizes.disconnect();
    plot?.destroy();
  });
  return {
    element: h('div', {}, element, note),
    setData(next) {
      data = next;
      update();
    },
    setLog(next) {
      isLog = next;
      draw();
    },
  };
}
