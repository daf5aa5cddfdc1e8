// The charts of the view Now: rates, failures, tasks by state and late tasks, over a range of time.
import { makeChart } from './chart.js';
import { every, h, setText } from './dom.js';
import { compact, duration, rate } from './format.js';
import { fetchDay } from './live.js';
import { tabs } from './parts.js';
import { CAUSES, CAUSE_NAMES } from './why.js';

const DAY = 86_400_000;
const SPANS = [[300_000, '5 min'], [900_000, '15 min'], [3_600_000, '1 h'], [DAY, '24 h']];

/** {element, draw(live)}. A token for some queues gets no figures of the whole server: then only the states are shown. */
export function makeCharts(signal) {
  const chart = (label, series, more) => makeChart({ label, series, format: rate, step: 0.1, ...more }, signal);
  const rates = chart('Tasks per second', [{ label: 'accepted', stroke: '--muted', dash: [4, 3] }, { label: 'fired', stroke: '--second' },
    { label: 'completed', stroke: '--accent', fill: '--accent' }]);
  const failures = chart('Failed attempts and deaths per second', [{ label: 'failed attempts', stroke: '--second', fill: '--second' },
    { label: 'died', stroke: '--danger', fill: '--danger' }]);
  const states = chart('Tasks by state', [{ label: 'ready', stroke: '--accent', fill: '--accent' }, { label: 'leased', stroke: '--second' },
    { label: 'dead', stroke: '--danger' }], { format: compact, step: 1 });
  const late = chart('Tasks handed out more than a second late, per second, by cause',
    CAUSES.map((cause, i) => ({ label: CAUSE_NAMES[cause], stroke: ['--muted', '--danger', '--second', '--accent'][i] })));
  const card = (name, { element }) => h('section', { class: 'card' }, h('h2', {}, name), element);
  const ofServer = [card('Tasks per second', rates), card('Failures per second', failures), card('Late per second, by cause', late)];
  const shown = h('span', { class: 'sub' });
  let span = SPANS[2][0];
  let day = [];
  let live = null;
  const range = tabs('Time range', SPANS, (chosen) => {
    span = chosen;
    if (span === DAY) loadDay();
    draw();
  });
  range.press(span);
  const loadDay = every(60_000, signal, async () => {
    if (span !== DAY) return;
    day = await fetchDay(signal).catch(() => day);
    draw();
  });

  function draw() {
    if (!live?.now) return;
    for (const element of ofServer) element.hidden = live.isLimited;
    const samples = (span === DAY ? day : live.samples).filter(({ at }) => at >= live.now.at - span);
    if (samples.length > 0) setText(shown, `the last ${duration(live.now.at - samples[0].at)}`);
    const times = samples.map(({ at }) => at / 1_000);
    const columns = (names, of) => names.map((name) => samples.map((sample) => of(sample, name)));
    const perSecond = (names) => [times, ...columns(names, (sample, name) => sample.rates[name])];
    rates.setData(perSecond(['scheduled', 'fired', 'completed']));
    failures.setData(perSecond(['failed', 'died']));
    states.setData([times, ...columns(['ready', 'leased', 'dead'], ({ totals }, name) => totals[name])]);
    late.setData([times, ...columns(CAUSES, (sample, cause) => (sample.late ? sample.late[cause] * 1_000 / sample.spanMs : null))]);
  }
  const element = h('div', { class: 'stack', hidden: true }, h('div', { class: 'head' }, h('h2', {}, 'Over time ', shown), range.element),
    h('div', { class: 'grid two' }, ofServer[0], ofServer[1], card('Ready, leased, dead', states), ofServer[2]));
  return { element, draw(next) {
    live = next;
    draw();
  } };
}
