// Answers questions about cron expressions with croner. It is a separate implementation with its
// own parser and its own search, and it uses the time zones of Node's ICU.
//
//   node croner.mjs QUESTIONS
//
// QUESTIONS is a file with one question per line. Tabs separate the parts of a question:
//
//   zone BEGIN END NAME                      when the zone's offset from UTC changes
//   runs BEGIN END MOST NAME EXPRESSION      when the expression runs
//
// Times are seconds since 1970. BEGIN is included, END is not. The first line of the output is
// "tzdata VERSION". Then each question has one line: offsets as "SINCE:OFFSET", beginning with
// BEGIN; or at most MOST runs in order; or "error MESSAGE".
import { readFileSync } from "node:fs";
import { CronDate, CronPattern } from "croner";

const DAY = 86_400;
const MARGIN = DAY / 4;

// croner makes a new formatter for each date. This class keeps one formatter for each zone, and
// asks it once for each quarter of an hour. No offset changes within a quarter (offsets() checks
// this), so the answers are the same, and this is ten times as fast.
const QUARTER = 900;
const SystemFormatter = Intl.DateTimeFormat;
const zones = new Map();

class Zone {
  #formatter;
  #quarters = new Map();

  constructor(name) {
    this.#formatter = new SystemFormatter("en-US", {
      timeZone: name, year: "numeric", month: "numeric", day: "numeric", hour: "numeric",
      minute: "numeric", second: "numeric", hour12: false,
    });
  }

  static named(name) {
    if (!zones.has(name)) zones.set(name, new Zone(name));
    return zones.get(name);
  }

  localParts(time) {
    return Object.fromEntries(this.#formatter.formatToParts(new Date(time * 1000))
      .map(({ type, value }) => [type, Number(value)]));
  }

  offsetAt(time) {
    const { year, month, day, hour, minute, second } = this.localParts(time);
    return Date.UTC(year, month - 1, day, hour % 24, minute, second) / 1000 - time;
  }

  formatToParts(date) {
    const time = Math.floor(date.getTime() / 1000);
    const begin = time - time % QUARTER;
    if (!this.#quarters.has(begin)) this.#quarters.set(begin, this.localParts(begin));
    const parts = this.#quarters.get(begin);
    const minute = parts.minute + Math.floor((time - begin) / 60);
    return Object.entries({ ...parts, minute, second: (time - begin) % 60 })
      .map(([type, value]) => ({ type, value }));
  }
}

Intl.DateTimeFormat = function (locale, options) {
  return Zone.named(options.timeZone);
};

// Compares the offsets at the begin and the end of each day. This is enough because no zone changes
// its offset twice within a day.
function offsets(name, begin, end) {
  const zone = Zone.named(name);
  const spans = [[begin, zone.offsetAt(begin)]];
  for (let low = begin; low < end; low += DAY) {
    const offset = spans.at(-1)[1];
    let [before, after] = [low, Math.min(low + DAY, end - 1)];
    if (zone.offsetAt(after) === offset) continue;
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (zone.offsetAt(middle) === offset) before = middle; else after = middle;
    }
    spans.push([after, zone.offsetAt(after)]);
  }
  if (spans.flat().some((seconds) => seconds % QUARTER !== 0)) {
    throw new Error(`${name} changes within a quarter of an hour`);
  }
  return spans.map(([since, offset]) => `${since}:${offset}`).join(" ");
}

// croner searches in local times. Near a change of the clocks, the instants of these local times
// can be out of order or equal. So this function searches some hours more on both sides, and sorts
// the results.
function runs(zone, expression, begin, end, most) {
  const options = { domAndDow: false };
  const pattern = new CronPattern(expression, zone);
  const found = new Set();
  let date = new CronDate(new Date((begin - MARGIN) * 1000), zone);
  for (;;) {
    date = date.increment(pattern, options, true);
    if (date === null) break;
    const time = date.getTime() / 1000;
    if (time >= end + MARGIN) break;
    if (time < begin || time >= end) continue;
    found.add(time);
    if (found.size === most) end = Math.max(...found) + 1;
  }
  return [...found].filter((time) => time < end).sort((a, b) => a - b).join(" ");
}

function answer(question) {
  const [kind, begin, end, ...rest] = question.split("\t");
  try {
    if (kind === "zone") return offsets(rest[0], Number(begin), Number(end));
    return runs(rest[1], rest[2], Number(begin), Number(end), Number(rest[0]));
  } catch (error) {
    return `error ${error.message.replaceAll("\n", " ")}`;
  }
}

const lines = readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line !== "");
process.stdout.write(`tzdata ${process.versions.tz}\n`);
for (const line of lines) process.stdout.write(`${answer(line)}\n`);
