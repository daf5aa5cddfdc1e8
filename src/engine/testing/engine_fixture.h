// An engine on a manual clock and a memory store whose disk outlives it. For the engine's tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "engine/engine.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_store.h"

namespace detent {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class EngineFixture : public ::testing::Test {
 protected:
  EngineFixture() { open(); }

  /// Opens an engine on the data of the disk.
  void open() {
    memory_store_ = MemoryStore::open(*disk_).value();
    store_ = std::make_unique<FaultStore>(*memory_store_);
    engine_ = Engine::open(*store_, clock_, options_).value();
  }
  /// Destroys the engine without close(), as a crash does.
  void crash() {
    engine_.reset();
    store_.reset();
    memory_store_.reset();
  }
  void crash_and_open() {
    crash();
    open();
  }
  /// Another disk, empty.
  void open_on_a_new_disk() {
    crash();
    disk_ = std::make_unique<MemoryDisk>();
    open();
  }

  /// Makes turns until the engine has no more work now.
  void settle() {
    do {
      ASSERT_TRUE(engine_->turn());
    } while (engine_->next_wakeup() && *engine_->next_wakeup() <= clock_.now());
  }
  void advance(std::chrono::milliseconds by) {
    clock_.advance(by);
    settle();
  }
  WallTime wall_now() const {
    return std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
  }

  static ScheduleRequest request(const std::string& queue, Due due) {
    return {.queue = queue, .payload = {.data = "{\"n\":1}"}, .rules = {}, .due = due};
  }
  /// Schedules and commits.
  TaskId schedule(const std::string& queue, Due due) { return schedule(request(queue, due)); }
  TaskId schedule(const ScheduleRequest& request) {
    const TaskId id = engine_->schedule(request).value().task.id;
    settle();
    return id;
  }
  std::vector<LeasedTask> lease(const std::string& queue, std::size_t max = 1) {
    std::vector<LeasedTask> tasks =
        engine_->lease({.queue = queue, .max = max, .visibility_timeout = {}, .worker = {}})
            .value();
    settle();
    return tasks;
  }
  std::vector<TaskId> lease_ids(const std::string& queue, std::size_t max) {
    std::vector<TaskId> ids;
    for (const LeasedTask& task : lease(queue, max)) ids.push_back(task.task.id);
    return ids;
  }
  LeaseOutcome complete(LeaseToken lease) {
    const LeaseOutcome outcome = engine_->complete(lease).value();
    settle();
    return outcome;
  }
  LeaseOutcome fail(LeaseToken lease, std::optional<std::chrono::milliseconds> delay = {}) {
    const LeaseOutcome outcome =
        engine_->fail({.lease = lease, .delay = delay, .error = "it broke"}).value();
    settle();
    return outcome;
  }
  std::optional<TaskState> state_of(TaskId id) {
    const Result<TaskSnapshot> view = engine_->get(id);
    if (!view) return std::nullopt;
    return view->state;
  }

  /// Sets all settings of a queue.
  void set(const std::string& queue, const QueueSettings& settings) {
    ASSERT_TRUE(engine_->set_queue(queue, settings));
    settle();
    engine_->check_invariants();
  }
  QueueView view(const std::string& queue) { return engine_->queue(queue).value(); }
  /// Due now.
  void schedule_many(const std::string& queue, int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(engine_->schedule(request(queue, 0ms)));
    settle();
  }
  std::size_t lease_count(const std::string& queue, std::size_t max) {
    return lease(queue, max).size();
  }
  /// A worker that waits for one task; its task is put into `got` when it comes.
  void wait_for_one(const std::string& queue, std::vector<LeasedTask>& got) {
    engine_->lease_or_wait({.queue = queue}, 1min, [&got](Result<std::vector<LeasedTask>> tasks) {
      for (LeasedTask& task : tasks.value()) got.push_back(std::move(task));
    });
  }
  std::size_t purge_all(const std::string& queue) {
    std::size_t count = 0;
    for (std::optional<QueueCursor> from = QueueCursor{}; from;) {
      const QueueStep step = engine_->purge(queue, 100, *from).value();
      count += step.count;
      from = step.next;
    }
    settle();
    return count;
  }
  /// Moves the clock to the next wake-up of the engine, and makes turns until its work is done.
  void advance_to_wakeup() {
    ASSERT_TRUE(engine_->next_wakeup());
    clock_.advance(*engine_->next_wakeup() - clock_.now());
    settle();
  }

  ManualClock clock_;
  std::unique_ptr<MemoryDisk> disk_ = std::make_unique<MemoryDisk>();
  EngineOptions options_;
  std::unique_ptr<Store> memory_store_;
  std::unique_ptr<FaultStore> store_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace detent
