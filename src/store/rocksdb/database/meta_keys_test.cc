#include "store/rocksdb/database/meta_keys.h"

#include <gtest/gtest.h>

#include "store/meta_format.h"
#include "store/schedule_format.h"

namespace detent {
namespace {

TEST(MetaKeys, SchedulesReadBackUnderTheirOwnNameBetweenTheirBounds) {
  const ScheduleRecord record{.schedule = {.name = "nightly/report", .queue = "q"}};
  const std::string key = schedule_key("nightly/report");
  EXPECT_EQ(key, "s/nightly/report");
  EXPECT_LT(key, kScheduleEnd);
  const std::string value = encode_schedule(record);
  EXPECT_EQ(parse_schedule(key, value).value(), record);
  EXPECT_EQ(parse_schedule(schedule_key("nightly"), value).error().code, ErrorCode::data_loss);
}

// The store reads all queues, or all schedules, as one range of keys.
TEST(MetaKeys, NoOtherKeyLiesAmongQueuesOrSchedules) {
  for (const std::string& key :
       {std::string(kFormatKey), std::string(kLastIdKey), std::string(kLastQueueNumberKey),
        std::string(kEpochKey), std::string(kLowWatermarkKey), std::string(kSettledToKey),
        std::string(kDueSumsKey), counts_key(0), queue_key("q"), schedule_key("s")}) {
    EXPECT_EQ(key > kQueuePrefix && key < kQueueEnd, key == queue_key("q")) << key;
    EXPECT_EQ(key > kSchedulePrefix && key < kScheduleEnd, key == schedule_key("s")) << key;
  }
}

TEST(MetaKeys, ChangesOfCountsSortByNumberBetweenTheirBounds) {
  EXPECT_LT(counts_key(255), counts_key(256));
  EXPECT_GT(counts_key(0), kCountsPrefix);
  EXPECT_LT(counts_key(~0ull), kCountsEnd);
}

}  // namespace
}  // namespace detent
