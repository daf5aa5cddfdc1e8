// The wheel: the server's timing wheel, live. It shows the slots with tasks and how full they are, the
// turning hands, and tasks that fall to finer levels when their time comes.
import { get } from './api.js';
import { every, h, replace, setText } from './dom.js';
import { compact, count, duration, localTime, plural } from './format.js';
import { onLive } from './live.js';
import { makeTable } from './table.js';
import { WheelDrawing } from './wheel_draw.js';

export const title = 'The wheel';
const PERIOD = 1_000;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

const listOf = (from, until) => '#/tasks?' + new URLSearchParams({ due_after: new Date(from).toISOString(),
  due_before: new Date(until).toISOString() });

const rangeText = (from, until) => `${localTime(from, until - from < 60_000)} to ${localTime(until, until - from < 60_000).slice(11)}`;

const LEGEND = () => h('section', { class: 'card' }, h('h2', {}, 'In the picture'), h('dl', { class: 'facts legend' },
  h('dt', {}, h('span', { class: 'swatch' })), h('dd', {}, 'a slot with tasks; a fuller slot has a stronger colour'),
  h('dt', {}, h('span', { class: 'swatch hand' })), h('dd', {}, 'a hand: the present time; it goes round in the time at the top of its ring'),
  h('dt', {}, h('span', { class: 'swatch streak' })), h('dd', {}, 'a streak: tasks that fall to the next ring, or become due')));

function levelText({ slot_ms: width }, slots) {
  return `slots of ${duration(width)}, once round in ${duration(width * slots)}`;
}

/** The coarsest levels are empty unless a lease is very long: show three rings, or all used ones. */
const ringsOf = ({ levels }) => Math.max(3, levels.findLastIndex(({ slots }) => slots.length > 0) + 1);

/** The slot under the pointer, in words. */
function describe(wheel, drawing, place) {
  const slot = wheel.levels[place.level].slots.find((one) => one.slot === place.slot);
  const { from, until } = slot ? { from: new Date(slot.from).getTime(), until: new Date(slot.until).getTime() } : drawing.timeOf(place);
  return { n: slot?.count ?? 0, from, until };
}

/** Slots of the finest levels pass too fast to read. A table has the fullest slots of other levels. */
const fullest = ({ levels }) => levels.flatMap(({ level, slots }) => slots.map((slot) => ({ ...slot, level })))
  .sort((a, b) => b.count - a.count || (a.from < b.from ? -1 : 1)).slice(0, 8);

export function show(root, route, signal) {
  let wheel = null;
  let start = Date.now();
  let hovered = null;
  const canvas = h('canvas', { role: 'img', 'aria-label': 'The timing wheel; the table beside it has its fullest slots' });
  const drawing = new WheelDrawing(canvas);
  const tip = h('div', { class: 'card tip', 'aria-live': 'off' });
  const rings = h('dl', { class: 'facts' });
  const sub = h('span', { class: 'sub' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const table = makeTable({ label: 'Fullest slots', key: ({ level, slot, from }) => `${level} ${slot} ${from}`,
    empty: 'No task is due within the load window.', columns: [
      { label: 'Slot', kind: 'title', of: ({ level, slot }) => `${level} ${slot}`, cell: ({ level, slot, from, until }) => h('a', { href: listOf(from, until) }, `level ${level}, slot ${slot}`) },
      { label: 'Time', kind: 'wide', of: ({ from }) => from, cell: ({ from, until }) => rangeText(new Date(from).getTime(), new Date(until).getTime()) },
      { label: 'Timers', kind: 'number', of: ({ count: n }) => n, cell: ({ count: n }) => count(n) },
    ] });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'The wheel'), sub), wrong,
    h('p', { class: 'lead' }, 'Each ring is a level of the timing wheel, with the finest level inside. A slot holds the tasks of its time. When a hand reaches a slot, ',
      'its tasks fall to the next ring inside. Tasks that leave the innermost ring are due. Adding, moving or cancelling a task costs the same however many there are.'),
    h('div', { class: 'wheel-box' }, h('div', { class: 'card' }, canvas),
      h('div', { class: 'wheel-side' }, tip, h('section', { class: 'card' }, h('h2', {}, 'Rings, from inside'), rings), LEGEND())),
    h('h2', {}, 'Fullest slots'), table.element);

  function drawTip() {
    if (!wheel) return;
    if (!hovered) {
      if (tip.contains(document.activeElement)) return; // the link keeps the focus
      const [most] = fullest(wheel);
      replace(tip, h('strong', {}, plural(wheel.timers, 'timer')), h('p', { class: 'note' },
        'in memory: tasks due within the load window, and leases that may expire. Point at a slot; press it to open its tasks.'),
      most && h('a', { href: listOf(most.from, most.until) }, `Open the fullest slot: ${plural(most.count, 'timer')}`));
      return;
    }
    const { n, from, until } = describe(wheel, drawing, hovered);
    replace(tip, h('strong', {}, n === 0 ? 'Nothing' : plural(n, 'timer')), h('p', {}, rangeText(from, until)),
      h('p', { class: 'note' }, `level ${hovered.level}, slot ${hovered.slot}, ${duration(until - from)} wide`));
  }
  function drawRings() {
    replace(rings, wheel.levels.map((level) => [h('dt', {}, h('span', { class: 'swatch' }), `level ${level.level}`),
      h('dd', {}, levelText(level, wheel.slots_per_level), h('br'),
        h('span', { class: 'sub' }, `${plural(level.slots.length, 'slot')} taken, ${plural(level.slots.reduce((sum, slot) => sum + slot.count, 0), 'timer')}`))]));
  }

  canvas.addEventListener('pointermove', (event) => {
    hovered = drawing.placeAt(event.offsetX, event.offsetY);
    drawing.mark(hovered);
    drawTip();
  });
  canvas.addEventListener('pointerleave', () => {
    hovered = null;
    drawing.mark(null);
    drawTip();
  });
  canvas.addEventListener('click', (event) => {
    const place = wheel && drawing.placeAt(event.offsetX, event.offsetY);
    if (!place) return;
    const { from, until } = describe(wheel, drawing, place);
    location.hash = listOf(from, until);
  });
  new ResizeObserver((entries, observer) => {
    if (signal.aborted) observer.disconnect();
    else drawing.paintSlots();
  }).observe(canvas);
  document.addEventListener('themechange', () => drawing.paintSlots(), { signal });

  onLive(({ now, startedAt }) => {
    if (!now || !startedAt) return;
    start = startedAt;
    const far = Math.max(0, now.totals.scheduled - (wheel?.timers ?? 0));
    setText(sub, far > 0 ? `${compact(far)} more tasks wait on disk, due later` : 'all tasks are on the wheel');
  }, signal);
  every(PERIOD, signal, async () => {
    try {
      const answer = await get('/v1/wheel', signal);
      wheel = { ...answer, levels: answer.levels.slice(0, ringsOf(answer)) };
      setText(wrong, '');
    } catch (error) {
      if (error.name !== 'AbortError') setText(wrong, error.message);
      return;
    }
    drawing.setWheel(wheel, start);
    table.setRows(fullest(wheel));
    drawRings();
    drawTip();
    if (calm.matches) drawing.frame();
  });
  // The browser calls for no frames while the page is hidden.
  const frame = () => {
    if (signal.aborted) return;
    if (!calm.matches) drawing.frame();
    requestAnimationFrame(frame);
  };
  frame();
}
