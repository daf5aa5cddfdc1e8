'use strict';
// The page sends commands to the program (playground.cc), and draws the answers.

const DESIGNS = {
  simple: ['SimpleWheel: one ring', '256', 'slots'],
  hashed: ['HashedWheel: one ring with rounds', '64', 'slots'],
  hierarchical: ['HierarchicalWheel: levels', '60,60,24', 'slots of each level'],
  ticking: ['HierarchicalWheel, tick by tick', '60,60,24', 'slots of each level'],
  demand: ['HierarchicalWheel: levels on demand, as in Kafka', '20', 'slots per level, ticks per slot'],
  timer: ['TimerWheel: digits of 8 bits', '', ''],
  dense: ['DenseWheel: digits of 8 bits, timers are numbers', '', ''],
  fifo: ['FifoTimerWheel: digits of 6 bits, in order', '', ''],
  heap: ['HeapQueue: 4-ary heap', '', ''],
  tree: ['TreeQueue: red-black tree', '', ''],
  list: ['ListQueue: sorted list', '', ''],
  'published-ticker': ['Published: ring with a ticker', '8', 'slots'],
  'published-circle': ['Published: ring with circles', '10', 'slots'],
  'published-fixed': ['Published: 60 / 60 / 24 with rounds', '', ''],
  'published-promoting': ['Published: 60 / 60 / 24 that promotes', '', ''],
  'published-relative': ['Published: the delay decides the slot', '20,20,20', 'slots of each level'],
  'published-extended': ['Published: hours, days, months, years', '', ''],
  'published-dynamic': ['Published: dynamic levels', '10', 'slots per level'],
  'published-kafka': ['Published: Kafka-style', '20,1000', 'slots per level, ticks per slot'],
};

// The known failures have the names of tests/regress/classic/cases.md. `actions` bring both panels to
// the moment that matters, and `end` is the tick at which everything has been seen.
const EXAMPLES = [
  { name: 'One timer, two designs', about: 'The example of docs/designs: now is tick 117, and a timer is due at tick 350.',
    start: 117, end: 350, designs: [['hierarchical'], ['demand']], deadlines: [125, 350, 1000] },
  { name: 'SW_ALIAS: a delay of more than a round', about: 'Delays of 8, 9, 10, 16 and 17 ticks on a ring of 8 slots. The published ring keeps no rounds.',
    start: 0, end: 20, designs: [['published-ticker'], ['hashed', '8']], deadlines: [8, 9, 10, 16, 17] },
  { name: 'LK_FULL_TURN: a delay of exactly one round', about: 'The published wheel takes one circle too many away if the delay is a multiple of the round.',
    start: 0, end: 110, designs: [['published-circle'], ['hashed', '10']], deadlines: [10, 20, 100] },
  { name: 'HW_OWN_EXAMPLE: 5 seconds, 2 minutes, 1 hour', about: 'Each level runs the slot of its hand, and then moves the hand. Every timer is late by one unit of its level.',
    start: 0, end: 7300, designs: [['published-fixed'], ['hierarchical']], deadlines: [5, 120, 3600] },
  { name: 'HW_NO_CASCADE: all of a minute at once', about: 'No timer moves down from the minutes, so the timers of a minute fire together at its end.',
    start: 0, end: 130, designs: [['published-fixed'], ['hierarchical']], deadlines: [60, 75, 90, 119] },
  { name: 'HW_SILENT_LOSS: more than a day', about: 'The published wheel drops a delay of 86 401 seconds without an error. HierarchicalWheel refuses it.',
    start: 0, end: 90000, designs: [['published-fixed'], ['hierarchical']], deadlines: [86401] },
  { name: 'HW_CANCEL_AFTER_PROMOTE: a cancelled timer fires', about: 'Promotion moves the timer to the seconds, but the index of the wheel keeps the old slot. So a cancel at tick 130 does not find the timer. On HierarchicalWheel it fired at tick 90.',
    start: 0, end: 200, designs: [['published-promoting'], ['hierarchical']], deadlines: [90], actions: [['advance', 130], ['cancel', 1]] },
  { name: 'EW_360_365: a year of 360 days', about: 'A tick is an hour. The published wheel has years of 365 days over twelve months of 30 days: five years come 25 days early.',
    start: 0, end: 43900, designs: [['published-extended'], ['hierarchical', '24,30,12,100']], deadlines: [43800] },
  { name: 'KW_003_PARTIAL_SLOT: the delay decides the slot', about: 'At tick 2, a delay of 399. A wheel that finds the slot from the delay ignores the ticks of the slot that have passed.',
    start: 2, end: 420, designs: [['published-relative'], ['hierarchical', '20,20,20']], deadlines: [401] },
  { name: 'DW_UNDRIVEN: a level that stands still', about: 'The published wheel makes tickers only for the levels that exist at its start.',
    start: 0, end: 200, designs: [['published-dynamic'], ['demand', '10']], deadlines: [7, 123] },
  { name: 'KW_EARLY_FLOOR: rounded down', about: 'A tick is a millisecond, and slots are 1000 ticks wide. The published wheel rounds down, so timers are early. Detent rounds up.',
    start: 95, end: 4000, designs: [['published-kafka'], ['demand', '20,1000']], deadlines: [1195, 2295, 2995] },
];

