#include "calendar/cron_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace detent {
namespace {

struct Refused {
  const char* expression;
  std::size_t column;
  const char* says;  // part of the message
};

constexpr const char* kMinutes = "allowed are 0-59";
constexpr const char* kHours = "allowed are 0-23";
constexpr const char* kDays =
    "allowed are 1-31, *, ?, ranges a-b, steps */n, lists a,b, L, L-n, nW";
constexpr const char* kMonths = "allowed are 1-12 or JAN-DEC";
constexpr const char* kWeekdays = "allowed are 0-7 or SUN-SAT";

constexpr Refused kRefused[] = {
    {"", 1, "got 0"},
    {"* * * *", 8, "got 4"},
    {"* * * * * * *", 13, "got 7"},
    {"60 * * * *", 1, kMinutes},
    {"5,60 * * * *", 3, kMinutes},
    {"5, * * * *", 3, "a value is missing in the field minute"},
    {",5 * * * *", 1, "a value is missing in the field minute"},
    {"x * * * *", 1, "'x' is not allowed as minute"},
    {"5x * * * *", 1, "'5x' is not allowed as minute"},
    {"99999 * * * *", 1, kMinutes},
    {"-5 * * * *", 1, kMinutes},
    {"5- * * * *", 1, kMinutes},
    {"*5 * * * *", 1, kMinutes},
    {"? * * * *", 1, kMinutes},
    {"60 0 0 * * *", 1, "as second"},
    {"  0  24 * * *", 6, kHours},
    {"0 22-4 * * *", 3, "write a range that wraps around as two ranges, a-23,0-b"},
    {"*/0 * * * *", 3, "from 1 to 59"},
    {"*/60 * * * *", 3, "from 1 to 59"},
    {"*/ * * * *", 3, "from 1 to 59"},
    {"0 */24 * * *", 5, "from 1 to 23"},
    {"0 0 0 * *", 5, kDays},
    {"0 0 32 * *", 5, kDays},
    {"0 0 L-0 * *", 5, "n must be from 1 to 30"},
    {"0 0 L-31 * *", 5, "n must be from 1 to 30"},
    {"0 0 1,LX * *", 7, kDays},
    {"0 0 W * *", 5, kDays},
    {"0 0 5-9W * *", 5, kDays},
    {"0 0 1 0 *", 7, kMonths},
    {"0 0 1 13 *", 7, kMonths},
    {"0 0 1 FOO *", 7, kMonths},
    {"0 0 1 JANUARY *", 7, kMonths},
    {"0 0 * * 8", 9, kWeekdays},
    {"0 0 * * FRIDAY", 9, kWeekdays},
    {"0 0 * * L", 9, "FRIL or 5L is the last Friday"},
    {"0 0 * * FRI#6", 9, "k must be from 1 to 5"},
    {"0 0 * * FRI#0", 9, "k must be from 1 to 5"},
    {"0 0 * * 5#", 9, "k must be from 1 to 5"},
    {"0 0 * * MON,5W", 13, kWeekdays},
    {"0 0 * * FRI-MON", 9, "must go upwards"},
    {"0 0 30 2 *", 5, "never"},
    {"0 0 31 4,6,9,11 *", 5, "never"},
    {"0 0 31W FEB ?", 5, "never"},
    {"0 0 L-29 2 *", 5, "never"},
    {"0 0 */31 2 TUE#5", 5, "never"},
    {"@reboot", 1, "allowed are @yearly"},
    {" @dailyy", 2, "allowed are @yearly"},
    {"@daily 5", 8, "takes no arguments"},
    {"@every", 7, "one duration"},
    {"@every 5 m", 10, "one duration"},
    {"@every 5x", 8, ""},
    {"@every 0s", 8, "greater than 0"},
    {"0 9 * * *\n", 10, "must not have a control character, such as a line break"},
    {"0\r 9 * * *", 2, "must not have a control character"},
    {"@day\x1b[2J", 5, "must not have a control character"},
    {"0 9 * * \x7f", 9, "must not have a control character"},
};

TEST(CronParser, ErrorsPointAtTheColumnAndSayWhatIsAllowed) {
  for (const Refused& refused : kRefused) {
    const auto parsed = parse_cron(refused.expression);
    ASSERT_FALSE(parsed) << refused.expression;
    EXPECT_EQ(parsed.error().column, refused.column)
        << refused.expression << ": " << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(refused.says), std::string::npos)
        << refused.expression << ": " << parsed.error().message;
  }
}

