// Compares the search for random expressions with a scan of every minute of some weeks.
//
// The model shares no code with the search. Each random item is created twice: as text and as a
// predicate. For every minute, the scan checks three things: whether the predicates match, whether
// the same local time came before, and whether local minutes were just skipped. It takes the
// offsets from TimeZone, which has its own test with a reference.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "calendar/time_zone.h"
#include "detent/cron.h"

namespace detent {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr minutes kMinute{1};
// Zones with changes of one hour, of half an hour and of two hours. Also zones with a change at
// midnight, so that a day begins at 01:00, with a change for one month a year (Ramadan), and
// without changes.
constexpr const char* kZones[] = {"Europe/Berlin",     "America/New_York", "Australia/Lord_Howe",
                                  "Antarctica/Troll",  "America/Santiago", "America/Havana",
                                  "Africa/Casablanca", "America/St_Johns", "Asia/Shanghai"};

/// A local minute, split into its fields.
struct Moment {
  int minute, hour, day, month, weekday, last_day;

  explicit Moment(local_seconds time) {
    const local_days date = std::chrono::floor<days>(time);
    const std::chrono::year_month_day ymd{date};
    const auto of_day = static_cast<int>((time - date) / kMinute);
    minute = of_day % 60;
    hour = of_day / 60;
    day = static_cast<int>(static_cast<unsigned>(ymd.day()));
    month = static_cast<int>(static_cast<unsigned>(ymd.month()));
    weekday = static_cast<int>(std::chrono::weekday{date}.c_encoding());
    const auto last = (ymd.year() / ymd.month() / std::chrono::last).day();
    last_day = static_cast<int>(static_cast<unsigned>(last));
  }

