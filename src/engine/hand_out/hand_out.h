// Hand-outs: which worker gets which ready task, and when.
//
// A worker asks for tasks of one queue, or for the most urgent tasks of several queues. It gets the
// tasks immediately, or it waits. A waiting worker is served before a new request. The
// **deliverer** of webhooks asks for the tasks with a webhook, of all queues. There is one
// deliverer. hand_out_turns.h decides which queue is next. LoadedTasks::allowance() decides whether
// a limit holds its tasks back. Within a queue, pick() takes the tasks in ReadyOrder
// (loaded_task.h). Each step hands out a bounded number of tasks.
//
// A hand-out stages no record, because leases exist only in memory. The answer to a request still
// waits for the next commit, because its tasks may have changed after the previous commit. A
// waiting worker can be served without a commit: serve_now() hands out tasks whose stored records
// are current. No staged or in-flight write may touch these tasks (hand_out_now.cc).
//
// After a start, no task is handed out until the overdue tasks are in the order of their queues, or
// until the time for this is over (LoadWindow::holds_hand_outs()). In this time, a request gets an
// empty answer, and waiting workers continue to wait.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "detent/check.h"
#include "detent/tick.h"
#include "engine/hand_out/waiting_workers.h"
#include "engine/queues/hand_out_turns.h"
#include "engine/queues/lateness_account.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/commit_writer.h"
#include "engine/records/task_news.h"
#include "engine/values/answers.h"
#include "engine/values/engine_time.h"
#include "engine/values/engine_values.h"
#include "engine/window/load_window.h"
#include "engine/window/loaded_tasks.h"
#include "task/request.h"

namespace detent {

class HandOut {
 public:
  /// The parts that it uses. All must outlive it.
  struct Parts {
    const EngineTime& time;
    const CommitWriter& writer;
    QueueRegistry& queues;
    HandOutTurns& turns;
    TaskNews& news;
    LatenessAccount& lateness;
    TaskRecords& records;
    LoadedTasks& tasks;
    LoadWindow& window;
    Answers& answers;
  };
  /// `shard` becomes a part of each lease number.
  HandOut(Parts parts, std::uint64_t shard);
  ~HandOut();
  HandOut(const HandOut&) = delete;
  HandOut& operator=(const HandOut&) = delete;

  /// From now on, leases have this epoch, and new waits get ids that no earlier epoch has used.
  void begin(std::uint64_t epoch) noexcept;
  /// A lease of an earlier epoch was taken over: its number must not be used again.
  void note_number(std::uint64_t number) noexcept;
  /// A commit is over, and the answers that waited for it were sent. So all holders know their
  /// leases.
  void note_told() noexcept {
    DETENT_CHECK(told_to_ <= last_lease_);
    told_to_ = last_lease_;
  }
  /// Whether the holder of a lease has got the answer.
  bool is_told(std::uint64_t number, const Lease& lease) const noexcept {
    return lease.is_told || number <= told_to_;
  }

