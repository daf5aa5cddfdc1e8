'use strict';
// The page sends commands to the program (playground.cc), and draws the answers.

// The words are those of texts.json: `design.NAME`, `example.NAME` and `about.NAME`.
// Name → the first sizes, and what they mean.
const DESIGNS = {
  simple: ['256', 'slots'],
  hashed: ['64', 'slots'],
  hierarchical: ['60,60,24', 'levels'],
  ticking: ['60,60,24', 'levels'],
  demand: ['20', 'per-level-and-width'],
  timer: ['', ''],
  dense: ['', ''],
  fifo: ['', ''],
  heap: ['', ''],
  tree: ['', ''],
  list: ['', ''],
  'published-ticker': ['8', 'slots'],
  'published-circle': ['10', 'slots'],
  'published-fixed': ['', ''],
  'published-promoting': ['', ''],
  'published-relative': ['20,20,20', 'levels'],
  'published-extended': ['', ''],
  'published-dynamic': ['10', 'per-level'],
  'published-kafka': ['20,1000', 'per-level-and-width'],
};

// The known failures have the names of tests/regress/classic/cases.md. `actions` bring both panels to
// the moment that matters, and `end` is the tick at which everything has been seen.
const EXAMPLES = [
  { name: 'one-timer', start: 117, end: 350, designs: [['hierarchical'], ['demand']], deadlines: [125, 350, 1000] },
  { name: 'SW_ALIAS', start: 0, end: 20, designs: [['published-ticker'], ['hashed', '8']], deadlines: [8, 9, 10, 16, 17] },
  { name: 'LK_FULL_TURN', start: 0, end: 110, designs: [['published-circle'], ['hashed', '10']], deadlines: [10, 20, 100] },
  { name: 'HW_OWN_EXAMPLE', start: 0, end: 7300, designs: [['published-fixed'], ['hierarchical']], deadlines: [5, 120, 3600] },
  { name: 'HW_NO_CASCADE', start: 0, end: 130, designs: [['published-fixed'], ['hierarchical']], deadlines: [60, 75, 90, 119] },
  { name: 'HW_SILENT_LOSS', start: 0, end: 90000, designs: [['published-fixed'], ['hierarchical']], deadlines: [86401] },
  { name: 'HW_CANCEL_AFTER_PROMOTE', start: 0, end: 200, designs: [['published-promoting'], ['hierarchical']], deadlines: [90],
    actions: [['advance', 130], ['cancel', 1]] },
  { name: 'EW_360_365', start: 0, end: 43900, designs: [['published-extended'], ['hierarchical', '24,30,12,100']], deadlines: [43800] },
  { name: 'KW_003_PARTIAL_SLOT', start: 2, end: 420, designs: [['published-relative'], ['hierarchical', '20,20,20']], deadlines: [401] },
  { name: 'DW_UNDRIVEN', start: 0, end: 200, designs: [['published-dynamic'], ['demand', '10']], deadlines: [7, 123] },
  { name: 'KW_EARLY_FLOOR', start: 95, end: 4000, designs: [['published-kafka'], ['demand', '20,1000']], deadlines: [1195, 2295, 2995] },
];

// Events that a correct queue does not have, or that the reader should notice.
const BAD_EVENTS = new Set(['refused', 'cancel-impossible', 'cancel-not-found', 'fires-early', 'fires-late', 'fires-cancelled']);

const LARGEST = 9_000_000_000_000_000; // JavaScript counts exactly up to here
const MOST_TIMERS = 500;
const find = (selector, from = document) => from.querySelector(selector);
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const spaced = (number) => (number < 10_000 ? String(number) : String(number).replace(/\B(?=(\d{3})+$)/g, '\u00a0'));

// ---- The words in both languages.

