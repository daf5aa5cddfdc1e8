// What the clients of a simulated cluster were told, held against the delivery contract as it
// happens: no task early, none after its end, none to two at a time unless a fault ended the lease.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "store/lease_table.h"
#include "task/request.h"
#include "tests/simulation/cluster_simulation.h"

namespace detent {

/// How long a hand-out lasts.
inline constexpr std::chrono::milliseconds kSimulatedVisibility{8'000};
/// Of a node's clock, either way; two of them come apart by less than this part of the time.
inline constexpr double kMostDrift = 500e-6;
inline constexpr int kDriftPart = 900;

/// Holds the answers that go out against the delivery contract.
class DeliveryContract {
 public:
  DeliveryContract(SimulationReport& report, std::chrono::milliseconds skew)
      : report_(report), skew_(skew) {}

  struct Task {
    TaskId id;
    std::string queue;
    MonotonicTime asked_at;  // true time
    std::chrono::milliseconds delay{0};
    bool is_accepted = false;
    bool is_over = false;      // completed or cancelled, and that was answered
    bool may_be_over = false;  // asked for, and the answer did not go out
    struct OpenLease {
      LeaseToken token;
      ShardLease kept_by;   // the engine that has it
      MonotonicTime until;  // true time
      WallTime due_at{};
      bool is_written = false;  // that engine has written it out, and gone
      bool is_void = false;     // a fault has ended it
    };
    std::optional<OpenLease> lease = {};
  };

  std::uint64_t ask(std::string queue, std::chrono::milliseconds delay, MonotonicTime now) {
    tasks_.push_back({.id = {}, .queue = std::move(queue), .asked_at = now, .delay = delay});
    return tasks_.size() - 1;
  }
  Task& task(std::uint64_t number) { return tasks_.at(number); }
  const std::vector<Task>& tasks() const noexcept { return tasks_; }

  void accepted(std::uint64_t number, TaskId id) {
    Task& task = tasks_.at(number);
    if (task.is_accepted && task.id != id) violate(number, "accepted twice, under two ids");
    if (!task.is_accepted) ++report_.scheduled;
    task.is_accepted = true;
    task.id = id;
  }

  void handed_out(const LeasedTask& leased, const ShardLease& by, WallTime node_wall,
                  MonotonicTime now) {
    ++report_.handed_out;
    const std::uint64_t number = std::stoull(leased.task.payload.data);
    Task& task = tasks_.at(number);
    if (task.is_over) violate(number, "handed out after its end");
    // Two nodes' clocks, set apart and drifting apart.
    const auto drift = (now - MonotonicTime{}) / kDriftPart;
    const auto slack = 2 * skew_ + std::chrono::ceil<std::chrono::milliseconds>(drift) +
                       std::chrono::milliseconds{2};
    // What was ready on disk by another's clock stays ready.
    if (node_wall < leased.task.due_at - slack) violate(number, "early by the node's clock");
    if (now - task.asked_at < task.delay - slack) violate(number, "handed out early");
    if (task.lease && task.lease->until > now) {
      if (!task.lease->is_void) violate(number, "handed out while its lease is open");
      ++report_.duplicates;
    }
    // Measured by the node's clock, which may be fast.
    task.lease = {.token = leased.lease,
                  .kept_by = by,
                  .until = now + kSimulatedVisibility - kSimulatedVisibility / 500,
                  .due_at = leased.task.due_at};
  }

  /// The engine that had these leases has gone; `is_kept`: it wrote them out.
  void engine_gone(const ShardLease& engine, bool is_kept) {
    for (Task& task : tasks_) {
      if (!task.lease || task.lease->kept_by != engine) continue;
      (is_kept ? task.lease->is_written : task.lease->is_void) = true;
    }
  }
  /// It takes up what the last engine before it has written out, whatever was tried in between,
  /// where the task is due by its own clock; other leases are void.
  void engine_opened(const ShardLease& engine, WallTime node_wall) {
    for (Task& task : tasks_) {
      if (!task.lease || task.lease->kept_by.shard != engine.shard) continue;
      if (task.lease->is_written && task.lease->due_at <= node_wall) {
        task.lease->kept_by = engine;
        task.lease->until -= 2 * skew_;  // it was written out as a date
        task.lease->is_written = false;
      } else {
        task.lease->is_void = true;
      }
    }
  }

  void violate(std::uint64_t number, const std::string& what) {
    report_.violations.push_back("task " + std::to_string(number) + ": " + what);
  }

 private:
  SimulationReport& report_;
  const std::chrono::milliseconds skew_;  // of a node's clock at the start, at most
  std::vector<Task> tasks_;
};

}  // namespace detent