const LARGEST = 9_000_000_000_000_000; // JavaScript counts exactly up to here
const MOST_TIMERS = 500;
const find = (selector, from = document) => from.querySelector(selector);
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const spaced = (number) => (number < 10_000 ? String(number) : String(number).replace(/\B(?=(\d{3})+$)/g, '\u00a0'));

// ---- The program.

/** Starts the program. Resolves with a function that carries out a command and returns its answer. */
async function startProgram() {
  const bytes = Uint8Array.from(atob(find('#program').textContent), (letter) => letter.charCodeAt(0));
  const module = await WebAssembly.compile(bytes);
  let program;
  const calls = {
    proc_exit(code) { throw new Error(`the program ended with ${code}`); },
    fd_write(_file, vectors, count, written) {
      const view = new DataView(program.memory.buffer);
      let text = '';
      for (let at = vectors; at < vectors + 8 * count; at += 8) {
        text += decode(view.getUint32(at, true), view.getUint32(at + 4, true));
      }
      console.error(text);
      view.setUint32(written, new TextEncoder().encode(text).length, true);
      return 0;
    },
  };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = calls[name] ?? (() => 0);
  const decode = (at, length) => new TextDecoder().decode(new Uint8Array(program.memory.buffer, at, length));
  program = (await WebAssembly.instantiate(module, imports)).exports;
  program._initialize();
  return (...words) => {
    const line = new TextEncoder().encode(words.join(' ') + '\0');
    new Uint8Array(program.memory.buffer).set(line, program.command_buffer());
    const answer = program.command();
    const end = new Uint8Array(program.memory.buffer).indexOf(0, answer);
    return JSON.parse(decode(answer, end - answer));
  };
}

// ---- The state of the page.

let command;
let example = EXAMPLES[0];
let now = 0;
let count = 0; // timers
let history = []; // commands for both panels, for a panel whose design changes
const panels = [];
const deadlines = new Map(); // timer → deadline
let playing = 0;

class Panel {
  constructor(index) {
    this.index = index;
    this.root = find('#panel').content.cloneNode(true).firstElementChild;
    this.root.id = index === 0 ? 'left' : 'right';
    find('#panels').append(this.root);
    this.design = find('.design', this.root);
    this.sizes = find('.sizes', this.root);
    for (const [value, [text]] of Object.entries(DESIGNS)) this.design.append(make('option', { value, textContent: text }));
    this.design.addEventListener('change', () => { this.choose(this.design.value); this.replay(); });
    this.sizes.addEventListener('change', () => this.replay());
  }

  choose(design, sizes = DESIGNS[design][1]) {
    this.design.value = design;
    this.sizes.value = sizes;
    this.sizes.parentElement.hidden = DESIGNS[design][2] === '';
    this.sizes.title = DESIGNS[design][2];
  }

  /** Makes the queue, and repeats all commands since the start. */
  replay() {
    find('.log', this.root).replaceChildren();
    this.broken = !/^(\d{1,9}(,\d{1,9}){0,7})?$/.test(this.sizes.value);
    const answer = this.broken ? { error: 'Sizes are numbers with commas between them.' }
      : command('make', this.index, this.design.value, this.sizes.value || '-', example.start);
    this.broken ||= answer.error !== undefined;
    if (this.broken) return this.fail(answer.error);
    this.take(answer);
    for (const words of history) this.send(words);
    show();
  }

  send([verb, ...rest]) {
    if (!this.broken) this.take(command(verb, this.index, ...rest));
  }

  take(state) {
    this.state = state;
    const list = find('.log', this.root);
    for (const sentence of state.log) list.append(make('li', { textContent: sentence, className: /early|late|although|does not find|cannot cancel|refused/.test(sentence) ? 'bad' : '' }));
    while (list.children.length > 300) list.firstChild.remove();
    list.scrollTop = list.scrollHeight;
  }

  fail(reason) {
    this.state = null;
    find('.note', this.root).textContent = reason;
    find('.note', this.root).classList.add('wrong');
    find('.picture', this.root).replaceChildren();
    find('.figures', this.root).replaceChildren();
    show();
  }

