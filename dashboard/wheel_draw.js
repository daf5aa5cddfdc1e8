// Draws the wheel on a canvas. Each level is a ring, the finest inside. Slots are arcs; a fuller slot
// has a stronger colour. Each ring has a hand. When time reaches a slot, its tasks fall to the next
// ring inside; from the innermost ring they fire. Slots are on a picture of their own. A frame copies
// this picture and adds hands and falling tasks, so its cost does not depend on the number of tasks.
import { compact, duration } from './format.js';
import { colour } from './theme.js';

const TURN = 2 * Math.PI;
const TOP = -TURN / 4;
const FALL = 700; // ms for the fall to the next ring
const MOST_FALLING = 200;
const GAP = 0.16; // of a ring's width, between rings

export class WheelDrawing {
  #canvas;
  #still = document.createElement('canvas');
  #wheel = null; // from the last answer
  #offset = 0; // server's time − performance.now(), ms
  #start = 0; // the server's time at tick 0
  #falling = []; // {level, slot, since, strength}
  #passed = []; // by level: the time up to which slots were reached
  #marked = null; // {level, slot}
  #paint = {}; // the theme's colours

  constructor(canvas) {
    this.#canvas = canvas;
  }

  /** Takes the wheel from the server's answer; `start` is about the time when the wheel began. */
  setWheel(wheel, start) {
    this.#offset = new Date(wheel.now).getTime() - performance.now();
    this.#wheel = wheel;
    this.#start = alignedStart(wheel, start);
    this.paintSlots();
  }

  get now() {
    return performance.now() + this.#offset;
  }

  mark(place) {
    this.#marked = place;
  }

