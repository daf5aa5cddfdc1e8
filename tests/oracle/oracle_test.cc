// Compares Cron with croner: 50 expressions in the zones of the tz database, around each change of
// the clocks in 20 years, and from the beginning on. Each difference must be a known difference,
// and each known difference must still exist.
//
// Cron runs with Gap::skip and Repeat::first, because they are nearest to the behavior of croner.
// cron_model_test.cc tests the other policies with a scan of each minute.
//
// DETENT_ORACLE_ZONES=N compares N zones completely. They begin at number N × (DETENT_SEED - 1) in
// the list of all zones. Otherwise the seed selects a few zones, a few changes and fewer runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "base/rng.h"
#include "base/test_seed.h"
#include "tests/oracle/croner.h"
#include "tests/oracle/data_lines.h"
#include "tests/oracle/known_differences.h"

namespace detent::oracle {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

constexpr sys_days kBegin{year{2020} / 1 / 1};
constexpr sys_days kEndOfChanges{year{2040} / 1 / 1};
/// The end of the search for runs. Rare expressions need this long for enough runs.
constexpr sys_days kEndOfRuns{year{2120} / 1 / 1};
constexpr const char* kZoneSource = "/usr/share/zoneinfo/tzdata.zi";

/// The version and the zones of the system's tz database. Links, which are other names of these
/// zones, are left out.
struct ZoneList {
  std::string version;
  std::vector<std::string> names;
};

ZoneList all_zones() {
  std::ifstream file(kZoneSource);
  ZoneList zones;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    words >> kind >> name;
    if (kind == "#" && name == "version") words >> zones.version;
    if (kind == "Z") zones.names.push_back(name);
  }
  std::sort(zones.names.begin(), zones.names.end());
  return zones;
}

/// The amount of comparison.
struct Size {
  std::vector<std::string> zones;
  std::size_t most_changes;  // changes of the clocks of each zone
  std::size_t most_runs;     // from kBegin on
};

