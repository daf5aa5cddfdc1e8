// Bugs in applications of timers, and the correct results of Detent. cases.md lists all cases.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

#include "detent/calendar_interval.h"
#include "detent/clock.h"
#include "detent/delay_queue.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;
using namespace std::chrono;

/// The published design: adds 1 to the month. Days beyond the end of the month run into the
/// following month, as in C's mktime and Go's AddDate.
year_month_day month_added_as_published(year_month_day date) {
  const year_month_day later = date + months{1};
  return sys_days(later.year() / later.month() / 1) + days{unsigned(later.day()) - 1};
}

TEST(Applications, EX_MONTH_ADD) {
  const year_month_day jan31 = 2026y / January / 31;
  year_month_day date = jan31;
  std::vector<year_month_day> published;
  for (int i = 0; i < 3; ++i) published.push_back(date = month_added_as_published(date));
  EXPECT_EQ(published,
            (std::vector<year_month_day>{2026y / March / 3, 2026y / April / 3, 2026y / May / 3}))
      << "no report in February, and never again on a last day";

  const auto days_of = [&](MonthEnd month_end) {
    const auto monthly =
        CalendarInterval::make({.anchor = sys_days(jan31), .month_end = month_end}).value();
    std::vector<year_month_day> found;
    for (const WallTime at : monthly.next(3, sys_days(jan31))) found.emplace_back(floor<days>(at));
    return found;
  };
  EXPECT_EQ(
      days_of(MonthEnd::clamp),
      (std::vector<year_month_day>{2026y / February / 28, 2026y / March / 31, 2026y / April / 30}));
  EXPECT_EQ(days_of(MonthEnd::skip),
            (std::vector<year_month_day>{2026y / March / 31, 2026y / May / 31, 2026y / July / 31}));
}

/// The published design: a channel without room. Its senders wait until a reader comes, as the
/// goroutines of timer callbacks do.
class PublishedChannel {
 public:
  void send(int value) { blocked_senders_.push_back(value); }
  std::size_t blocked() const { return blocked_senders_.size(); }

 private:
  std::deque<int> blocked_senders_;
};

TEST(Applications, EX_CALLBACK_BLOCK) {
  PublishedChannel channel;
  for (int i = 0; i < 1'000; ++i) channel.send(i);  // the reader has gone
  EXPECT_EQ(channel.blocked(), 1'000u) << "each of them blocks its goroutine forever";

  SchedulerRig rig;
  ManualClock clock;
  DelayQueue<int> results({.capacity = 10, .clock = &clock});  // no thread reads it
  std::size_t refused = 0;
  for (int i = 0; i < 1'000; ++i) {
    rig.scheduler()
        .schedule_after(1s, [&, i] { refused += results.try_push(i, 0s) == PushResult::full; })
        .release();
  }
  rig.advance(1s);
  EXPECT_EQ(refused, 990u) << "each callback learns that there is no room";
  EXPECT_EQ(results.size(), 10u) << "the queue has a limit";
  EXPECT_EQ(rig.scheduler().stats().running, 0u);
  EXPECT_EQ(rig.scheduler().stats().pending, 0u);

  rig.scheduler().schedule_after(1s, [&] { results.push(1'000, 0s); }).release();  // waits for room
  rig.clock().advance(1s);
  clock.await_waiters(1);
  results.close();
  rig.scheduler().stop();  // returns, because close() ends the waiting push
  EXPECT_EQ(results.size(), 10u);
}

}  // namespace
}  // namespace detent::classic
