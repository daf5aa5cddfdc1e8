// Both sides of FarTasks in memory, with faults and crashes for each call. Tests only.
//
// Before each call, a test chooses its fault. The call can fail before it has an effect, or after
// it. A call to the external scheduler can also fail and take effect later, just before the next
// call. The process can crash before or after the call. A crash keeps the state of both sides, and
// destroys the FarTasks object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "external/far_tasks.h"

namespace detent::test {

enum class Fault : std::uint8_t { none, before, after, later, crash_before, crash_after };
/// Thrown where the process would crash.
struct Crash {};

inline Error broken() { return {ErrorCode::unavailable, "planned fault", ""}; }

/// Runs `apply` with this fault. A call that must fail returns `error`.
template <class Apply>
auto call_with(Fault fault, Apply apply, Error error = broken()) -> decltype(apply()) {
  if (fault == Fault::crash_before) throw Crash{};
  if (fault == Fault::before || fault == Fault::later) return error;
  auto result = apply();
  if (fault == Fault::crash_after) throw Crash{};
  if (fault == Fault::after) return error;
  return result;
}

class FakeExternal final : public ExternalScheduler {
 public:
  struct Entry {
    Task task;
    std::optional<WallTime> claimed_until;
  };

  std::function<Fault()> next_fault = [] { return Fault::none; };
  Error error = broken();  // returned by calls that must fail
  /// Called during each call, so that other things can happen at the same time.
  std::function<void()> meanwhile = [] {};
  std::map<TaskId, Entry> entries;
  std::vector<Error> damaged_next;  // errors for the next take() to return
  std::optional<TaskId> not_kept;   // the id of a task that keeps() refuses
  bool keeps_none = false;
  std::uint64_t stamped = 0;

  bool keeps(const Task& task) const override { return !keeps_none && task.id != not_kept; }
  Result<void> put(std::span<const Task> tasks) override {
    const std::vector<Task> copies(tasks.begin(), tasks.end());
    return call<Result<void>>([this, copies] {
      for (const Task& task : copies) entries.insert_or_assign(task.id, Entry{task, {}});
      return ok();
    });
  }
  Result<CancelOutcome> cancel(TaskId id) override {
    return call<Result<CancelOutcome>>([this, id]() -> Result<CancelOutcome> {
      const auto found = entries.find(id);
      if (found == entries.end()) return CancelOutcome::not_there;
      if (found->second.claimed_until) return CancelOutcome::being_handed_back;
      entries.erase(found);
      return CancelOutcome::cancelled;
    });
  }
  Result<std::optional<Task>> find(TaskId id) override {
    return call<Result<std::optional<Task>>>([this, id]() -> Result<std::optional<Task>> {
      const auto found = entries.find(id);
      if (found == entries.end()) return std::optional<Task>{};
      return std::optional<Task>{found->second.task};
    });
  }
  Result<Taken> take(const TakeRequest& request) override {
    return call<Result<Taken>>([this, request]() -> Result<Taken> {
      std::vector<Entry*> due;
      for (auto& [id, entry] : entries) {
        const bool is_claimed = entry.claimed_until && *entry.claimed_until > request.now;
        if (!is_claimed && entry.task.due_at <= request.until) due.push_back(&entry);
      }
      std::ranges::stable_sort(due, {}, [](const Entry* entry) { return entry->task.due_at; });
      due.resize(std::min(due.size(), request.limit));
      Taken taken{.tasks = {}, .damaged = std::exchange(damaged_next, {})};
      for (Entry* entry : due) {
        entry->claimed_until = request.now + request.claim;
        taken.tasks.push_back(entry->task);
      }
      return taken;
    });
  }
  Result<void> forget(std::span<const TaskId> ids) override {
    const std::vector<TaskId> copies(ids.begin(), ids.end());
    return call<Result<void>>([this, copies] {
      for (const TaskId id : copies) entries.erase(id);
      return ok();
    });
  }
  Result<std::uint64_t> size() override { return std::uint64_t{entries.size()}; }
  Result<void> stamp(std::uint64_t before, std::uint64_t generation) override {
    return call<Result<void>>([this, before, generation]() -> Result<void> {
      if (stamped != before) return broken();
      stamped = generation;
      return ok();
    });
  }
  Result<std::uint64_t> generation() override {
    return call<Result<std::uint64_t>>([this]() -> Result<std::uint64_t> { return stamped; });
  }
  std::string stamp_command(std::uint64_t generation) const override {
    return "stamp " + std::to_string(generation);
  }

