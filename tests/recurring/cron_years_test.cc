// Years of recurring jobs in a simulation. Each run is compared with dates that this test computes
// without the library's calendar. Weekdays come from the civil dates of std::chrono. The offset of
// Shanghai is a constant, because there has been no daylight saving since 1991. New York follows
// the law of 2007: daylight saving lasts from the second Sunday of March to the first Sunday of
// November, and changes at 02:00 local time.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "detent/calendar_interval.h"
#include "detent/cron.h"
#include "detent/simulation.h"

namespace detent {
namespace {

using namespace std::chrono;

using Dates = std::vector<WallTime>;
using LocalTime = local_time<milliseconds>;

constexpr int kFirstYear = 2025;
constexpr int kYears = 10;
constexpr sys_days kStart = sys_days{year{kFirstYear} / 1 / 1};
constexpr sys_days kEnd = sys_days{year{kFirstYear + kYears} / 1 / 1};

WallTime from_shanghai(LocalTime local) { return WallTime{local.time_since_epoch() - hours{8}}; }

WallTime from_new_york(LocalTime local) {
  const year_month_day date{floor<days>(local)};
  const LocalTime summer = local_days{date.year() / March / Sunday[2]} + hours{2};
  const LocalTime winter = local_days{date.year() / November / Sunday[1]} + hours{2};
  const bool is_summer = local >= summer && local < winter;
  return WallTime{local.time_since_epoch() + (is_summer ? hours{4} : hours{5})};
}

/// 09:00 on the last weekday (Monday to Friday) of each month, for all years of the test.
template <class FromLocal>
Dates last_weekdays_of_months(FromLocal from_local) {
  Dates dates;
  for (year_month month = year{kFirstYear} / 1; month.year() < year{kFirstYear + kYears};
       month += months{1}) {
    local_days day{month / last};
    while (weekday{day} == Saturday || weekday{day} == Sunday) day -= days{1};
    dates.push_back(from_local(LocalTime{day} + hours{9}));
  }
  return dates;
}

/// A simulation of all the years, or of a part of them, with one job.
struct Life {
  Simulation simulation{1, {.start = kStart}};
  Dates ran_at;
  Dates occurrences;

  RecurringJob job() {
    return [this](WallTime occurrence) {
      ran_at.push_back(floor<milliseconds>(simulation.clock().wall_now()));
      occurrences.push_back(occurrence);
    };
  }
  void run_until(sys_days end) {
    simulation.run_for(end - floor<seconds>(simulation.clock().wall_now()));
  }
};

TEST(CronYears, TheLastWeekdayOfEachMonthAtNineInShanghaiAndNewYork) {
  const struct {
    const char* zone;
    Dates expected;
  } cases[] = {{"Asia/Shanghai", last_weekdays_of_months(from_shanghai)},
               {"America/New_York", last_weekdays_of_months(from_new_york)}};
  for (const auto& one : cases) {
    Life life;
    const TimerHandle timer = life.simulation.scheduler().schedule_on(
        Cron::parse("0 9 LW * *", one.zone).value(), life.job());
    life.run_until(kEnd);
    EXPECT_EQ(life.ran_at, one.expected) << one.zone;
    EXPECT_EQ(life.occurrences, one.expected) << one.zone;
    EXPECT_EQ(life.ran_at.size(), 12u * kYears);
  }
}

TEST(CronYears, EveryFiveMinutesOfAYear) {
  Life life;
  const TimerHandle timer =
      life.simulation.scheduler().schedule_on(Cron::parse("*/5 * * * *").value(), life.job());
  life.run_until(sys_days{year{kFirstYear + 1} / 1 / 1});
  ASSERT_EQ(life.ran_at.size(), 365u * 24 * 12);
  for (std::size_t i = 0; i < life.ran_at.size(); ++i) {
    ASSERT_EQ(life.ran_at[i], kStart + minutes{5} * (i + 1));
  }
  EXPECT_EQ(life.ran_at, life.occurrences);
}

// The 31st of every third month in New York, clamped to the month: for example 30 June.
TEST(CronYears, ACalendarIntervalForTenYears) {
  Dates expected;
  const year_month january = year{kFirstYear} / 1;
  for (int quarter = 0; quarter < 4 * kYears; ++quarter) {
    const year_month month = january + months{3 * quarter};
    const auto last_day = static_cast<unsigned>((month / last).day());
    expected.push_back(from_new_york(
        LocalTime{local_days{month / static_cast<int>(std::min(31u, last_day))}} + hours{18}));
  }
  const auto closing = CalendarInterval::make(
      {.anchor = expected.front(), .unit = CalendarUnit::month, .every = 3}, "America/New_York");
  Life life;
  const TimerHandle timer = life.simulation.scheduler().schedule_on(closing.value(), life.job());
  life.run_until(kEnd);
  EXPECT_EQ(life.ran_at, expected);
}

// A laptop that sleeps over every weekend, from Friday 18:00 UTC to Monday 07:00.
TEST(CronYears, AMachineThatSleepsOverWeekendsRunsMissedOccurrencesOnce) {
  Life life;
  const TimerHandle timer =
      life.simulation.scheduler().schedule_on(Cron::parse("0 0 * * *").value(), life.job());
  Dates expected;
  sys_seconds now = kStart;
  for (sys_days friday{kStart + days{2}}; friday < kEnd - days{7}; friday += days{7}) {
    for (sys_days day = floor<days>(now) + days{1}; day <= friday; day += days{1}) {
      expected.push_back(day);
    }
    life.simulation.run_for(friday + hours{18} - now);
    life.simulation.suspend(hours{61});
    now = friday + days{2} + hours{31};
    expected.push_back(now);
  }
  life.simulation.run_for(nanoseconds{0});
  EXPECT_EQ(life.ran_at, expected);
}

}  // namespace
}  // namespace detent
