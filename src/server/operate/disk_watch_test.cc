#include "server/operate/disk_watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>

#include "base/log/log.h"
#include "base/testing/count_of.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class DiskWatchTest : public ::testing::Test {
 public:
  DiskWatchTest() { configure_log({.level = LogLevel::info, .out = &log_}); }
  ~DiskWatchTest() override {
    watch_.reset();
    configure_log({});
  }

 protected:
  void start(std::uint64_t min_free) {
    watch_.emplace(DiskWatchOptions{.folder = "/data",
                                    .min_free_bytes = min_free,
                                    .read = [this]() -> std::optional<std::uint64_t> {
                                      if (free_ == kNotRead) return std::nullopt;
                                      return free_;
                                    }},
                   intake_, clock_);
    clock_.await_waiters(1);
  }
  /// The disk has `free` bytes at the next look.
  void look(std::uint64_t free) {
    free_ = free;
    clock_.advance(1s);
    clock_.await_waiters(1);
  }
  int count(const std::string& words) const { return count_of(words, log_.str()); }

  static constexpr std::uint64_t kNotRead = ~std::uint64_t{0};
  std::ostringstream log_;
  ManualClock clock_;
  TaskIntake intake_;
  std::atomic<std::uint64_t> free_ = 1000 * kMiB;
  std::optional<DiskWatch> watch_;
};

TEST_F(DiskWatchTest, RefusesTasksBelowTheLimitAndAcceptsThemWithAQuarterMore) {
  start(100 * kMiB);
  look(100 * kMiB);
  EXPECT_TRUE(intake_.is_open());
  look(100 * kMiB - 1);
  ASSERT_FALSE(intake_.is_open());
  const Error refused = intake_.check().error();
  EXPECT_EQ(refused.code, ErrorCode::unavailable);
  EXPECT_NE(refused.message.find("99 MiB are free, and --min-free-disk is 100 MiB"),
            std::string::npos)
      << refused.message;
  look(125 * kMiB - 1);
  EXPECT_FALSE(intake_.is_open());
  look(125 * kMiB);
  EXPECT_TRUE(intake_.is_open());
  EXPECT_TRUE(intake_.check());
}

TEST_F(DiskWatchTest, LooksBeforeTheFirstTask) {
  free_ = 0;
  start(1);
  EXPECT_FALSE(intake_.is_open());
}

TEST_F(DiskWatchTest, WithoutALimitTasksAreNeverRefused) {
  free_ = 0;
  start(0);
  EXPECT_TRUE(intake_.is_open());
  EXPECT_EQ(watch_->figures()->free_bytes, 0u);
}

TEST_F(DiskWatchTest, IsLoggedAtOnceAndThenOncePerMinuteWithTheTimeSince) {
  start(100 * kMiB);
  look(50 * kMiB);
  const std::string line = "error the disk is nearly full; new tasks are refused folder=/data";
  EXPECT_EQ(count(line), 1) << log_.str();
  EXPECT_EQ(count("free=\"50 MiB\" min_free_disk=\"100 MiB\" action="), 1) << log_.str();
  for (int i = 0; i < 59; ++i) look(49 * kMiB);
  EXPECT_EQ(count(line), 1) << log_.str();
  look(49 * kMiB);
  EXPECT_EQ(count(line), 2) << log_.str();
  EXPECT_EQ(count("since=1m"), 1) << log_.str();
  look(200 * kMiB);
  EXPECT_EQ(count("info the disk has enough free space; new tasks are accepted again"), 1)
      << log_.str();
  look(200 * kMiB);
  EXPECT_EQ(count("accepted again"), 1);
  look(0);
  EXPECT_EQ(count(line), 3) << "a new shortage is logged at once";
}

TEST_F(DiskWatchTest, KeepsItsStateWhileTheFreeSpaceIsUnknown) {
  start(100 * kMiB);
  look(0);
  look(kNotRead);
  EXPECT_FALSE(intake_.is_open());
  EXPECT_FALSE(watch_->figures());
  look(1000 * kMiB);
  EXPECT_TRUE(intake_.is_open());
  ASSERT_TRUE(watch_->figures());
  EXPECT_EQ(watch_->figures()->free_bytes, 1000 * kMiB);
  EXPECT_EQ(watch_->figures()->min_free_bytes, 100 * kMiB);
}

}  // namespace
}  // namespace detent::server
