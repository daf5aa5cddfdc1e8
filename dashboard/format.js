// Numbers, durations and times for people. Pure, except for the viewer's language and time zone.
import { h } from './dom.js';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const NO_BREAK = '\u00a0';

/** 1,234,567 */
export const count = (n) => whole.format(n);

/** 1.2 M: at most four digits; the title of compactNode() has all digits. */
export function compact(n) {
  if (n < 10_000) return whole.format(n);
  const units = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  const [size, unit] = units.find(([least]) => n >= least * 0.9995) ?? [1e3, 'k'];
  const value = n / size;
  return value.toFixed(value < 99.95 ? 1 : 0).replace(/\.0$/, '') + NO_BREAK + unit;
}

/** A rate per second. */
export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return '–';
  if (perSecond >= 100) return compact(Math.round(perSecond)) + '/s';
  return (perSecond === 0 ? '0' : perSecond.toFixed(perSecond < 10 ? 1 : 0)) + '/s';
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; ++unit) n /= 1024;
  return (unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + NO_BREAK + units[unit];
}

const STEPS = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1_000, 's']];

/** 0.4 ms, 12 ms, 3.2 s, 2 min 5 s, 3 d 4 h: two units at most. */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–';
  if (ms < 0) return '−' + duration(-ms);
  if (ms < 1) return (ms === 0 ? '0' : ms.toFixed(2)) + NO_BREAK + 'ms';
  if (ms < 1_000) return (ms < 10 ? ms.toFixed(1).replace(/\.0$/, '') : Math.round(ms)) + NO_BREAK + 'ms';
  if (ms < 10_000) return (ms / 1_000).toFixed(1).replace(/\.0$/, '') + NO_BREAK + 's';
  if (ms >= 730 * 86_400_000) return (ms / (365.25 * 86_400_000)).toFixed(1) + NO_BREAK + 'years';
  const first = STEPS.findIndex(([size]) => ms >= size);
  const [size, unit] = STEPS[first];
  const major = Math.floor(ms / size);
  const next = STEPS[first + 1];
  const minor = next && major < 100 ? Math.floor((ms % size) / next[0]) : 0;
  return major + NO_BREAK + unit + (minor > 0 ? ' ' + minor + NO_BREAK + next[1] : '');
}

const UNITS = [...STEPS.slice(0, 2), [60_000, 'm'], [1_000, 's'], [1, 'ms']];
/** 900000 → "15m": exact, as the server reads it. */
export const durationText = (ms) => {
  const [size, unit] = UNITS.find(([one]) => ms % one === 0);
  return ms === 0 ? '0s' : ms / size + unit;
};

/** "in 5 min", "3 s ago" */
export function fromNow(time, now = Date.now()) {
  const ahead = new Date(time).getTime() - now;
  if (Math.abs(ahead) < 1_000) return 'now';
  return ahead > 0 ? 'in ' + duration(ahead) : duration(-ahead) + ' ago';
}

const pad = (n, width = 2) => String(n).padStart(width, '0');

/** 2026-01-02 03:04:05 in the viewer's zone; with `ms`, the milliseconds too. */
export function localTime(time, ms = false) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '–';
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ` +
    `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}` +
    (ms ? '.' + pad(at.getMilliseconds(), 3) : '');
}

/** The time in any zone of the tz database, with the day of the week. */
export function zoneTime(time, zone) {
  const shape = { weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit',
    hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', timeZone: zone };
  let parts;
  try {
    parts = new Intl.DateTimeFormat('en-GB', shape).formatToParts(new Date(time));
  } catch {
    return 'a zone unknown to this browser';
  }
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  return `${part.weekday} ${part.year}-${part.month}-${part.day} ` +
    `${part.hour}:${part.minute}${part.second === '00' ? '' : ':' + part.second}`;
}

export const viewerZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** A time in the viewer's zone; UTC and the distance from now on hover. */
export function timeNode(time, { ms = false, className = '' } = {}) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return h('span', {}, '–');
  const utc = at.toISOString();
  return h('time', { datetime: utc, class: className || null, title: `${utc} · ${fromNow(at)}` },
    localTime(at, ms).split(' ').map((part, i) => [i > 0 && ' ', h('span', {}, part)])); // a line may end between date and time
}

/** The value of an <input type="datetime-local">, and back. */
export const toInput = (time) => localTime(time).replace(' ', 'T');
export const fromInput = (value) => (value ? new Date(value) : null);

/** A number with its noun: "1 task", "2 tasks". */
export const plural = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;
