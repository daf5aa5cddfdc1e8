#include "base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <utility>

#include "base/mutex.h"

namespace detent {
namespace {

/// Its thread runs until let_end(), and then records that it has ended.
struct Worker {
  Mutex mu;
  CondVar changed;
  bool may_end DETENT_GUARDED_BY(mu) = false;
  std::atomic<bool> has_ended = false;

  void work() {
    MutexLock lock(mu);
    while (!may_end) changed.wait(mu);
    has_ended = true;
  }
  void let_end() {
    MutexLock lock(mu);
    may_end = true;
    changed.notify_all();
  }
};

TEST(Thread, IsJoinedWhenItIsDestroyed) {
  Worker worker;
  {
    Thread thread([&] { worker.work(); });
    EXPECT_FALSE(worker.has_ended);
    worker.let_end();
  }
  EXPECT_TRUE(worker.has_ended);
}

TEST(Thread, IsJoinedWhenAnotherTakesItsPlace) {
  Worker worker;
  Thread thread([&] { worker.work(); });
  worker.let_end();
  thread = Thread();
  EXPECT_TRUE(worker.has_ended);
}

TEST(Thread, MovesToAnotherOwner) {
  Worker worker;
  Thread first([&] { worker.work(); });
  Thread second(std::move(first));
  EXPECT_FALSE(worker.has_ended);
  worker.let_end();
  second.join();
  EXPECT_TRUE(worker.has_ended);
}

TEST(Thread, JoinsNothingWhenItOwnsNone) {
  Thread thread;
  thread.join();
  thread = Thread([] {});
  thread.join();
  thread.join();
}

TEST(ThreadNumber, IsConstantInAThreadAndUniqueAmongThreads) {
  const std::size_t mine = thread_number();
  std::size_t others = mine;
  Thread([&] { others = thread_number(); }).join();
  EXPECT_NE(others, mine);
  EXPECT_EQ(thread_number(), mine);
}

}  // namespace
}  // namespace detent
