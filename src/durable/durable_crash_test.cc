// Tests with killed processes. Some show errors that other persistent wheels are known to make.
//
// The killed process is a child that calls _exit while the scheduler is open. Threads do not
// survive a plain fork, so the child runs this program again up to the same point ("threadsafe"
// death tests). An environment variable tells the child the folder of its parent.
#include <unistd.h>

#include <cstdlib>
#include <latch>
#include <string>
#include <vector>

#include "durable/test_durable.h"

namespace detent {
namespace {

using State = TaskInfo::State;
using Payloads = std::vector<std::string>;

/// The child uses the folder of its parent.
class DurableCrashDeathTest : public DurableFixture {
 public:
  DurableCrashDeathTest() {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    if (const char* const inherited = std::getenv("DETENT_TEST_DATA")) {
      path_ = inherited;
      folder_.reset();  // remove the child's own folder, because its death would leave it behind
      return;
    }
    ::setenv("DETENT_TEST_DATA", path_.c_str(), 1);
  }
  ~DurableCrashDeathTest() override { ::unsetenv("DETENT_TEST_DATA"); }

 protected:
  [[noreturn]] void schedule_and_die(const TaskRequest& request, std::chrono::milliseconds delay) {
    open();
    ::_exit(scheduler().schedule(request, delay) ? 0 : 1);
  }
};

// Other wheels keep a task that is due soon only in memory, so it is lost with the process.
// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST_F(DurableCrashDeathTest, PW_NEAR_VOLATILE_ATaskThatIsDueSoonSurvives) {
  EXPECT_EXIT(schedule_and_die({.name = "mail", .payload = "near"}, 100ms),
              testing::ExitedWithCode(0), "");
  open();
  note("mail");
  advance(99ms);
  EXPECT_EQ(ran_, Payloads{});
  advance(1ms);
  EXPECT_EQ(ran_, Payloads{"near"});
}

// Other wheels delete the row before the task runs, so a crash between the two loses the task.
// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST_F(DurableCrashDeathTest, PW_DELETE_BEFORE_FIRE_ATaskWhoseHandlerWasKilledRunsAgain) {
  const auto die_in_the_handler = [this] {
    open();
    scheduler().on("mail", [](const TaskView&) -> Outcome { ::_exit(7); });
    schedule({.name = "mail", .payload = "a"});
    std::latch(1).wait();  // wait until the process is killed
  };
  EXPECT_EXIT(die_in_the_handler(), testing::ExitedWithCode(7), "");
  open();
  std::uint32_t attempt = 0;
  scheduler().on("mail", [&](const TaskView& task) {
    attempt = task.attempt();
    ran_.emplace_back(task.payload());
    return Outcome::done;
  });
  settle();
  EXPECT_EQ(ran_, Payloads{"a"});
  EXPECT_EQ(attempt, 1u);
}

// Other wheels store closures, which cannot be kept on disk, so they cannot run a task after a
// restart. Here the task has a name, and the next program registers a handler for this name. A
// program without the handler makes the task dead, with the reason.
// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST_F(DurableCrashDeathTest, PW_CLOSURE_PAYLOAD_ANameWithoutAHandlerMakesATaskDead) {
  EXPECT_EXIT(schedule_and_die({.name = "old", .key = "k", .payload = "bytes"}, 1h),
              testing::ExitedWithCode(0), "");
  open();
  scheduler().start();
  advance(1h);
  const TaskInfo dead = scheduler().find("old", "k").value();
  EXPECT_EQ(dead.state, State::dead);
  EXPECT_EQ(dead.error, "there is no handler for 'old'");
  EXPECT_EQ(dead.payload, "bytes");
  note("old");
  ASSERT_TRUE(scheduler().move("old", "k", 0s));
  settle();
  EXPECT_EQ(ran_, Payloads{"bytes"});
}

TEST_F(DurableCrashDeathTest, AKeyAndACancelSurvive) {
  const auto cancel_one_of_two_and_die = [this] {
    open();
    schedule({.name = "mail", .key = "kept", .payload = "a"}, 1h);
    schedule({.name = "mail", .key = "cancelled", .payload = "b"}, 1h);
    ::_exit(scheduler().cancel("mail", "cancelled") ? 0 : 1);
  };
  EXPECT_EXIT(cancel_one_of_two_and_die(), testing::ExitedWithCode(0), "");
  open();
  EXPECT_TRUE(
      scheduler().schedule({.name = "mail", .key = "kept", .payload = "a"}, 1h).value().was_there);
  note("mail");
  advance(1h);
  EXPECT_EQ(ran_, Payloads{"a"});
}

}  // namespace
}  // namespace detent