const TEXTS = JSON.parse(find('#texts').textContent); // name → [English, Chinese]
const LANGUAGES = ['en', 'zh'];
const REMEMBERED = 'detent-playground-language';
const PLACE = /\{(\d)(?::([^|}]*)\|([^}]*))?\}/g; // {0} is the first value; {0:tick|ticks} is a word for its number

// A browser can refuse to remember, for example for a page from a file.
const remembered = () => { try { return localStorage.getItem(REMEMBERED); } catch { return null; } };
const remember = (value) => { try { localStorage.setItem(REMEMBERED, value); } catch { /* the next visit asks the browser again */ } };

let language = [new URLSearchParams(location.search).get('lang'), remembered(), navigator.language]
  .map((name) => (name ?? '').slice(0, 2).toLowerCase()).find((name) => LANGUAGES.includes(name)) ?? 'en';

/** The text with this name in the language of the page. Numbers are spaced. */
function text(name, ...values) {
  const shown = values.map((value) => (typeof value === 'number' ? spaced(value) : value));
  return TEXTS[name][LANGUAGES.indexOf(language)].replace(PLACE, (_, at, one, many) => (one === undefined ? shown[at] : values[at] === 1 ? one : many));
}

/** An error of a queue, which the program has only in English. */
function errorText(error) {
  for (const name of Object.keys(TEXTS).filter((one) => one.startsWith('error.'))) {
    const sentence = TEXTS[name][0].replace(/[[\]().]/g, '\\$&').replace(PLACE, '(.+)');
    const values = new RegExp(`^${sentence}$`).exec(error);
    if (values) return text(name, ...values.slice(1));
  }
  return error;
}

/** Fills the elements that always have the same text. Text between ` is code. */
function label() {
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
  for (const element of document.querySelectorAll('[data-text]')) {
    element.replaceChildren(...text(element.dataset.text).split('`').map((part, index) => (index % 2 ? make('code', { textContent: part }) : part)));
  }
  for (const element of document.querySelectorAll('[data-label]')) element.setAttribute('aria-label', text(element.dataset.label));
  const other = language === 'zh' ? ['en', 'English'] : ['zh-CN', '中文'];
  Object.assign(find('#language'), { lang: other[0], textContent: other[1] });
}

/** An option of a choice, with the text of this name. */
function option(value, name) {
  const element = make('option', { value });
  element.dataset.text = name;
  return element;
}

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
      let message = '';
      for (let at = vectors; at < vectors + 8 * count; at += 8) {
        message += decode(view.getUint32(at, true), view.getUint32(at + 4, true));
      }
      console.error(message);
      view.setUint32(written, new TextEncoder().encode(message).length, true);
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
let complaint = []; // the name of a text and its values, or empty
let playing = 0;

class Panel {
  constructor(index) {
    this.index = index;
    this.root = find('#panel').content.cloneNode(true).firstElementChild;
    this.root.id = index === 0 ? 'left' : 'right';
    find('#panels').append(this.root);
    this.design = find('.design', this.root);
    this.sizes = find('.sizes', this.root);
    for (const name of Object.keys(DESIGNS)) this.design.append(option(name, `design.${name}`));
    this.begin();
    this.design.addEventListener('change', () => { this.choose(this.design.value); this.replay(); });
    this.sizes.addEventListener('change', () => this.replay());
  }

  choose(design, sizes = DESIGNS[design][0]) {
    this.design.value = design;
    this.sizes.value = sizes;
    this.sizes.parentElement.hidden = DESIGNS[design][1] === '';
  }

  begin() {
    this.events = []; // [kind, tick, numbers …]
    this.state = null;
    this.fault = null; // or a function that says why there is no queue
    this.translateLog();
  }

  /** Makes the queue, and repeats all commands since the start. */
  replay() {
    this.begin();
    this.fault = /^(\d{1,9}(,\d{1,9}){0,7})?$/.test(this.sizes.value) ? null : () => text('fault.sizes');
    if (!this.fault) {
      const answer = command('make', this.index, this.design.value, this.sizes.value || '-', example.start);
      if (answer.error !== undefined) this.fault = () => errorText(answer.error);
      else this.take(answer);
    }
    for (const words of history) this.send(words);
    show();
  }