  // The verbs of verbs/hand_out_verbs.h with these names.

  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  Result<std::optional<ReadyHead>> next_ready(const LeaseRequest& request);
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  void abandon_wait(WaitId id);
  void end_waits();
  Result<std::vector<Delivery>> lease_deliveries(const DeliveryRequest& request,
                                                 const HeldWebhooks& held);
  void lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                DeliveriesDone done);
  /// Leases a ready task. `task` is its record.
  LeasedTask hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request);

  // Called by the turn.

  /// Handles all times up to `now`. Queues that a limit held back until then return to their ring.
  /// Expired waits are answered with no tasks.
  void end_times(Tick now);
  /// Serves waiting workers and the deliverer, as long as tasks are ready and the bound of one step
  /// allows.
  void serve();
  /// Serves waiting workers whose tasks can be handed out before the commit. The other workers stay
  /// in line. It asks the store only for records, so it may be called while the store writes.
  /// Returns the number of tasks handed out, where a KiB of payload counts as one more task.
  /// `have_fired` names the wheels that have fired all their due timers. A worker that waits for
  /// several queues is served only if the wheels of all these queues are among them. Otherwise it
  /// could get a task before a more urgent task of another queue.
  std::size_t serve_now(TaskTimers::Wheels have_fired = kAllWheels);
  /// When serve_now() was called last for all wheels.
  Tick served_at() const noexcept { return served_at_; }
  /// The store has failed: answers all waits with `error`.
  void fail_waits(const Error& error);
  /// As HandOutVerbs::expect_going_on().
  Result<void> expect_going_on() const;
  /// The number of waiting workers.
  std::size_t waiting() const noexcept { return waits_.size(); }
  bool does_anyone_wait() const noexcept { return waiting() > 0 || delivery_wait_ != nullptr; }
  /// Whether serve() may have something to do.
  bool has_work() const {
    if (parts_.window.holds_hand_outs()) return false;
    return parts_.turns.has_to_serve() ||
           (delivery_wait_ != nullptr && parts_.turns.to_deliver() > 0);
  }
  /// When end_times() must be called next.
  std::optional<Tick> next_time() const;

  void check_invariants() const { waits_.check_invariants(); }

 private:
  struct DeliveryWait;

  /// The most tasks for waiting workers in one call, not counting the excess of the last answer. A
  /// KiB of payload counts as one task. This takes about a millisecond.
  static constexpr std::size_t kServeLimit = 256;
  /// The most tasks in one answer while workers of other queues wait, and for a second after that.
  /// Those workers are at work and will soon wait again.
  static constexpr std::size_t kShare = 128;

  /// Where the next tasks may come from. `store`: if the head of a ready lane is not in memory, it
  /// is loaded. `memory`: only tasks in memory whose stored records are current. If the most urgent
  /// task is not such a task, no task is chosen.
  enum class Source : std::uint8_t { store, memory };
  struct Choice {
    Source source = Source::store;
    const LoadedTask* until = nullptr;  // if given: only tasks that are more urgent
  };

  // Choosing the queue.
  Result<std::vector<LeasedTask>> lease_from(const std::string& name, const LeaseRequest& request);
  Result<std::vector<LeasedTask>> lease_most_urgent(const LeaseRequest& request);
  std::vector<Queue*> queues_of(const LeaseRequest& request) const;
  Result<Queue*> most_urgent(const std::vector<Queue*>& queues, const WorkerWait* wait,
                             Source source = Source::store);

  // Choosing the tasks.
  Result<std::vector<LeasedTask>> take_ready(Queue& queue, ReadyTasks& ready,
                                             const LeaseRequest& request, const Choice& choice);
  Result<std::vector<LoadedTask*>> pick(Queue& queue, ReadyTasks& ready, std::size_t most,
                                        const Choice& choice);
  Result<std::vector<LeasedTask>> take_deliveries(Queue& queue, const LeaseRequest& request);
  Result<std::vector<LeasedTask>> take_run(Queue& queue, const LeaseRequest& request);
  std::vector<LeasedTask> hand_out_all(Queue& queue, const std::vector<LoadedTask*>& picked,
                                       std::vector<Result<Task>> records,
                                       const LeaseRequest& request);
  std::size_t share_of(const Queue& queue) noexcept;

  // Waiting workers.
  void serve_waits(std::size_t served = 0);
  void serve_waits_before(const LeaseRequest& request);
  std::size_t serve_next(Queue& queue);
  void hold_back(Queue& queue);
  void finish_wait(WorkerWait& wait, Result<std::vector<LeasedTask>> answer);
  LeaseDone end_wait(WorkerWait& wait);
  std::size_t serve_now(Queue& queue, TaskTimers::Wheels have_fired);
  void serve_delivery_wait();
  void end_delivery_wait(Result<std::vector<Delivery>> answer);

  const Parts parts_;
  const std::uint64_t shard_;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_lease_ = 0;  // LeaseToken::number
  std::uint64_t told_to_ = 0;     // the holders of leases up to this number got their answers

  WaitingWorkers waits_;
  std::unique_ptr<DeliveryWait> delivery_wait_;  // set while the deliverer waits
  bool is_deliverers_turn_ = false;  // the side that took the last task is served second
  Tick served_at_ = 0;               // see served_at()
  Tick shared_until_ = 0;            // until then, answers are limited to kShare: share_of()
};

}  // namespace detent