 private:
  template <class Answer>
  Answer call(const std::function<Answer()>& apply) {
    if (late_) std::exchange(late_, nullptr)();
    meanwhile();
    const Fault fault = next_fault();
    if (fault == Fault::later) late_ = [apply] { (void)apply(); };
    return call_with(fault, apply, error);
  }

  std::function<void()> late_;
};

class FakeLocal final : public LocalTasks {
 public:
  std::function<Fault()> next_fault = [] { return Fault::none; };
  std::map<TaskId, Task> tasks;
  std::set<TaskId> marks;
  std::set<TaskId> forgotten;  // ids whose copies were forgotten, until they are handed over again
  ExternalStamp stamped;

  /// Continues after the last call, and starts from the beginning after fewer than `limit` tasks.
  Result<std::vector<Task>> far_tasks(WallTime after, std::size_t limit) override {
    return call_with(next_fault(), [&]() -> Result<std::vector<Task>> {
      std::vector<Task> far;
      for (auto at = tasks.upper_bound(looked_to_); at != tasks.end(); ++at) {
        if (at->second.due_at > after && far.size() < limit) far.push_back(at->second);
      }
      looked_to_ = far.size() < limit ? TaskId{} : far.back().id;
      return far;
    });
  }
  Result<void> mark(std::span<const Task> which) override {
    return call_with(next_fault(), [&] {
      for (const Task& task : which) marks.insert(task.id);
      return ok();
    });
  }
  Result<std::size_t> hand_over(std::span<const Task> which, const ExternalStamp& stamp) override {
    return call_with(next_fault(), [&]() -> Result<std::size_t> {
      std::size_t count = 0;
      stamped = stamp;
      for (const Task& task : which) {
        const auto found = tasks.find(task.id);
        if (found == tasks.end() || found->second != task) continue;
        tasks.erase(found);
        marks.erase(task.id);
        forgotten.erase(task.id);
        ++count;
      }
      return count;
    });
  }
  Result<std::size_t> put_back(std::span<const Task> which) override {
    return call_with(next_fault(), [&]() -> Result<std::size_t> {
      std::size_t count = 0;
      for (const Task& task : which) {
        if (!marks.insert(task.id).second || forgotten.contains(task.id)) continue;
        count += tasks.try_emplace(task.id, task).second ? 1U : 0U;
      }
      return count;
    });
  }
  Result<std::vector<TaskId>> marked(std::size_t limit) override {
    return call_with(next_fault(), [&]() -> Result<std::vector<TaskId>> {
      std::vector<TaskId> ids(marks.begin(), marks.end());
      ids.resize(std::min(ids.size(), limit));
      return ids;
    });
  }
  Result<void> unmark(std::span<const TaskId> ids,
                      const std::optional<ExternalStamp>& stamp) override {
    return call_with(next_fault(), [&] {
      for (const TaskId id : ids) {
        marks.erase(id);
        forgotten.insert(id);
      }
      if (stamp) stamped = *stamp;
      return ok();
    });
  }
  Result<bool> is_here_or_marked(TaskId id) override {
    return call_with(next_fault(), [&]() -> Result<bool> {
      return tasks.contains(id) || marks.contains(id) || forgotten.contains(id);
    });
  }
  Result<ExternalStamp> stamp() override {
    return call_with(next_fault(), [&]() -> Result<ExternalStamp> { return stamped; });
  }

 private:
  TaskId looked_to_;
};

inline Task example_task(std::uint64_t id, WallTime due_at) {
  Task task;
  task.id = TaskId{id};
  task.queue = "q";
  task.payload.data = "{\"n\":" + std::to_string(id) + "}";
  task.due_at = due_at;
  task.created_at = WallTime{};
  return task;
}

}  // namespace detent::test
