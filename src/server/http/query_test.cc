#include "server/http/query.h"

#include <gtest/gtest.h>

namespace detent::server {
namespace {

using std::chrono::milliseconds;

TEST(Query, DurationsAndIdsAreReadAsElsewhere) {
  EXPECT_EQ(read_duration({"d", "2h"}, milliseconds{1}).value(), milliseconds{7'200'000});
  EXPECT_EQ(read_duration({"d", "PT1S"}, milliseconds{1}).value(), milliseconds{1'000});
  EXPECT_EQ(read_duration({"d"}, milliseconds{1}).value(), milliseconds{1});
  EXPECT_EQ(read_duration({"d", "1y"}, milliseconds{1}).error().field, "d");
  EXPECT_EQ(read_id({"id", "256"}).value(), TaskId{256});
  EXPECT_EQ(read_id({"id"}).value(), TaskId{});
  EXPECT_EQ(read_id({"id", "0"}).error().field, "id");
}

}  // namespace
}  // namespace detent::server