  send([verb, ...rest]) {
    if (!this.fault) this.take(command(verb, this.index, ...rest));
  }

  take(state) {
    this.state = state;
    this.events = [...this.events, ...state.log].slice(-300);
    const log = find('.log', this.root);
    log.append(...state.log.map(eventItem));
    while (log.children.length > this.events.length) log.firstChild.remove();
    log.scrollTop = log.scrollHeight;
  }

  /** Writes the whole log again, in the language of the page. */
  translateLog() {
    find('.log', this.root).replaceChildren(...this.events.map(eventItem));
  }

  draw() {
    const meaning = DESIGNS[this.design.value][1];
    this.sizes.title = meaning && text(`sizes.${meaning}`);
    const note = find('.note', this.root);
    note.classList.toggle('wrong', this.fault !== null);
    note.textContent = this.fault ? this.fault() : meaning && text('panel.note', this.sizes.title);
    this.drawPicture();
    this.drawFigures();
  }

  drawPicture() {
    const { levels = [], rows = [], rounds = [] } = this.state ?? {};
    const rings = levels.map((level, index) => drawLevel(level, index, new Map(rounds))).reverse();
    const boxes = rows.map((row) => make('div', { className: 'level' },
      make('div', { className: 'name', textContent: text(`row.${row.name}`) }), make('div', { className: 'chips' }, ...row.boxes.map((textContent) => make('span', { textContent })))));
    find('.picture', this.root).replaceChildren(...rings, ...boxes);
    find('.picture', this.root).setAttribute('aria-label', text('panel.levels', levels.length));
  }

  drawFigures() {
    if (!this.state) return find('.figures', this.root).replaceChildren();
    const { counts, memory, nextWakeup, timers } = this.state;
    const figures = { 'next-wake-up': nextWakeup ?? text('figure.none'), 'wake-ups': counts.wakeups, pending: timers.filter(({ state }) => state === 'pending').length,
      'moves-between-slots': counts.moves, schedules: counts.schedules, fired: counts.fired, cancels: counts.cancels,
      'bytes-of-the-queue': memory.queue + memory.heap, 'bytes-on-the-heap': memory.heap, 'bytes-in-a-timer': memory.timer || '–' };
    find('.figures', this.root).replaceChildren(...Object.entries(figures).flatMap(([name, value]) =>
      [make('dt', { textContent: text(`figure.${name}`) }), make('dd', { textContent: typeof value === 'number' ? spaced(value) : value, className: name })]));
  }
}

function eventItem([kind, ...numbers]) {
  return make('li', { textContent: text(`log.${kind}`, ...numbers), className: BAD_EVENTS.has(kind) ? 'bad' : '' });
}

/** A level as a row of slots, and below it the slots that have timers. */
function drawLevel({ slotCount, hand, slots }, index, rounds) {
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
  const timer = (deadline) => (rounds.get(deadline) > 0 ? text('panel.rounds', deadline, rounds.get(deadline)) : spaced(deadline));
  const chips = slots.slice(0, 60).map((slot) => make('span', { textContent: `${slot.index}: ${slot.deadlines.map(timer).join(', ')}` }));
  const level = make('div', { className: 'level' }, make('div', { className: 'name', textContent: text('panel.level', index, slotCount, hand) }), svg,
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
    if (wasCancelled) return [text('outcome.fired-cancelled', firedAt), 'bad'];
    if (firedAt < deadline) return [text('outcome.fired-early', firedAt, deadline - firedAt), 'bad'];
    if (firedAt > deadline) return [text('outcome.fired-late', firedAt, firedAt - deadline), 'bad'];
    return [text('outcome.fired', firedAt), 'good'];
  }
  if (state !== 'pending') return [text(`outcome.${state}`), ''];
  if (deadline < now) return [text('outcome.overdue'), 'bad'];
  return wasCancelled ? [text('outcome.pending-cancelled'), 'bad'] : [text('outcome.pending'), ''];
}

