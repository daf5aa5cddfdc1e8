#include "calendar/cron_explain.h"

#include <gtest/gtest.h>

#include "detent/cron.h"

namespace detent {
namespace {

struct Explained {
  const char* expression;
  const char* text;
};

constexpr Explained kExplained[] = {
    {"* * * * *", "Every minute"},
    {"* * * * * *", "Every second"},
    {"*/15 * * * *", "Every 15 minutes"},
    {"*/15 * * * * *", "Every 15 seconds"},
    {"30 * * * * *", "At second 30 of every minute"},
    {"5 * * * *", "At minute 5 of every hour"},
    {"5,35 * * * *", "At minutes 5 and 35 of every hour"},
    {"*/20 5 * * * *", "Every 20 seconds, at minute 5 of every hour"},
    {"*/10 9-17 * * MON-FRI", "Every 10 minutes, in hours 9 to 17 on Monday to Friday"},
    {"*/5 8 * * *", "Every 5 minutes, in hour 8"},
    {"*/20 */2 * * *", "Every 20 minutes, in every second hour from 00:00"},
    {"18 */3 * * *", "At minute 18, in every third hour from 00:00"},
    {"*/20 */6 * * *", "Every 20 minutes, in every 6th hour from 00:00"},
    {"0 9 * * *", "At 09:00"},
    {"0 9,17 * * *", "At 09:00 and 17:00"},
    {"15 30 9 * * *", "At 09:30:15"},
    {"0 9 1 * *", "At 09:00 on day 1 of the month"},
    {"0 9 1,15 * *", "At 09:00 on days 1 and 15 of the month"},
    {"0 9 1-5 JAN,JUL *", "At 09:00 on days 1 to 5 of the month, in January and July"},
    {"0 9 L * *", "At 09:00 on the last day of the month"},
    {"0 9 L-1 * *", "At 09:00 1 day before the last day of the month"},
    {"0 9 L-3 * *", "At 09:00 3 days before the last day of the month"},
    {"0 9 15W * *", "At 09:00 on the weekday nearest to day 15 of the month"},
    {"0 9 LW * *", "At 09:00 on the last weekday of the month"},
    {"0 9 * * SAT,SUN", "At 09:00 on Saturday and Sunday"},
    {"0 9 * * FRI#2", "At 09:00 on the second Friday of the month"},
    {"0 9 * * 5L", "At 09:00 on the last Friday of the month"},
    {"0 0 13 * FRI", "At 00:00 on day 13 of the month or on Friday"},
    {"0 0 */10 * FRI", "At 00:00 on Friday, if that is also on days 1, 11, 21 and 31 of the month"},
    {"@daily", "At 00:00"},
    {"@hourly", "At minute 0 of every hour"},
    {"@every 90s", "Every 90 seconds, counted from 1970-01-01T00:00:00Z"},
    {"@every 1d", "Every 1 day, counted from 1970-01-01T00:00:00Z"},
    {"@every 1500ms", "Every 1500 milliseconds, counted from 1970-01-01T00:00:00Z"},
};

TEST(CronExplain, ExplainsExpressionsInPlainEnglish) {
  for (const Explained& explained : kExplained) {
    EXPECT_EQ(explain_cron(parse_cron(explained.expression).value()), explained.text)
        << explained.expression;
  }
}

TEST(CronExplain, NamesTheZoneOfLocalTimes) {
  EXPECT_EQ(Cron::parse("0 9 1 * *", "Asia/Shanghai").value().explain(),
            "At 09:00 on day 1 of the month (Asia/Shanghai)");
  EXPECT_EQ(Cron::parse("@every 1h", "Asia/Shanghai").value().explain(),
            "Every 1 hour, counted from 1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace detent