  /** {level, slot} at a place on the canvas in CSS pixels; null outside the rings. */
  placeAt(x, y) {
    if (!this.#wheel) return null;
    const { middle, inner, width } = this.#measure(this.#canvas.clientWidth);
    const level = Math.floor((Math.hypot(x - middle, y - middle) - inner) / width);
    if (level < 0 || level >= this.#wheel.levels.length) return null;
    const turn = (Math.atan2(y - middle, x - middle) - TOP + TURN) % TURN;
    return { level, slot: Math.floor((turn / TURN) * this.#wheel.slots_per_level) };
  }

  /** The time that a slot stands for, from now on: {from, until}. */
  timeOf({ level, slot }) {
    const { slots_per_level: slots, levels } = this.#wheel;
    const width = levels[level].slot_ms;
    const tick = Math.floor((this.now - this.#start) / width);
    const ahead = (slot - (tick % slots) + slots) % slots;
    const from = this.#start + (tick + ahead) * width;
    return { from, until: from + width };
  }

  #measure(size) {
    const levels = this.#wheel?.levels.length ?? 1;
    const inner = size * 0.11;
    return { middle: size / 2, inner, width: (size * 0.49 - inner) / levels };
  }

  #fit() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const size = Math.round(this.#canvas.clientWidth * ratio);
    if (size > 0 && this.#canvas.width !== size) {
      for (const one of [this.#canvas, this.#still]) one.width = one.height = size;
    }
    return size;
  }

  /** Call this after a change of the wheel, the size or the theme. */
  paintSlots() {
    const size = this.#fit();
    if (size === 0 || !this.#wheel) return;
    const context = this.#still.getContext('2d');
    const measure = this.#measure(size);
    const { slots_per_level: slots, levels } = this.#wheel;
    const most = Math.max(2, ...levels.flatMap((level) => level.slots.map(({ count }) => count)));
    const paint = { card: colour('card'), rail: colour('raised'), line: colour('line'), slot: colour('slot'), text: colour('muted'), fall: colour('second'), hand: colour('ink') };
    this.#paint = paint;
    context.clearRect(0, 0, size, size);
    levels.forEach((level, i) => {
      const radius = measure.inner + (i + 0.5) * measure.width;
      context.lineWidth = measure.width * (1 - GAP);
      context.strokeStyle = paint.rail;
      circle(context, measure.middle, radius, 0, TURN);
      context.strokeStyle = paint.slot;
      for (const { slot, count } of level.slots) {
        context.globalAlpha = strengthOf(count, most);
        // A slot has at least two pixels, so that it is visible on the inner rings.
        const angle = TOP + (slot / slots) * TURN;
        circle(context, measure.middle, radius, angle, angle + Math.max(TURN / slots, 2 / radius));
      }
      context.globalAlpha = 1;
    });
    this.#notches(context, measure, paint.line);
    this.#spans(context, measure);
    context.textAlign = 'center';
    context.fillStyle = paint.hand;
    context.font = `600 ${Math.round(measure.inner * 0.5)}px system-ui, sans-serif`;
    context.fillText(compact(this.#wheel.timers), measure.middle, measure.middle + measure.inner * 0.1);
    context.fillStyle = paint.text;
    context.font = `${Math.round(measure.inner * 0.2)}px system-ui, sans-serif`;
    context.fillText('timers', measure.middle, measure.middle + measure.inner * 0.42);
  }

  /** At the top of each ring, the time of one turn of its hand. */
  #spans(context, { middle, inner, width }) {
    const size = Math.max(9 * Math.min(2, devicePixelRatio || 1), Math.round(middle * 0.034));
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    this.#wheel.levels.forEach(({ slot_ms: slotWidth }, i) => {
      const text = duration(slotWidth * this.#wheel.slots_per_level);
      const y = middle - inner - (i + 0.5) * width;
      const room = context.measureText(text).width + size;
      context.fillStyle = this.#paint.card;
      context.globalAlpha = 0.85;
      context.fillRect(middle - room / 2, y - size * 0.75, room, size * 1.5);
      context.globalAlpha = 1;
      context.fillStyle = this.#paint.hand;
      context.fillText(text, middle, y);
    });
    context.textBaseline = 'alphabetic';
  }

  /** Sixteen notches on each ring's rim: the detents of the wheel. */
  #notches(context, { middle, inner, width }, line) {
    context.lineWidth = Math.max(1, middle / 400);
    context.strokeStyle = line;
    for (let ring = 0; ring <= this.#wheel.levels.length; ++ring) {
      const radius = inner + ring * width;
      for (let i = 0; i < 16; ++i) {
        const [sin, cos] = [Math.sin((i / 16) * TURN), Math.cos((i / 16) * TURN)];
        const half = width * GAP * 0.5;
        context.beginPath();
        context.moveTo(middle + (radius - half) * sin, middle - (radius - half) * cos);
        context.lineTo(middle + (radius + half) * sin, middle - (radius + half) * cos);
        context.stroke();
      }
    }
  }

  /** One frame. */
  frame() {
    const size = this.#canvas.width;
    if (!this.#wheel || size === 0) return;
    const context = this.#canvas.getContext('2d');
    const measure = this.#measure(size);
    context.clearRect(0, 0, size, size);
    context.drawImage(this.#still, 0, 0);
    this.#noteReached();
    this.#drawFalling(context, measure);
    this.#drawHands(context, measure);
    if (this.#marked) this.#drawMark(context, measure);
  }

  /** Slots that time has reached since the last frame begin to fall. */
  #noteReached() {
    const now = this.now;
    this.#wheel.levels.forEach((level, i) => {
      const seen = this.#passed[i] ?? now;
      for (const { slot, from, count } of level.slots) {
        const at = new Date(from).getTime();
        if (at > seen && at <= now && this.#falling.length < MOST_FALLING) {
          this.#falling.push({ level: i, slot, since: now, strength: strengthOf(count, 1_000) });
        }
      }
      this.#passed[i] = now;
    });
  }

  #drawFalling(context, { middle, inner, width }) {
    const now = this.now;
    const slots = this.#wheel.slots_per_level;
    this.#falling = this.#falling.filter(({ since }) => now - since < FALL);
    context.strokeStyle = this.#paint.fall;
    for (const { level, slot, since, strength } of this.#falling) {
      const part = (now - since) / FALL;
      const radius = inner + (level + 0.5 - part) * width;
      if (radius <= 0) continue;
      context.globalAlpha = (1 - part) * Math.max(0.5, strength);
      context.lineWidth = width * 0.3;
      const angle = TOP + ((slot + 0.5) / slots) * TURN;
      const half = Math.max(TURN / slots, 5 / radius) * (0.5 + part);
      circle(context, middle, radius, angle - half, angle + half);
    }
    context.globalAlpha = 1;
  }

  #drawHands(context, { middle, inner, width }) {
    const ticks = this.now - this.#start;
    context.strokeStyle = this.#paint.hand;
    context.lineCap = 'round';
    this.#wheel.levels.forEach(({ slot_ms: slotWidth }, i) => {
      const turn = (ticks / (slotWidth * this.#wheel.slots_per_level)) % 1;
      const [sin, cos] = [Math.sin(turn * TURN), Math.cos(turn * TURN)];
      const [from, to] = [inner + (i + GAP / 2) * width, inner + (i + 1 - GAP / 2) * width];
      // The innermost hand turns four times a second: it is a shimmer more than a hand.
      context.globalAlpha = i === 0 ? 0.35 : 0.9;
      context.lineWidth = Math.max(1.5, middle / 160);
      context.beginPath();
      context.moveTo(middle + from * sin, middle - from * cos);
      context.lineTo(middle + to * sin, middle - to * cos);
      context.stroke();
    });
    context.globalAlpha = 1;
    context.lineCap = 'butt';
  }

  #drawMark(context, { middle, inner, width }) {
    const { level, slot } = this.#marked;
    const slots = this.#wheel.slots_per_level;
    const radius = inner + (level + 0.5) * width;
    const angle = TOP + ((slot + 0.5) / slots) * TURN;
    const half = Math.max(TURN / slots / 2, 3 / radius);
    context.strokeStyle = this.#paint.hand;
    context.lineWidth = Math.max(1.5, middle / 250);
    context.beginPath();
    context.arc(middle, middle, radius + width * 0.5, angle - half, angle + half);
    context.arc(middle, middle, radius - width * 0.5, angle + half, angle - half, true);
    context.closePath();
    context.stroke();
  }
}

const strengthOf = (count, most) => 0.25 + 0.75 * Math.min(1, Math.log1p(count) / Math.log1p(most));

function circle(context, middle, radius, from, to) {
  context.beginPath();
  context.arc(middle, middle, radius, from, to);
  context.stroke();
}

/**
 * The time of tick 0 of the server's wheel. Each slot gives this time, except for a multiple of a turn
 * of its level. Of the possible times, it is the closest to `about`.
 */
export function alignedStart({ levels, slots_per_level: slots }, about) {
  const known = [...levels].reverse().find((level) => level.slots.length > 0);
  if (!known) return about;
  const { from, slot } = known.slots[0];
  const turn = known.slot_ms * slots;
  const fits = new Date(from).getTime() - slot * known.slot_ms;
  return fits - Math.round((fits - about) / turn) * turn;
}
