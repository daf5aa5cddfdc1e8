// Compares every answer to the clients of a simulated cluster with the delivery contract. No task
// may be handed out early or after its end. While a lease is open, its task may be handed out again
// only if a fault has ended the lease.
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

/// How long a lease lasts.
inline constexpr std::chrono::milliseconds kSimulatedVisibility{8'000};
/// kMostDrift: the largest drift of a node's clock, in both directions. kDriftPart: two clocks
/// drift apart by less than 1/900 of the elapsed time.
inline constexpr double kMostDrift = 500e-6;
inline constexpr int kDriftPart = 900;

/// Checks the answers of the cluster against the delivery contract.
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
    bool is_over = false;      // completed or cancelled, with an answer to the client
    bool may_be_over = false;  // a request to end it got no answer
    struct OpenLease {
      LeaseToken token;
      ShardLease kept_by;   // the engine that holds the lease
      MonotonicTime until;  // true time
      WallTime due_at{};
      bool is_written = false;  // that engine has written it to the store and has closed
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
    // The clocks of two nodes differ by their skew and by their drift.
    const auto drift = (now - MonotonicTime{}) / kDriftPart;
    const auto slack = 2 * skew_ + std::chrono::ceil<std::chrono::milliseconds>(drift) +
                       std::chrono::milliseconds{2};
    // A task that another node has stored as ready stays ready, although this node's clock is
    // behind.
    if (node_wall < leased.task.due_at - slack) violate(number, "early by the node's clock");
    if (now - task.asked_at < task.delay - slack) violate(number, "handed out early");
    if (task.lease && task.lease->until > now) {
      if (!task.lease->is_void) violate(number, "handed out while its lease is open");
      ++report_.duplicates;
    }
    // The node measures the lease with its own clock, which may be fast.
    task.lease = {.token = leased.lease,
                  .kept_by = by,
                  .until = now + kSimulatedVisibility - kSimulatedVisibility / 500,
                  .due_at = leased.task.due_at};
  }

  /// The engine that held these leases has ended. `is_kept`: it wrote the leases to the store
  /// first.
  void engine_gone(const ShardLease& engine, bool is_kept) {
    for (Task& task : tasks_) {
      if (!task.lease || task.lease->kept_by != engine) continue;
      (is_kept ? task.lease->is_written : task.lease->is_void) = true;
    }
  }
  /// A new engine takes up the leases that an earlier engine wrote to the store, even if other
  /// engines failed to open in between. It takes up only leases of tasks that are due by its own
  /// clock. All other leases become void.
  void engine_opened(const ShardLease& engine, WallTime node_wall) {
    for (Task& task : tasks_) {
      if (!task.lease || task.lease->kept_by.shard != engine.shard) continue;
      if (task.lease->is_written && task.lease->due_at <= node_wall) {
        task.lease->kept_by = engine;
        task.lease->until -= 2 * skew_;  // stored as a date, so the skew counts twice
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
  const std::chrono::milliseconds skew_;  // largest skew of a node's clock at the start
  std::vector<Task> tasks_;
};

}  // namespace detent