  bool is_workday() const { return weekday != 0 && weekday != 6; }
};

using Fits = std::function<bool(const Moment&)>;

struct Field {
  std::string text;
  Fits fits;
};

/// One of "*", "a", "a-b", "*/n", "a/n" and "a-b/n", for the member `get` of a Moment.
Field random_range(Rng& rng, int low, int high, int Moment::*get) {
  const auto between = [&](int a, int b) {
    return a + static_cast<int>(rng.below(static_cast<std::uint32_t>(b - a + 1)));
  };
  const int from = between(low, high);
  const int to = between(from, high);
  const int step = between(1, std::max(1, high / 2));
  const std::string a = std::to_string(from);
  const std::string b = std::to_string(to);
  const std::string n = std::to_string(step);
  const auto stepped = [get](int first, int last, int by) {
    return [=](const Moment& moment) {
      const int value = moment.*get;
      return value >= first && value <= last && (value - first) % by == 0;
    };
  };
  switch (rng.below(6)) {
    case 0:
      return {"*", stepped(low, high, 1)};
    case 1:
      return {a, stepped(from, from, 1)};
    case 2:
      return {a + "-" + b, stepped(from, to, 1)};
    case 3:
      return {"*/" + n, stepped(low, high, step)};
    case 4:
      return {a + "/" + n, stepped(from, high, step)};
    default:
      return {a + "-" + b + "/" + n, stepped(from, to, step)};
  }
}

/// True if the day is the Monday to Friday nearest to `target`. Tries the days one by one.
bool is_nearest_workday(const Moment& moment, int target) {
  if (target > moment.last_day) return false;
  for (const int distance : {0, -1, 1, -2, 2}) {
    const int day = target + distance;
    if (day < 1 || day > moment.last_day) continue;
    const int weekday = ((moment.weekday + day - moment.day) % 7 + 7) % 7;
    if (weekday == 0 || weekday == 6) continue;
    return day == moment.day;
  }
  return false;
}

Field random_day(Rng& rng) {
  const int n = 1 + static_cast<int>(rng.below(28));
  switch (rng.below(8)) {
    case 0:
      return {"L", [](const Moment& m) { return m.day == m.last_day; }};
    case 1:
      return {"L-" + std::to_string(n % 20 + 1),
              [n](const Moment& m) { return m.last_day - m.day == n % 20 + 1; }};
    case 2:
      return {std::to_string(n) + "W", [n](const Moment& m) { return is_nearest_workday(m, n); }};
    case 3:
      return {"LW", [](const Moment& m) {
                const int back = m.weekday == 5 ? 2 : 0;  // a Friday may have two days after it
                return m.is_workday() && m.last_day - m.day <= back;
              }};
    default:
      return random_range(rng, 1, 31, &Moment::day);
  }
}

Field random_weekday(Rng& rng) {
  const int weekday = static_cast<int>(rng.below(7));
  const int nth = 1 + static_cast<int>(rng.below(5));
  const std::string name = std::to_string(weekday);
  switch (rng.below(6)) {
    case 0:
      return {name + "#" + std::to_string(nth), [=](const Moment& m) {
                return m.weekday == weekday && m.day > 7 * (nth - 1) && m.day <= 7 * nth;
              }};
    case 1:
      return {name + "L",
              [=](const Moment& m) { return m.weekday == weekday && m.day + 7 > m.last_day; }};
    case 2:
      return {"?", [](const Moment&) { return true; }};
    default:
      return random_range(rng, 0, 6, &Moment::weekday);
  }
}

/// One to three items.
template <class MakeItem>
Field random_list(Rng& rng, const MakeItem& make_item) {
  Field field = make_item();
  for (std::uint32_t more = rng.below(5) == 0 ? 1 + rng.below(2) : 0; more > 0; --more) {
    const Field item = make_item();
    if (field.text == "?" || item.text == "?") break;
    field = {field.text + "," + item.text,
             [a = field.fits, b = item.fits](const Moment& m) { return a(m) || b(m); }};
  }
  return field;
}

/// Half of the time the field is `*`, because several sparse fields would rarely match together.
template <class MakeItem>
Field random_field(Rng& rng, const MakeItem& make_item) {
  if (rng.below(2) == 0) return {"*", [](const Moment&) { return true; }};
  return random_list(rng, make_item);
}

Field random_expression(Rng& rng) {
  const Field minute = random_list(rng, [&] { return random_range(rng, 0, 59, &Moment::minute); });
  const Field hour = random_field(rng, [&] { return random_range(rng, 0, 23, &Moment::hour); });
  const Field day = random_field(rng, [&] { return random_day(rng); });
  const Field month = random_field(rng, [&] { return random_range(rng, 1, 12, &Moment::month); });
  const Field weekday = random_field(rng, [&] { return random_weekday(rng); });
  const auto is_starred = [](const Field& f) { return f.text[0] == '*' || f.text[0] == '?'; };
  const bool wants_both = is_starred(day) || is_starred(weekday);
  return {minute.text + " " + hour.text + " " + day.text + " " + month.text + " " + weekday.text,
          [=](const Moment& m) {
            const bool is_day =
                wants_both ? day.fits(m) && weekday.fits(m) : day.fits(m) || weekday.fits(m);
            return is_day && minute.fits(m) && hour.fits(m) && month.fits(m);
          }};
}

struct Policy {
  Gap gap;
  Repeat repeat;
};

local_seconds local_of(const TimeZone& zone, sys_seconds time) {
  return zone.span_at(time).to_local(time);
}

/// True if another instant within three hours, before or after `time`, has the same local time.
bool has_twin(const TimeZone& zone, sys_seconds time, minutes direction) {
  for (int distance = 1; distance <= 180; ++distance) {
    if (local_of(zone, time + distance * direction) == local_of(zone, time)) return true;
  }
  return false;
}

bool is_occurrence(const TimeZone& zone, const Fits& fits, Policy policy, sys_seconds time) {
  const local_seconds local = local_of(zone, time);
  if (fits(Moment(local))) {
    if (policy.repeat == Repeat::first && !has_twin(zone, time, -kMinute)) return true;
    if (policy.repeat == Repeat::second && !has_twin(zone, time, kMinute)) return true;
    if (policy.repeat == Repeat::both) return true;
  }
  if (policy.gap == Gap::skip) return false;
  for (local_seconds missing = local_of(zone, time - kMinute) + kMinute; missing < local;
       missing += kMinute) {
    if (fits(Moment(missing))) return true;
  }
  return false;
}

std::vector<WallTime> scan(const TimeZone& zone, const Fits& fits, Policy policy,
                           std::pair<sys_seconds, sys_seconds> window) {
  std::vector<WallTime> times;
  for (sys_seconds time = window.first; time < window.second; time += kMinute) {
    if (is_occurrence(zone, fits, policy, time)) times.emplace_back(time);
  }
  return times;
}

/// Checks that the search finds the expected times in the window, forwards and backwards.
void expect_same(const Cron& cron, const std::vector<WallTime>& expected,
                 std::pair<sys_seconds, sys_seconds> window) {
  WallTime at = WallTime{window.first} - std::chrono::milliseconds{1};
  for (const WallTime time : expected) {
    const auto next = cron.next_after(at);
    ASSERT_TRUE(next);
    ASSERT_GT(*next, at);
    ASSERT_EQ(*next, time) << (*next - time) / std::chrono::seconds{1} << " s";
    at = time;
  }
  const auto beyond = cron.next_after(at);
  ASSERT_TRUE(!beyond || *beyond >= window.second);
  at = window.second;
  for (std::size_t i = expected.size(); i > 0; i -= std::min<std::size_t>(i, 1 + i / 20)) {
    ASSERT_EQ(cron.prev_before(i == expected.size() ? at : expected[i]), expected[i - 1]);
  }
}

/// A window around a change of the zone's offset in 1995-2095, or anywhere if there is none.
std::pair<sys_seconds, sys_seconds> random_window(Rng& rng, const TimeZone& zone) {
  const sys_seconds start = sys_days{std::chrono::year{1995} / 1 / 1} + days{rng.below(36'500)};
  const sys_seconds change = zone.span_at(start).end;
  if (change == kEndOfTime || rng.below(4) == 0) return {start, start + days{40}};
  return {change - days{2}, change + days{2}};
}

TEST(CronModel, TheSearchAgreesWithAScanOfAllMinutes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::size_t compared = 0;
  for (int round = 0; round < test_rounds(200); ++round) {
    const char* name = kZones[rng.below(std::size(kZones))];
    const TimeZone zone = TimeZone::load(name).value();
    const Field expression = random_expression(rng);
    const Policy policy{static_cast<Gap>(rng.below(2)), static_cast<Repeat>(rng.below(3))};
    const auto parsed =
        Cron::parse(expression.text, name, {.gap = policy.gap, .repeat = policy.repeat});
    const auto window = random_window(rng, zone);
    SCOPED_TRACE(expression.text + " " + name + " gap " +
                 std::to_string(static_cast<int>(policy.gap)) + " repeat " +
                 std::to_string(static_cast<int>(policy.repeat)) + " from " +
                 std::to_string(window.first.time_since_epoch().count()));
    const auto expected = scan(zone, expression.fits, policy, window);
    if (!parsed) {
      ASSERT_TRUE(expected.empty()) << parsed.error().message;
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(parsed.value(), expected, window));
    compared += expected.size();
  }
  EXPECT_GT(compared, static_cast<std::size_t>(test_rounds(2'000)))
      << "the expressions are too sparse to show anything";
}

}  // namespace
}  // namespace detent