std::size_t zones_asked_for() {
  const char* text = std::getenv("DETENT_ORACLE_ZONES");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

Size chosen_size(const std::vector<std::string>& zones, std::uint64_t seed, Rng& rng) {
  constexpr std::size_t kSampleZones = 5;
  const std::size_t count = std::min(zones_asked_for(), zones.size());
  Size size = count == 0 ? Size{{}, 2, 100} : Size{{}, 1000, 1000};
  for (std::size_t i = 0; i < count; ++i) {
    size.zones.push_back(zones[((seed - 1) * count + i) % zones.size()]);
  }
  while (count == 0 && size.zones.size() < kSampleZones) {
    size.zones.push_back(zones[rng.below(static_cast<std::uint32_t>(zones.size()))]);
  }
  return size;
}

/// Windows around at most `most` changes of the zone.
std::vector<Window> change_windows(const TimeZone& zone, std::size_t most, Rng& rng) {
  std::vector<Window> windows;
  for (sys_seconds at = zone.span_at(kBegin).end; at < kEndOfChanges; at = zone.span_at(at).end) {
    windows.push_back({at - days{2}, at + days{2}});
  }
  while (windows.size() > most) {
    const auto size = static_cast<std::uint32_t>(windows.size());
    windows.erase(windows.begin() + static_cast<std::ptrdiff_t>(rng.below(size)));
  }
  return windows;
}

std::vector<RunsQuestion> questions_about(const std::string& name, const TimeZone& zone,
                                          const Size& size, Rng& rng) {
  constexpr std::size_t kAll = 1'000'000;
  std::vector<RunsQuestion> questions;
  const auto windows = change_windows(zone, size.most_changes, rng);
  for (const std::string& expression : lines_of("expressions.txt")) {
    questions.push_back({expression, name, {kBegin, kEndOfRuns}, size.most_runs});
    for (const Window& window : windows) questions.push_back({expression, name, window, kAll});
  }
  return questions;
}

/// Asks croner, with the spelling of croner.
Result<Answers> ask(const KnownDifferences& known, const std::vector<std::string>& zones,
                    std::vector<RunsQuestion> questions) {
  for (RunsQuestion& question : questions) {
    question.expression = known.croners_spelling(question.expression);
  }
  return ask_croner(zones, {kBegin, kEndOfRuns}, questions);
}

std::vector<sys_seconds> our_runs(const RunsQuestion& question, sys_seconds end) {
  const auto cron =
      Cron::parse(question.expression, question.zone, {.gap = Gap::skip, .repeat = Repeat::first});
  if (!cron) {
    ADD_FAILURE() << question.expression << ": " << cron.error().message;
    return {};
  }
  std::vector<sys_seconds> runs;
  WallTime at = WallTime{question.window.begin} - std::chrono::milliseconds{1};
  for (auto next = cron.value().next_after(at); next && *next < end;
       next = cron.value().next_after(at)) {
    EXPECT_GT(*next, at);
    at = *next;
    runs.push_back(std::chrono::floor<seconds>(at));
  }
  return runs;
}

/// The differences. If croner gave as many runs as were wanted, only up to its last run.
Differences differences(const RunsQuestion& question, const RunsAnswer& croners) {
  const bool is_cut = croners.runs.size() == question.most;
  const sys_seconds end = is_cut ? croners.runs.back() + seconds{1} : question.window.end;
  const auto ours = our_runs(question, end);
  Differences found;
  std::set_difference(croners.runs.begin(), croners.runs.end(), ours.begin(), ours.end(),
                      std::inserter(found.only_croner, found.only_croner.end()));
  std::set_difference(ours.begin(), ours.end(), croners.runs.begin(), croners.runs.end(),
                      std::inserter(found.only_ours, found.only_ours.end()));
  return found;
}

/// The number of differences of each kind.
struct Tally {
  std::size_t runs = 0;
  std::size_t gaps = 0;
  std::size_t odd_repeats = 0;
  std::size_t after_february = 0;
  std::size_t unexplained = 0;

  void add(std::optional<DifferenceKind> kind) { ++count_of(kind); }

 private:
  std::size_t& count_of(std::optional<DifferenceKind> kind) {
    if (!kind) return unexplained;
    switch (*kind) {
      case DifferenceKind::gap:
        return gaps;
      case DifferenceKind::odd_repeat:
        return odd_repeats;
      case DifferenceKind::after_february:
        return after_february;
    }
    return unexplained;
  }
};

void compare(const RunsQuestion& question, const RunsAnswer& croners, const TimeZone& zone,
             Tally& tally) {
  SCOPED_TRACE(question.expression + " in " + question.zone);
  ASSERT_EQ(croners.error, "");
  tally.runs += croners.runs.size();
  const Differences found = differences(question, croners);
  const Explainer explainer(question.expression, zone);
  const auto check = [&](sys_seconds time, std::optional<DifferenceKind> kind, const char* whose) {
    tally.add(kind);
    EXPECT_TRUE(kind) << "only " << whose << ": " << time.time_since_epoch().count();
  };
  for (const sys_seconds time : found.only_croner) {
    check(time, explainer.kind_of_croners(time, found), "croner");
  }
  for (const sys_seconds time : found.only_ours) {
    check(time, explainer.kind_of_ours(time, found), "ours");
  }
}

/// True if Node and the system have the same offsets for the zone.
bool has_same_offsets(const TimeZone& zone, const ZoneAnswer& croners) {
  std::vector<OffsetChange> ours{{kBegin, zone.span_at(kBegin).offset}};
  for (OffsetSpan span = zone.span_at(kBegin); span.end < kEndOfRuns;) {
    span = zone.span_at(span.end);
    ours.push_back({span.begin, span.offset});
  }
  return std::equal(ours.begin(), ours.end(), croners.offsets.begin(), croners.offsets.end(),
                    [](const OffsetChange& a, const OffsetChange& b) {
                      return a.at == b.at && a.offset == b.offset;
                    });
}

// A zone cannot be compared if Node has other data for it. The only accepted reason is another
// version of the tz database.
TEST(CronOracle, AgreesWithCroner) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const ZoneList system = all_zones();
  ASSERT_GT(system.names.size(), 300U) << "no list of zones in " << kZoneSource;
  const KnownDifferences known = read_known_differences();
  const Size size = chosen_size(system.names, seed, rng);
  Tally tally;
  std::size_t other_data = 0;
  for (const std::string& name : size.zones) {
    const TimeZone zone = TimeZone::load(name).value();
    const auto questions = questions_about(name, zone, size, rng);
    const auto answers = ask(known, {name}, questions);
    ASSERT_TRUE(answers) << answers.error().message;
    if (std::count(known.zones.begin(), known.zones.end(), name) > 0) continue;
    if (!has_same_offsets(zone, answers->zones.front())) {
      ++other_data;
      EXPECT_NE(answers->tzdata, system.version) << name << " has other offsets in Node";
      continue;
    }
    for (std::size_t i = 0; i < questions.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(compare(questions[i], answers->runs[i], zone, tally));
    }
  }
  EXPECT_EQ(tally.unexplained, 0U);
  EXPECT_LE(other_data, 1 + size.zones.size() / 10) << "most zones have other data in Node";
  std::cout << size.zones.size() << " zones, " << other_data << " with other data; " << tally.runs
            << " runs; differences: " << tally.gaps << " in gaps, " << tally.odd_repeats
            << " in odd repeats, " << tally.after_february << " after February, "
            << tally.unexplained << " unexplained\n";
}

