// Shared parts of the tests in this folder: a scheduler with its folder on a manual clock, and an
// executor whose jobs run when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "detent/clock.h"
#include "detent/durable_scheduler.h"
#include "detent/executor.h"

namespace detent {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Keeps jobs until the test calls run(). Thread-safe.
class ManualExecutor final : public Executor {
 public:
  void execute(Job job) override {
    const MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  std::vector<Job> take() {
    const MutexLock lock(mutex_);
    return std::exchange(jobs_, {});
  }
  /// Runs the present jobs on this thread; returns their number.
  std::size_t run() {
    std::vector<Job> jobs = take();
    for (Job& job : jobs) job();
    return jobs.size();
  }

 private:
  Mutex mutex_;
  std::vector<Job> jobs_ DETENT_GUARDED_BY(mutex_);
};

/// By default, handlers run one by one on the hand-over thread. So all work is finished when this
/// thread and the engine's thread sleep.
class DurableFixture : public ::testing::Test {
 protected:
  static constexpr int kThreads = 2;

  DurableOptions options() {
    return {
        .path = path_, .executor = executor_, .clock = &clock_, .key_retention = key_retention_};
  }
  void open() { scheduler_.emplace(DurableScheduler::open(options()).value()); }
  void reopen() {
    scheduler_.reset();
    open();
  }
  DurableScheduler& scheduler() { return *scheduler_; }

  void settle() { clock_.await_waiters(kThreads); }
  void advance(std::chrono::nanoseconds by) {
    clock_.advance(by);
    settle();
  }
  std::uint64_t schedule(TaskRequest request, std::chrono::milliseconds delay = 0ms) {
    return scheduler_->schedule(std::move(request), delay).value().id;
  }
  /// Adds a handler that appends the payload of each task of this name to `ran_`.
  void note(const std::string& name) {
    scheduler_->on(name, [this](const TaskView& task) {
      ran_.emplace_back(task.payload());
      return Outcome::done;
    });
  }

  std::optional<TestFolder> folder_{std::in_place};
  std::string path_ = *folder_ / "data";
  ManualClock clock_;
  InlineExecutor inline_executor_;
  Executor* executor_ = &inline_executor_;
  std::chrono::milliseconds key_retention_{0};
  std::vector<std::string> ran_;  // written by handlers, read while all threads sleep
  std::optional<DurableScheduler> scheduler_;
};

}  // namespace detent
