// Answers questions about cron expressions with croner, an implementation that shares nothing with
// ours: own parser, own search, and the time zones of Node's ICU.
//
//   node croner.mjs QUESTIONS
//
// QUESTIONS has a question a line, its parts separated by tabs:
//
//   zone BEGIN END NAME                      when the zone's offset from UTC changes
//   runs BEGIN END MOST NAME EXPRESSION      when the expression runs
//
// Times are seconds since 1970, BEGIN is in and END is not. The first line of the answer is
// "tzdata VERSION"; then comes a line for each question: offsets as "SINCE:OFFSET", beginning with
// BEGIN; or the runs in order, at most MOST of them; or "error MESSAGE".
import { readFileSync } from "node:fs";
import { CronDate, CronPattern } from "croner";

const DAY = 86_400;

// croner makes a formatter for each date it looks at. All of one zone are the same, so one is kept:
// 15 times as fast, and the same answers.
const Formatter = Intl.DateTimeFormat;
const formatters = new Map();
Intl.DateTimeFormat = function (locale, options) {
  const key = options.timeZone;
  if (!formatters.has(key)) formatters.set(key, new Formatter(locale, options));
  return formatters.get(key);
};

function offsetOf(zone, time) {
  const parts = Object.fromEntries(
    Intl.DateTimeFormat("en-US", {
      timeZone: zone, year: "numeric", month: "numeric", day: "numeric", hour: "numeric",
      minute: "numeric", second: "numeric", hour12: false,
    }).formatToParts(new Date(time * 1000)).map(({ type, value }) => [type, Number(value)]));
  const local = Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour % 24, parts.minute,
    parts.second);
  return local / 1000 - time;
}

// Looks at every half day: no zone changes there and back within one.
function offsets(zone, begin, end) {
  const spans = [[begin, offsetOf(zone, begin)]];
  for (let low = begin; low < end; low += DAY / 2) {
    const offset = spans.at(-1)[1];
    let [before, after] = [low, Math.min(low + DAY / 2, end - 1)];
    if (offsetOf(zone, after) === offset) continue;
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (offsetOf(zone, middle) === offset) before = middle; else after = middle;
    }
    spans.push([after, offsetOf(zone, after)]);
  }
  return spans.map(([since, offset]) => `${since}:${offset}`).join(" ");
}

// croner goes through local times. Around a change of the clocks the instants they stand for are
// neither in order nor different, so a day more on both sides is looked at, and they are sorted.
function runs(zone, expression, begin, end, most) {
  const options = { domAndDow: false };
  const pattern = new CronPattern(expression, zone);
  const found = new Set();
  let date = new CronDate(new Date((begin - DAY) * 1000), zone);
  for (;;) {
    date = date.increment(pattern, options, true);
    if (date === null) break;
    const time = date.getTime() / 1000;
    if (time >= end + DAY) break;
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
