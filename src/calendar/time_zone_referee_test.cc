// TimeZone against Howard Hinnant's date library, which reads the same files by other code. Its
// Debian 12 version leaves out the rule at a file's end, so it is asked about 1970 to 2036 only.
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
    if (!ours) continue;  // files that are no zones to us, as those that count leap seconds
    ++zones;
    for (sys_seconds time{}; time < end;) {
      const OffsetSpan span = ours->span_at(time);
      for (const sys_seconds probe : {time, std::min(span.end, end) - std::chrono::seconds{1}}) {
        ASSERT_EQ(span.offset, theirs.get_info(probe).offset)
            << theirs.name() << " at " << probe.time_since_epoch().count();
      }
      // Between the probes theirs may change names, never the offset.
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
