// Killed processes, and the known wrong answers of other persistent wheels that they lead to.
//
// A killed process is a child that ends in _exit with the scheduler open. The child runs this
// program again up to the same point ("threadsafe" death tests), because threads do not survive a
// plain fork; the environment tells it the folder of its parent.
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

/// The folder is the parent's in a child.
class DurableCrashDeathTest : public DurableFixture {
 public:
  DurableCrashDeathTest() {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    if (const char* const inherited = std::getenv("DETENT_TEST_DATA")) {
      path_ = inherited;
      folder_.reset();  // its own, which nothing would remove when it dies
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

// There: what is due soon is put into the wheel only, and is gone with the process.
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

// There: the row is deleted before the task runs, and a crash between the two loses it.
// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST_F(DurableCrashDeathTest, PW_DELETE_BEFORE_FIRE_ATaskWhoseHandlerWasKilledRunsAgain) {
  const auto die_in_the_handler = [this] {
    open();
    scheduler().on("mail", [](const TaskView&) -> Outcome { ::_exit(7); });
    schedule({.name = "mail", .payload = "a"});
    std::latch(1).wait();  // for ever
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

// There: a task holds a closure, which cannot be stored, so after a restart there is nothing to
// run. Here a name is stored; the next program says what it stands for, and one that does not know
// it keeps the task, as dead, with the reason.
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