  draw() {
    if (!this.state) return;
    const note = find('.note', this.root);
    note.classList.remove('wrong');
    note.textContent = DESIGNS[this.design.value][2] && `Sizes: ${DESIGNS[this.design.value][2]}.`;
    const rounds = new Map(this.state.rounds);
    const levels = this.state.levels.map((level, index) => drawLevel(level, index, rounds)).reverse();
    const rows = this.state.rows.map(({ name, boxes }) => make('div', { className: 'level' },
      make('div', { className: 'name', textContent: name }), make('div', { className: 'chips' }, ...boxes.map((text) => make('span', { textContent: text })))));
    find('.picture', this.root).replaceChildren(...levels, ...rows);
    find('.picture', this.root).setAttribute('aria-label', `${this.state.levels.length} levels`);
    this.drawFigures();
  }

  drawFigures() {
    const { counts, memory, nextWakeup, timers } = this.state;
    const waiting = timers.filter(({ state }) => state === 'pending').length;
    const figures = { 'next wake-up': nextWakeup === undefined ? 'none' : spaced(nextWakeup), 'wake-ups': spaced(counts.wakeups), pending: waiting,
      'moves between slots': spaced(counts.moves), schedules: counts.schedules, fired: counts.fired, cancels: counts.cancels,
      'bytes of the queue': `${spaced(memory.queue + memory.heap)}`, 'bytes on the heap': spaced(memory.heap), 'bytes in a timer': memory.timer || '–' };
    find('.figures', this.root).replaceChildren(...Object.entries(figures).flatMap(([name, value]) =>
      [make('dt', { textContent: name }), make('dd', { textContent: value, className: name.replaceAll(' ', '-') })]));
  }
}

/** A level as a row of slots, and below it the slots that have timers. */
function drawLevel({ name, slotCount, hand, slots }, index, rounds) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', `0 0 ${slotCount} 1`);
  svg.setAttribute('preserveAspectRatio', 'none');
  const box = (at, width, className) => {
    const rect = document.createElementNS(space, 'rect');
    for (const [key, value] of Object.entries({ x: at, y: 0, width, height: 1, class: className })) rect.setAttribute(key, value);
    svg.append(rect);
  };
  const least = Math.max(1, slotCount / 160); // so that a slot of a large level can be seen
  for (const slot of slots) box(slot.index, least, 'used');
  box(hand + (least - 1 > 0 ? 0 : .3), least > 1 ? least / 2 : .4, 'hand');
  if (slotCount <= 100) for (let at = 0; at < slotCount; ++at) box(at, 1, 'frame');
  else box(0, slotCount, 'frame');
  const text = (deadline) => spaced(deadline) + (rounds.get(deadline) > 0 ? ` (${rounds.get(deadline)} rounds)` : '');
  const chips = slots.slice(0, 60).map((slot) => make('span', { textContent: `${slot.index}: ${slot.deadlines.map(text).join(', ')}` }));
  const level = make('div', { className: 'level' }, make('div', { className: 'name', textContent: `${name || `level ${index}`}: ${slotCount} slots, hand at slot ${hand}` }), svg,
    make('div', { className: 'chips' }, ...chips));
  level.dataset.level = index;
  return level;
}

// ---- The table of timers.

/** What became of a timer in a panel: a text, and whether it is good or bad. */
function outcome(panel, timer) {
  const entry = panel.state?.timers.find((one) => one.timer === timer);
  if (!entry) return ['', ''];
  const { state, deadline, firedAt, wasCancelled } = entry;
  if (state === 'fired') {
    const late = firedAt - deadline;
    if (wasCancelled) return [`fired at ${spaced(firedAt)}, although it was cancelled`, 'bad'];
    if (late === 0) return [`fired at ${spaced(firedAt)}, on time`, 'good'];
    return [`fired at ${spaced(firedAt)}, ${spaced(Math.abs(late))} ${late < 0 ? 'early' : 'late'}`, 'bad'];
  }
  if (state === 'pending' && deadline < now) return ['overdue', 'bad'];
  return [wasCancelled && state === 'pending' ? 'pending, although it was cancelled' : state, state === 'pending' && wasCancelled ? 'bad' : ''];
}

function drawTimers() {
  const [left, right] = panels;
  find('#timers .left').textContent = DESIGNS[left.design.value][0];
  find('#timers .right').textContent = DESIGNS[right.design.value][0];
  const rows = [...deadlines].slice(-100).map(([timer, deadline]) => {
    const cancel = make('button', { type: 'button', textContent: 'Cancel' });
    cancel.addEventListener('click', () => act('cancel', timer));
    const cells = panels.map((panel) => outcome(panel, timer));
    const row = make('tr', {}, make('td', { textContent: timer }), make('td', { textContent: spaced(deadline) }),
      ...cells.map(([textContent, className]) => make('td', { textContent, className })), make('td', {}, cancel));
    row.dataset.timer = timer;
    return row;
  });
  find('#timers tbody').replaceChildren(...rows);
}

