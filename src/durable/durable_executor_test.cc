// The executor of handlers, the limits on running handlers, and a stop while they run.
#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "durable/test_durable.h"

namespace detent {
namespace {

using Code = DurableError::Code;
using State = TaskInfo::State;
using Payloads = std::vector<std::string>;

class DurableExecutorTest : public DurableFixture {
 public:
  DurableExecutorTest() {
    executor_ = &manual_;
    open();
  }
  ~DurableExecutorTest() override { scheduler_.reset(); }  // must be destroyed before its executor

 protected:
  Code code_of_find(std::uint64_t id) { return scheduler().find(id).error().code; }

  ManualExecutor manual_;
};

TEST_F(DurableExecutorTest, HandlersRunOnTheExecutorGiven) {
  note("mail");
  schedule({.name = "mail", .payload = "a"});
  settle();
  EXPECT_EQ(ran_, Payloads{});
  EXPECT_EQ(manual_.run(), 1u);
  EXPECT_EQ(ran_, Payloads{"a"});
}

TEST_F(DurableExecutorTest, AHandlerRunsOnceAlsoWhenTheExecutorThrows) {
  class ThrowingExecutor final : public Executor {
   public:
    void execute(Job job) override {
      kept.push_back(std::move(job));
      throw std::runtime_error("no room");
    }
    std::vector<Job> kept;
  };
  scheduler_.reset();
  ThrowingExecutor throwing;
  executor_ = &throwing;
  open();
  note("mail");
  schedule({.name = "mail", .payload = "a"});
  settle();
  EXPECT_EQ(ran_, Payloads{"a"});
  for (Job& job : throwing.kept) job();
  EXPECT_EQ(ran_, Payloads{"a"});
  scheduler_.reset();
}

TEST_F(DurableExecutorTest, NoMoreTasksAreHandedToAHandlerThanItsConcurrency) {
  scheduler().on("mail", [](const TaskView&) { return Outcome::done; }, {.concurrency = 2});
  for (int i = 0; i < 5; ++i) schedule({.name = "mail"});
  std::vector<std::size_t> batches;
  do {
    settle();
    batches.push_back(manual_.run());
  } while (batches.back() > 0);
  EXPECT_EQ(batches, (std::vector<std::size_t>{2, 2, 1, 0}));
}

TEST_F(DurableExecutorTest, WithoutAConcurrencyTasksRunOneAtATime) {
  note("mail");
  for (int i = 0; i < 3; ++i) schedule({.name = "mail"});
  settle();
  EXPECT_EQ(manual_.run(), 1u);
}

TEST_F(DurableExecutorTest, ATaskIsNotHandedOutAgainWhileItsHandlerRunsForWeeks) {
  scheduler().on("mail", [](const TaskView&) { return Outcome::done; }, {.concurrency = 2});
  const std::uint64_t id = schedule({.name = "mail"});
  settle();
  std::vector<Job> jobs = manual_.take();
  for (int day = 1; day < 30; ++day) advance(24h);
  EXPECT_EQ(manual_.take().size(), 0u);
  jobs.at(0)();
  settle();
  EXPECT_EQ(code_of_find(id), Code::not_found);
}

TEST_F(DurableExecutorTest, ATaskInTheHandsOfItsHandlerCannotBeCancelledOrMoved) {
  note("mail");
  const std::uint64_t id = schedule({.name = "mail"});
  settle();
  EXPECT_EQ(scheduler().cancel(id).error().code, Code::conflict);
  EXPECT_EQ(scheduler().move(id, 1h).error().code, Code::conflict);
  EXPECT_EQ(manual_.run(), 1u);
  settle();
  EXPECT_EQ(code_of_find(id), Code::not_found);
}

// The running handler waits until the other task is given back, so it knows that the stop has
// begun. If the stop did not wait for the handler, the handler could not see this.
TEST_F(DurableExecutorTest, AStopWaitsForAHandlerThatRunsAndGivesBackTheOthers) {
  bool finished = false;
  std::uint64_t other = 0;
  std::latch running(1);
  const auto wait_for_the_stop = [&](const TaskView&) {
    running.count_down();
    while (scheduler().find(other).value().state != State::ready) std::this_thread::yield();
    finished = true;
    return Outcome::done;
  };
  scheduler().on("mail", wait_for_the_stop, {.concurrency = 2});
  const std::uint64_t first = schedule({.name = "mail"});
  settle();
  std::vector<Job> jobs = manual_.take();
  other = schedule({.name = "mail", .payload = "b"});
  settle();
  std::vector<Job> never_begun = manual_.take();
  ASSERT_EQ(jobs.size(), 1u);
  ASSERT_EQ(never_begun.size(), 1u);

  std::thread worker([&] { jobs[0](); });
  running.wait();
  scheduler().stop();
  EXPECT_TRUE(finished);
  worker.join();

  reopen();
  never_begun[0]();  // the scheduler is destroyed, so this must have no effect
  EXPECT_EQ(code_of_find(first), Code::not_found);
  EXPECT_EQ(scheduler().find(other).value().attempts, 0u);
  note("mail");
  settle();
  manual_.run();
  EXPECT_EQ(ran_, Payloads{"b"});
}

TEST_F(DurableExecutorTest, StopMayBeCalledByManyThreadsAndAgain) {
  note("mail");
  schedule({.name = "mail"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this] { scheduler().stop(); });
  for (std::thread& thread : threads) thread.join();
  scheduler().stop();
  EXPECT_EQ(scheduler().schedule({.name = "mail"}, 0s).error().code, Code::unavailable);
  EXPECT_EQ(scheduler().cancel(1).error().code, Code::unavailable);
  note("mail");
  scheduler().start();
}

TEST_F(DurableExecutorTest, TenThousandTasksRunOnceEachOnThePool) {
  executor_ = nullptr;
  reopen();
  constexpr std::size_t kTasks = 10'000;
  std::vector<std::atomic<int>> runs(kTasks);  // written by the pool, read after the latch
  std::latch all(kTasks);
  for (const char* const name : {"a", "b", "c", "d"}) {
    const auto count = [&](const TaskView& task) {
      ++runs[std::stoul(std::string(task.payload()))];
      all.count_down();
      return Outcome::done;
    };
    scheduler().on(name, count, {.concurrency = 100});
  }
  for (std::size_t i = 0; i < kTasks; ++i) {
    scheduler().schedule_async(
        {.name = std::string(1, static_cast<char>('a' + i % 4)), .payload = std::to_string(i)}, 1h,
        [&](DurableResult<ScheduledTask> scheduled) { EXPECT_TRUE(scheduled); });
  }
  // This task is stored after all others.
  const std::uint64_t last = schedule({.name = "e"}, 2h);
  clock_.advance(1h);
  all.wait();
  scheduler().stop();
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
  reopen();
  for (std::uint64_t id = last - 256 * 100; id < last; id += 256) {
    EXPECT_EQ(code_of_find(id), Code::not_found);
  }
  EXPECT_TRUE(scheduler().find(last));
}

}  // namespace
}  // namespace detent