// A control character would break the line that shows the error.
TEST(CronParser, ErrorsHaveNoControlCharacter) {
  for (int byte = 0; byte < 0x100; ++byte) {
    const bool is_control = byte < 0x20 || byte == 0x7f;
    const std::string text(1, static_cast<char>(byte));
    for (const std::string& expression : {"0 9 * * 1" + text, "@" + text, "@every 1" + text,
                                          text + " 9 * * *", "0 0 1 * * * 7" + text}) {
      const auto parsed = parse_cron(expression);
      if (parsed) continue;
      for (const char c : parsed.error().message) {
        ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << byte;
      }
      if (is_control && byte != '\t') {
        EXPECT_NE(parsed.error().message.find("control character"), std::string::npos) << byte;
      }
    }
  }
}

TEST(CronParser, AnExpressionHasALimit) {
  const auto parsed = parse_cron("0 0 1 1 *" + std::string(1000, ' '));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().column, 1001U);
}

CronFields fields_of(std::string_view expression) {
  const auto parsed = parse_cron(expression);
  EXPECT_TRUE(parsed) << expression << ": " << parsed.error().message;
  return parsed ? std::get<CronFields>(parsed.value()) : CronFields{};
}

TEST(CronParser, ReadsValuesRangesStepsAndLists) {
  const CronFields fields = fields_of("0-59/20,7 5/25 8-10,22 */10 FEB-apr,12 sat-SUN");
  EXPECT_EQ(fields.seconds, 1ULL | 1ULL << 7 | 1ULL << 20 | 1ULL << 40);
  EXPECT_EQ(fields.minutes, 1ULL << 5 | 1ULL << 30 | 1ULL << 55);
  EXPECT_EQ(fields.hours, 1U << 8 | 1U << 9 | 1U << 10 | 1U << 22);
  EXPECT_EQ(fields.days, 1U << 1 | 1U << 11 | 1U << 21 | 1U << 31);
  EXPECT_TRUE(fields.is_day_starred);
  EXPECT_EQ(fields.months, 1U << 2 | 1U << 3 | 1U << 4 | 1U << 12);
  EXPECT_EQ(fields.weekdays, 1U << 6 | 1U);
  EXPECT_FALSE(fields.is_weekday_starred);
}

TEST(CronParser, SevenIsSunday) {
  EXPECT_EQ(fields_of("0 0 * * 7").weekdays, 1U);
  EXPECT_EQ(fields_of("0 0 * * 5-7").weekdays, 1U << 5 | 1U << 6 | 1U);
  EXPECT_EQ(fields_of("0 0 * * 0-7").weekdays, 0x7FU);
  EXPECT_EQ(fields_of("0 0 * * */3").weekdays, 1U | 1U << 3 | 1U << 6);
  EXPECT_EQ(fields_of("0 0 * * 7L").last_weekdays, 1U);
  EXPECT_EQ(fields_of("0 0 * * 7#2").nth_weekdays[2], 1U);
}

TEST(CronParser, FiveFieldsHaveSecondZero) { EXPECT_EQ(fields_of("* * * * *").seconds, 1U); }

TEST(CronParser, TheFormsWithLettersCanBeMixed) {
  const CronFields fields = fields_of("0 0 l,L-3,15w,LW,2 * fri#2,MONL,3");
  EXPECT_EQ(fields.days_to_last, 1U | 1U << 3);
  EXPECT_EQ(fields.nearest_to, 1U << 15);
  EXPECT_TRUE(fields.has_last_weekday);
  EXPECT_EQ(fields.days, 1U << 2);
  EXPECT_EQ(fields.nth_weekdays[2], 1U << 5);
  EXPECT_EQ(fields.last_weekdays, 1U << 1);
  EXPECT_EQ(fields.weekdays, 1U << 3);
}

}  // namespace
}  // namespace detent