function show() {
  if (panels.length < 2) return;
  find('#now').textContent = spaced(now);
  for (const panel of panels) panel.draw();
  drawTimers();
}

// ---- What the reader does.

const complain = (text) => { find('#fault').textContent = text; };

function act(...words) {
  history.push(words);
  for (const panel of panels) panel.send(words);
  show();
}

function schedule(deadline) {
  if (count === MOST_TIMERS) return complain(`The playground has room for ${MOST_TIMERS} timers. Start again.`);
  deadlines.set(++count, deadline);
  act('schedule', count, deadline);
}

function advance(tick) {
  if (tick <= now) return;
  now = tick;
  act('advance', tick);
}

/** The whole number in a field, or null with a complaint. */
function numberIn(selector, what) {
  const text = find(selector).value.replace(/[\s,_\u00a0]/g, '');
  const number = Number(text);
  if (/^\d{1,16}$/.test(text) && number <= LARGEST) {
    complain('');
    return number;
  }
  complain(`${what} must be a whole number from 0 to ${spaced(LARGEST)}, got '${find(selector).value}'.`);
  return null;
}

/** A jump may take this many ticks on a design that wakes at every tick. */
const MOST_TICKS = 2_000_000;
function jump(tick) {
  const wakesAtEachTick = panels.some(({ design }) => design.value === 'ticking' || design.value.startsWith('published'));
  if (wakesAtEachTick && tick - now > MOST_TICKS) return complain(`A design wakes at every tick, so a jump may have at most ${spaced(MOST_TICKS)} ticks.`);
  if (tick < now) return complain(`Time moves only forward: tick ${spaced(tick)} is before tick ${spaced(now)}.`);
  return advance(tick);
}

// The wake-ups of a design that wakes at every tick would hide those of the other design.
function nextWakeup() {
  const all = panels.filter(({ state }) => state?.nextWakeup !== undefined);
  const quiet = all.filter(({ design }) => design.value !== 'ticking' && !design.value.startsWith('published'));
  const ticks = (quiet.length > 0 ? quiet : all).map(({ state }) => state.nextWakeup);
  return ticks.length > 0 ? Math.max(Math.min(...ticks), now + 1) : null;
}

let seed = 1;
function randomDelay() { // the same timers after each start
  seed = (seed * 48271) % 2147483647;
  return 1 + seed % (seed % 3 === 0 ? 40 : 1500);
}

function begin() {
  stopPlaying();
  complain('');
  now = example.start;
  count = 0;
  seed = 1;
  history = [];
  deadlines.clear();
  panels.forEach((panel, index) => panel.choose(...example.designs[index]));
  find('#about').textContent = example.about;
  find('#goal').value = example.end;
  for (const panel of panels) panel.replay();
  for (const deadline of example.deadlines) schedule(deadline);
  for (const [verb, value] of example.actions ?? []) {
    if (verb === 'advance') advance(value);
    else act(verb, value);
  }
}

function stopPlaying() {
  clearInterval(playing);
  playing = 0;
  find('#play').setAttribute('aria-pressed', 'false');
}

function listen() {
  const click = (selector, action) => find(selector).addEventListener('click', action);
  find('#example').append(...EXAMPLES.map(({ name }, index) => make('option', { value: index, textContent: name })));
  find('#example').addEventListener('change', () => {
    example = EXAMPLES[find('#example').value];
    begin();
  });
  click('#restart', begin);
  click('#finish', () => jump(Math.max(example.end, now)));
  click('#tick', () => advance(now + 1));
  click('#ten', () => advance(now + 10));
  click('#wake', () => { const tick = nextWakeup(); if (tick !== null) jump(tick); });
  click('#jump', () => { const tick = numberIn('#goal', 'The tick'); if (tick !== null) jump(tick); });
  click('#add', () => {
    const delay = numberIn('#delay', 'The delay');
    if (delay !== null) schedule(now + delay);
  });
  click('#random', () => { for (let left = 10; left > 0; --left) schedule(now + randomDelay()); });
  click('#play', () => {
    if (playing) return stopPlaying();
    find('#play').setAttribute('aria-pressed', 'true');
    playing = setInterval(() => advance(now + 1), 200);
  });
}

startProgram().then((started) => {
  command = started;
  panels.push(new Panel(0), new Panel(1));
  listen();
  begin();
  document.body.dataset.ready = 'yes';
});
