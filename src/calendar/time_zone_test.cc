#include "calendar/time_zone.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::local_days;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

TimeZone zone(const char* name) { return TimeZone::load(name).value(); }

std::string file_of(const char* name) {
  std::ifstream file(std::string("/usr/share/zoneinfo/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<TimeZone> parse(const std::string& content) {
  return TimeZone::parse(std::as_bytes(std::span(content)));
}

TEST(TimeZone, UtcNeedsNoFile) {
  const auto utc = TimeZone::load("UTC", "/nowhere");
  ASSERT_TRUE(utc);
  EXPECT_EQ(utc->span_at(sys_seconds{}).offset, 0s);
  EXPECT_EQ(utc->span_at(sys_seconds{}).end, kEndOfTime);
}

TEST(TimeZone, RefusesUnknownNames) {
  for (const char* name : {"", "Nowhere/Town", "../zoneinfo/UTC", "/etc/passwd", "Europe",
                           "Europe/", "tzdata.zi", "zone.tab", "Europe/Ber lin"}) {
    const auto loaded = TimeZone::load(name);
    ASSERT_FALSE(loaded) << name;
    EXPECT_EQ(loaded.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_NE(TimeZone::load("Mars/Base").error().message.find("'Mars/Base'"), std::string::npos);
  EXPECT_EQ(TimeZone::load("UTC\n").error().message.find('\n'), std::string::npos);
}

TEST(TimeZone, ANameMayHaveAnyLetterCase) {
  const sys_seconds summer{sys_days{year{2026} / 7 / 1}};
  const auto offset_of = [summer](const char* name) { return zone(name).span_at(summer).offset; };
  for (const char* name : {"europe/berlin", "EUROPE/BERLIN", "Europe/berlin", "eUROPE/Berlin"}) {
    EXPECT_EQ(offset_of(name), 2h) << name;
  }
  EXPECT_EQ(offset_of("america/argentina/buenos_aires"), -3h);
  EXPECT_EQ(offset_of("utc"), 0s);
  for (const char* name : {"europe", "europe/berlin/mitte", "europe/berl"}) {
    EXPECT_FALSE(TimeZone::load(name)) << name;
  }
  EXPECT_FALSE(TimeZone::load("europe/berlin", "/nowhere"));
}

TEST(TimeZone, HasTheNameOfTheDatabase) {
  for (const char* name : {"europe/berlin", "EUROPE/BERLIN", "Europe/Berlin"}) {
    EXPECT_EQ(zone(name).name(), "Europe/Berlin");
  }
  EXPECT_EQ(zone("america/argentina/buenos_aires").name(), "America/Argentina/Buenos_Aires");
  EXPECT_EQ(zone("utc").name(), "UTC");
  EXPECT_EQ(zone("etc/utc").name(), "Etc/UTC");
}

TEST(TimeZone, SpansMeetAndDifferFrom1900To9999) {
  for (const char* name : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                           "Asia/Shanghai", "Africa/Casablanca", "America/St_Johns",
                           "Europe/Dublin", "Pacific/Apia", "Asia/Gaza", "America/Sao_Paulo"}) {
    const TimeZone tested = zone(name);
    OffsetSpan span = tested.span_at(kBeginOfTime);
    EXPECT_EQ(span.begin, kBeginOfTime);
    while (span.end < sys_days{year{9999} / 12 / 1}) {
      const OffsetSpan next = tested.span_at(span.end);
      ASSERT_EQ(next.begin, span.end) << name;
      ASSERT_NE(next.offset, span.offset) << name;
      ASSERT_LT(next.begin, next.end) << name;
      ASSERT_EQ(tested.span_at(next.end - seconds{1}).begin, next.begin) << name;
      span = next;
    }
  }
}

TEST(TimeZone, TheRuleHoldsAfterTheTable) {
  const TimeZone berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.span_at(sys_days{year{2050} / 7 / 1}).offset, 2h);
  EXPECT_EQ(berlin.span_at(sys_days{year{2050} / 12 / 1}).offset, 1h);
  EXPECT_EQ(berlin.span_at(sys_days{year{2050} / 7 / 1}).begin, sys_days{year{2050} / 3 / 27} + 1h);
  EXPECT_EQ(zone("Asia/Shanghai").span_at(sys_days{year{2050} / 7 / 1}).offset, 8h);
}

TEST(TimeZone, ALocalTimeInAGapHasNoInstantOrTheOneAfterTheGap) {
  const TimeZone berlin = zone("Europe/Berlin");
  const auto local = local_days{year{2025} / 3 / 30} + 2h + 30min;
  EXPECT_TRUE(berlin.instants_of(local, Gap::skip, Repeat::both).empty());
  const std::vector<sys_seconds> after = {sys_days{year{2025} / 3 / 30} + 1h};
  EXPECT_EQ(berlin.instants_of(local, Gap::run_after, Repeat::both), after);
}

TEST(TimeZone, AGapContainsItsFirstSecondAndNotItsEnd) {
  const TimeZone berlin = zone("Europe/Berlin");
  const auto count = [&](std::chrono::seconds time) {
    const auto local = local_days{year{2025} / 3 / 30} + time;
    return berlin.instants_of(local, Gap::skip, Repeat::both).size();
  };
  EXPECT_EQ(count(2h - 1s), 1u);
  EXPECT_EQ(count(2h), 0u);
  EXPECT_EQ(count(3h - 1s), 0u);
  EXPECT_EQ(count(3h), 1u);
}

TEST(TimeZone, ARepeatedLocalTimeHasTheInstantsOfThePolicy) {
  const TimeZone lord_howe = zone("Australia/Lord_Howe");  // half an hour comes twice
  const auto local = local_days{year{2025} / 4 / 6} + 1h + 45min;
  const sys_seconds first = sys_days{year{2025} / 4 / 5} + 14h + 45min;
  const auto instants = [&](Repeat repeat) {
    return lord_howe.instants_of(local, Gap::skip, repeat);
  };
  EXPECT_EQ(instants(Repeat::first), std::vector{first});
  EXPECT_EQ(instants(Repeat::second), std::vector{first + 30min});
  EXPECT_EQ(instants(Repeat::both), (std::vector{first, first + 30min}));
}

TEST(TimeZone, ASkippedDayIsAGap) {
  const auto local = local_days{year{2011} / 12 / 30} + 12h;
  const std::vector<sys_seconds> after = {sys_days{year{2011} / 12 / 30} + 10h};
  EXPECT_EQ(zone("Pacific/Apia").instants_of(local, Gap::run_after, Repeat::first), after);
}

/// A file with the offsets one hour and two hours, a change to two hours `at`, and the rule of
/// Berlin.
std::string small_file(sys_seconds at) {
  const auto header = [](char changes, char types, char characters) {
    return "TZif2" + std::string(27, '\0') + std::string{0, 0, 0, changes} +
           std::string{0, 0, 0, types} + std::string{0, 0, 0, characters};
  };
  std::string content = header(0, 1, 1) + std::string(7, '\0') + header(1, 2, 1);
  for (int shift = 56; shift >= 0; shift -= 8) {
    content.push_back(static_cast<char>(at.time_since_epoch().count() >> shift & 0xFF));
  }
  const std::string types{1, 0, 0, 0x0E, 0x10, 0, 0, 0, 0, 0x1C, 0x20, 1, 0, 0};
  return content + types + "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
}

TEST(TimeZone, TheRuleBeginsWhereTheTableEnds) {
  const sys_seconds table_end = sys_days{year{2001} / 1 / 15};
  const auto tested = parse(small_file(table_end));
  ASSERT_TRUE(tested) << tested.error().message;
  EXPECT_EQ(tested->span_at(table_end - seconds{1}).offset, 1h);
  EXPECT_EQ(tested->span_at(table_end - seconds{1}).end, table_end);
  // The rule's change in March sets the offset that already holds, so it does not begin a span.
  const OffsetSpan span = tested->span_at(table_end);
  EXPECT_EQ(span.begin, table_end);
  EXPECT_EQ(span.offset, 2h);
  EXPECT_EQ(span.end, sys_days{year{2001} / 10 / 28} + 1h);
  EXPECT_EQ(tested->span_at(span.end).offset, 1h);
}

TEST(TimeZone, RefusesAFileTruncatedAnywhere) {
  const std::string content = file_of("Europe/Berlin");
  ASSERT_TRUE(parse(content));
  for (std::size_t size = 0; size < content.size(); ++size) {
    EXPECT_FALSE(parse(content.substr(0, size))) << size;
  }
}

TEST(TimeZone, RefusesDamagedFiles) {
  const std::string content = file_of("Asia/Shanghai");
  const auto with = [&](std::size_t at, char value) {
    std::string damaged = content;
    damaged.at(at) = value;
    return damaged;
  };
  EXPECT_FALSE(parse(with(0, 'X')));
  EXPECT_FALSE(parse(with(4, '\0'))) << "version 1 has no second block";
  EXPECT_FALSE(parse(with(20 + 4 * 3, '\x7F'))) << "a count beyond all files";
  const std::size_t second = content.rfind("TZif");
  EXPECT_FALSE(parse(with(second, 'X')));
  EXPECT_FALSE(parse(with(second + 20 + 4 * 2 + 3, '\1'))) << "leap seconds";
  EXPECT_FALSE(parse(with(second + 44 + 8, '\x7F'))) << "changes out of order";
  EXPECT_FALSE(parse(with(content.size() - 2, ','))) << "the rule";
  EXPECT_FALSE(parse(with(content.rfind('\n', content.size() - 2), 'X'))) << "where it begins";
}

}  // namespace
}  // namespace detent
