// Reads and explains the crontab lines of Debian 12 packages (debian_crontabs.txt), and runs them
// for a simulated year. The runs must be equal to the runs that a scan of each minute of the year
// finds.
//
// The scan has its own parser, which supports only the forms in these lines: numbers, ranges, steps
// and lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "calendar/time_zone.h"
#include "detent/cron.h"
#include "detent/simulation.h"
#include "tests/oracle/data_lines.h"

namespace detent::oracle {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr sys_days kBegin{std::chrono::year{2026} / 1 / 1};
constexpr sys_days kEnd{std::chrono::year{2027} / 1 / 1};

struct CrontabLine {
  std::string package;
  std::string expression;  // unchanged from the file
};

/// Returns the lines except those that begin with "@reboot". Adds the latter to `refused`.
std::vector<CrontabLine> crontab_lines(std::vector<CrontabLine>* refused = nullptr) {
  std::vector<CrontabLine> lines;
  for (const std::string& line : lines_of("debian_crontabs.txt")) {
    const auto parts = parts_of(line, "\t");
    const std::size_t begin = parts[0].size() + parts[1].size() + parts[2].size() + 3;
    const std::size_t user = line.find_last_of(" \t");
    CrontabLine found{parts[0], line.substr(begin, user - begin)};
    if (!found.expression.starts_with("@reboot")) {
      lines.push_back(std::move(found));
    } else if (refused != nullptr) {
      refused->push_back(std::move(found));
    }
  }
  return lines;
}

TEST(DebianCrontabs, EachLineIsReadAndExplained) {
  const std::map<std::string, std::string> explained = {
      {"amavisd-new", "At minute 18, in every third hour from 00:00 (UTC)"},
      {"anacron", "At minute 30, in hours 7 to 23 (UTC)"},
      {"certbot", "At 00:00 and 12:00 (UTC)"},
      {"cron-daemon-common", "At minute 17 of every hour (UTC)"},
      {"mdadm", "At 00:57 on Sunday (UTC)"},
      {"php-common", "At minutes 9 and 39 of every hour (UTC)"},
      {"sanoid", "Every 15 minutes (UTC)"},
      {"sysstat", "At minutes 5, 15, 25, 35, 45 and 55 of every hour (UTC)"},
  };
  std::map<std::string, std::string> first;
  for (const CrontabLine& line : crontab_lines()) {
    const auto cron = Cron::parse(line.expression);
    ASSERT_TRUE(cron) << line.package << " '" << line.expression << "': " << cron.error().message;
    EXPECT_TRUE(cron.value().explain().ends_with(" (UTC)"));
    first.emplace(line.package, cron.value().explain());
  }
  EXPECT_GE(first.size(), 20U);
  for (const auto& [package, text] : explained) EXPECT_EQ(first[package], text) << package;
}

TEST(DebianCrontabs, RebootLinesAreRefusedBecauseTheyNameNoTime) {
  std::vector<CrontabLine> refused;
  (void)crontab_lines(&refused);
  EXPECT_EQ(refused.size(), 2U);
  for (const CrontabLine& line : refused) {
    const auto cron = Cron::parse(line.expression);
    ASSERT_FALSE(cron) << line.package;
    EXPECT_EQ(cron.error().column, 1U);
    EXPECT_TRUE(cron.error().message.starts_with("unknown name '@reboot'")) << line.package;
  }
}

int number_of(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// True if a field includes `value`. A field is a list of "*", "a" or "a-b", each with or without
/// "/n".
bool has(const std::string& field, int low, int value) {
  for (const std::string& item : parts_of(field, ",")) {
    const auto range_and_step = parts_of(item, "/");
    const auto bounds = parts_of(range_and_step.front(), "-");
    const bool is_star = bounds.front() == "*";
    const int begin = is_star ? low : number_of(bounds.front());
    const int end = is_star ? 60 : number_of(bounds.back());
    const int step = range_and_step.size() > 1 ? number_of(range_and_step[1]) : 1;
    if (value >= begin && value <= end && (value - begin) % step == 0) return true;
  }
  return false;
}

/// The five fields of a line, each with the values that it includes.
struct Fields {
  std::array<std::string, 5> texts;
  std::array<std::array<bool, 60>, 5> values = {};

  bool is_starred(std::size_t field) const { return texts.at(field).front() == '*'; }
  bool has(std::size_t field, unsigned value) const { return values.at(field).at(value); }
};

Fields read_fields(const std::string& expression) {
  Fields fields;
  std::istringstream words(expression);
  for (std::size_t i = 0; i < fields.texts.size(); ++i) {
    words >> fields.texts.at(i);
    const int low = i == 2 || i == 3 ? 1 : 0;
    for (int value = 0; value < 60; ++value) {
      fields.values.at(i).at(static_cast<std::size_t>(value)) = has(fields.texts.at(i), low, value);
    }
  }
  return fields;
}

bool fits(const Fields& fields, local_seconds local) {
  const auto date = std::chrono::floor<days>(local);
  const std::chrono::year_month_day ymd{date};
  const auto of_day = static_cast<unsigned>((local - date) / minutes{1});
  if (!fields.has(0, of_day % 60) || !fields.has(1, of_day / 60)) return false;
  const std::chrono::weekday weekday{date};
  const bool is_date = fields.has(2, static_cast<unsigned>(ymd.day()));
  const bool is_weekday =
      fields.has(4, weekday.c_encoding()) || fields.has(4, weekday.iso_encoding());
  const bool wants_both = fields.is_starred(2) || fields.is_starred(4);
  return fields.has(3, static_cast<unsigned>(ymd.month())) &&
         (wants_both ? is_date && is_weekday : is_date || is_weekday);
}

/// The local time at each minute of the year.
std::vector<local_seconds> minutes_of_year(const TimeZone& zone) {
  std::vector<local_seconds> locals;
  for (sys_seconds time = kBegin; time < kEnd; time += minutes{1}) {
    locals.push_back(zone.span_at(time).to_local(time));
  }
  return locals;
}

/// Finds the runs as Vixie cron does. A line with "*" as its hour follows real time. For other
/// lines: a local time that comes twice runs once, and a local time in a gap runs after the gap.
std::vector<sys_seconds> runs_by_minutes(const Fields& fields,
                                         const std::vector<local_seconds>& locals) {
  const bool is_real_time = fields.texts[1] == "*";
  std::vector<sys_seconds> runs;
  local_seconds latest = locals.front() - minutes{1};
  for (std::size_t i = 0; i < locals.size(); ++i) {
    bool is_run = fits(fields, locals[i]) && (is_real_time || locals[i] > latest);
    for (local_seconds missing = latest + minutes{1}; missing < locals[i]; missing += minutes{1}) {
      is_run = is_run || (!is_real_time && fits(fields, missing));
    }
    if (is_run) runs.emplace_back(kBegin + static_cast<int>(i) * minutes{1});
    latest = std::max(latest, locals[i]);
  }
  return runs;
}

struct CrontabJob {
  std::string expression;
  std::vector<sys_seconds> runs = {};
};

void run_for_a_year(const std::string& zone_name) {
  const auto locals = minutes_of_year(TimeZone::load(zone_name).value());
  std::vector<CrontabJob> jobs;
  for (const CrontabLine& line : crontab_lines()) jobs.push_back({line.expression});
  // Begins one second before the year. Otherwise the first minute of the year would not be a next
  // run.
  const std::chrono::seconds before{1};
  Simulation simulation(1, {.start = WallInstant{kBegin - before}});
  for (CrontabJob& job : jobs) {
    simulation.scheduler()
        .schedule_on(Cron::parse(job.expression, zone_name).value(),
                     [&simulation, &job](WallTime /*occurrence*/) {
                       const auto now = simulation.clock().wall_now();
                       job.runs.push_back(std::chrono::floor<std::chrono::seconds>(now));
                     })
        .release();
  }
  simulation.run_for(kEnd - kBegin);
  std::size_t count = 0;
  for (const CrontabJob& job : jobs) {
    const auto expected = runs_by_minutes(read_fields(job.expression), locals);
    EXPECT_EQ(job.runs.size(), expected.size()) << job.expression << " " << zone_name;
    EXPECT_TRUE(job.runs == expected) << job.expression << " " << zone_name;
    count += expected.size();
  }
  EXPECT_GT(count, 500'000U);
}

TEST(DebianCrontabs, EachLineRunsForASimulatedYearInBerlin) { run_for_a_year("Europe/Berlin"); }

TEST(DebianCrontabs, EachLineRunsForASimulatedYearWhereClocksChangeByHalfAnHour) {
  run_for_a_year("Australia/Lord_Howe");
}

}  // namespace
}  // namespace detent::oracle