bool is_same(const RunsQuestion& question, const RunsAnswer& croners) {
  const Differences found = differences(question, croners);
  return croners.error.empty() && found.only_croner.empty() && found.only_ours.empty();
}

TEST(CronOracle, EachKnownSpellingIsNecessaryAndCorrect) {
  const auto spellings = read_known_differences().spellings;
  const Window window{kBegin, kEndOfChanges};
  std::vector<RunsQuestion> asked;
  for (const KnownSpelling& spelling : spellings) {
    asked.push_back({spelling.ours, "UTC", window, 1000});
    asked.push_back({spelling.croners, "UTC", window, 1000});
  }
  const auto answers = ask_croner({}, window, asked);
  ASSERT_TRUE(answers) << answers.error().message;
  for (std::size_t i = 0; i < spellings.size(); ++i) {
    const RunsQuestion& question = asked[2 * i];
    EXPECT_FALSE(is_same(question, answers->runs[2 * i]))
        << "croner reads '" << question.expression
        << "' as Cron does: remove this known difference";
    EXPECT_TRUE(is_same(question, answers->runs[2 * i + 1])) << question.expression;
  }
}

// The clocks of these zones have followed the same law for a long time, and no change of the law is
// planned. So their offsets must be equal in any version of the tz database.
TEST(CronOracle, ZonesWithALastingLawHaveTheSameOffsetsInNode) {
  const std::vector<std::string> names = {"Europe/Berlin",    "America/New_York",
                                          "Australia/Sydney", "Australia/Lord_Howe",
                                          "Pacific/Auckland", "Asia/Shanghai"};
  const auto answers = ask_croner(names, {kBegin, kEndOfRuns}, {});
  ASSERT_TRUE(answers) << answers.error().message;
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(has_same_offsets(TimeZone::load(names[i]).value(), answers->zones[i])) << names[i];
  }
}

/// The ICU of Node decides whether croner has these zones, so only Cron is tested.
TEST(CronOracle, CronHasEachZoneThatCronerMayLack) {
  for (const std::string& zone : read_known_differences().zones) {
    EXPECT_TRUE(TimeZone::load(zone)) << zone;
  }
}

TEST(CronOracle, EachKnownKindOfDifferenceStillExists) {
  for (const KnownInstant& instant : read_known_differences().instants) {
    SCOPED_TRACE(instant.expression + " in " + instant.zone);
    const Window day{instant.day, instant.day + days{1}};
    const RunsQuestion question{instant.expression, instant.zone, day, 1000};
    const auto answers = ask_croner({}, day, {question});
    ASSERT_TRUE(answers) << answers.error().message;
    const Differences found = differences(question, answers->runs.front());
    const TimeZone zone = TimeZone::load(instant.zone).value();
    const Explainer explainer(instant.expression, zone);
    EXPECT_GT(found.only_croner.size() + found.only_ours.size(), 0U)
        << "no difference found: remove this known difference";
    for (const sys_seconds time : found.only_croner) {
      EXPECT_EQ(explainer.kind_of_croners(time, found), instant.kind);
    }
    for (const sys_seconds time : found.only_ours) {
      EXPECT_EQ(explainer.kind_of_ours(time, found), instant.kind);
    }
  }
}

}  // namespace
}  // namespace detent::oracle