function drawTimers() {
  const [left, right] = panels;
  find('#timers .left').textContent = text(`design.${left.design.value}`);
  find('#timers .right').textContent = text(`design.${right.design.value}`);
  const rows = [...deadlines].slice(-100).map(([timer, deadline]) => {
    const cancel = make('button', { type: 'button', textContent: text('timers.cancel') });
    cancel.addEventListener('click', () => act('cancel', timer));
    const cells = panels.map((panel) => outcome(panel, timer));
    const row = make('tr', {}, make('td', { textContent: timer }), make('td', { textContent: spaced(deadline) }),
      ...cells.map(([textContent, className]) => make('td', { textContent, className })), make('td', {}, cancel));
    row.dataset.timer = timer;
    return row;
  });
  find('#timers tbody').replaceChildren(...rows);
}

function drawComplaint() {
  find('#fault').textContent = complaint.length > 0 ? text(...complaint) : '';
}

function show() {
  if (panels.length < 2) return;
  find('#now').textContent = spaced(now);
  find('#about').textContent = text(`about.${example.name}`);
  drawComplaint();
  for (const panel of panels) panel.draw();
  drawTimers();
}

// ---- What the reader does.

/** Shows a text with its values below the fields, or nothing. */
function complain(...words) {
  complaint = words;
  drawComplaint();
}

function act(...words) {
  history.push(words);
  for (const panel of panels) panel.send(words);
  show();
}

function schedule(deadline) {
  if (count === MOST_TIMERS) return complain('fault.full', MOST_TIMERS);
  deadlines.set(++count, deadline);
  act('schedule', count, deadline);
}

function advance(tick) {
  if (tick <= now) return;
  now = tick;
  act('advance', tick);
}

/** The whole number in a field, or null with a complaint. */
function numberIn(field) {
  const { value } = find(field);
  const digits = value.replace(/[\s,_\u00a0]/g, '');
  const number = Number(digits);
  if (/^\d{1,16}$/.test(digits) && number <= LARGEST) {
    complain();
    return number;
  }
  complain(field === '#delay' ? 'fault.delay' : 'fault.tick', LARGEST, value);
  return null;
}

/** A jump may take this many ticks on a design that wakes at every tick. */
const MOST_TICKS = 2_000_000;
function jump(tick) {
  const wakesAtEachTick = panels.some(({ design }) => design.value === 'ticking' || design.value.startsWith('published'));
  if (wakesAtEachTick && tick - now > MOST_TICKS) return complain('fault.far', MOST_TICKS);
  if (tick < now) return complain('fault.back', tick, now);
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
  complain();
  now = example.start;
  count = 0;
  seed = 1;
  history = [];
  deadlines.clear();
  panels.forEach((panel, index) => panel.choose(...example.designs[index]));
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
  find('#example').append(...EXAMPLES.map(({ name }, index) => option(index, `example.${name}`)));
  find('#example').addEventListener('change', () => {
    example = EXAMPLES[find('#example').value];
    begin();
  });
  click('#language', () => {
    language = language === 'zh' ? 'en' : 'zh';
    remember(language);
    label();
    for (const panel of panels) panel.translateLog();
    show();
  });
  click('#restart', begin);
  click('#finish', () => jump(Math.max(example.end, now)));
  click('#tick', () => advance(now + 1));
  click('#ten', () => advance(now + 10));
  click('#wake', () => { const tick = nextWakeup(); if (tick !== null) jump(tick); });
  click('#jump', () => { const tick = numberIn('#goal'); if (tick !== null) jump(tick); });
  click('#add', () => {
    const delay = numberIn('#delay');
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
  label();
  begin();
  document.body.dataset.ready = 'yes';
});
