#include "server/offload.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

TEST(Offload, TasksComeBackHalfOfTheTimeBeforeTheyAreDue) {
  const FarTasksOptions far = far_tasks_options({.url = "", .after = 24h, .window = 10min}).value();
  EXPECT_EQ(far.far, 24h);
  EXPECT_EQ(far.near, 12h);
  const FarTasksOptions short_time =
      far_tasks_options({.url = "", .after = 4s, .window = 2s}).value();
  EXPECT_EQ(short_time.near, 2s);
  EXPECT_EQ(short_time.claim, 1s) << "before it is due";
  EXPECT_EQ(short_time.interval, 1s);
}

TEST(Offload, AWindowThatReachesWhatIsAwayIsRefused) {
  const auto far = far_tasks_options({.url = "", .after = 20min - 1ms, .window = 10min});
  EXPECT_NE(far.error().message.find("--external-after"), std::string::npos);
  EXPECT_FALSE(far_tasks_options({.url = "", .after = 999ms, .window = 1ms}));
  EXPECT_FALSE(far_tasks_options({.url = "", .after = 24h * 36'500 * 3, .window = 1ms}));
}

TEST(Offload, WithoutAUrlThereIsNoneAndAWrongOneIsSaid) {
  SystemClock clock;
  MemoryDisk disk;
  const std::unique_ptr<Store> store = MemoryStore::open(disk).value();
  EngineThread engine(
      OpenEngine{.store = nullptr, .engine = Engine::open(*store, clock, {}).value()}, clock);
  EXPECT_EQ(start_offload({}, engine, clock).value(), nullptr);
  for (const char* url :
       {"https://127.0.0.1:6379", "redis://nowhere", "http://", "http://h:1?queue=-"}) {
    EXPECT_EQ(start_offload({.url = url}, engine, clock).error().code, ErrorCode::invalid_argument)
        << url;
  }
}

}  // namespace
}  // namespace detent::server
