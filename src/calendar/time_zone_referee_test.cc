// Compares TimeZone with Howard Hinnant's date library, which reads the same files with other code.
// Its version in Debian 12 ignores the rule at the end of a file, so the test covers only 1970 to
// 2036.
#include <date/tz.h>
#include <gtest/gtest.h>

#include "calendar/time_zone.h"

namespace detent {
namespace {

using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

TEST(TimeZoneReferee, EveryZoneHasTheSameOffsetsAndChanges) {
  const sys_seconds end = sys_days{year{2037} / 1 / 1};
  std::size_t zones = 0;
  for (const date::time_zone& theirs : date::get_tzdb().zones) {
    const auto ours = TimeZone::load(theirs.name());
    if (!ours) continue;  // unusable for TimeZone, such as files that count leap seconds
    ++zones;
    for (sys_seconds time{}; time < end;) {
      const OffsetSpan span = ours->span_at(time);
      for (const sys_seconds probe : {time, std::min(span.end, end) - std::chrono::seconds{1}}) {
        ASSERT_EQ(span.offset, theirs.get_info(probe).offset)
            << theirs.name() << " at " << probe.time_since_epoch().count();
      }
      // Between the probes, the date library may change the name, but not the offset.
      for (auto info = theirs.get_info(time); info.end < std::min(span.end, end);) {
        info = theirs.get_info(info.end);
        ASSERT_EQ(info.offset, span.offset) << theirs.name();
      }
      time = span.end;
    }
  }
  EXPECT_GT(zones, 300U);
}

}  // namespace
}  // namespace detent
