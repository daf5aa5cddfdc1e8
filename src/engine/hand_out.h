// Handing out: who gets which of the ready tasks, and when.
//
// A worker asks for tasks of a queue, or for the most urgent of several, and gets them at once or
// waits; who waits comes first. The **deliverer** of webhooks, of which there is one, asks for what
// goes to webhooks, of all queues. Which queue is next hand_out_turns.h says, what lets none go
// LoadedTasks::allowance(). Each step hands out a bounded number of tasks.
//
// A hand-out stages nothing: a lease is memory. Who asks is answered after the next commit all the
// same, because the tasks may have been made since the last one. Who waits need not wait for that,
// nor for what others have changed: serve_now() tells at once what no crash can make untrue, of
// tasks that are stored as they are (hand_out_now.cc).
//
// After a start nothing is handed out until what was due is in its queue's order, or the time for
// that is over (LoadWindow::holds_hand_outs()): who asks is told that there is nothing, who waits
// waits.
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
#include "detent/tick.h"
#include "engine/answers.h"
#include "engine/commit_writer.h"
#include "engine/engine_time.h"
#include "engine/engine_values.h"
#include "engine/hand_out_turns.h"
#include "engine/lateness_account.h"
#include "engine/load_window.h"
#include "engine/loaded_tasks.h"
#include "engine/queue_book.h"
#include "engine/task_news.h"
#include "engine/waiting_workers.h"
#include "task/request.h"

namespace detent {

class HandOut {
 public:
  /// What it works on; all must outlive it.
  struct Parts {
    const EngineTime& time;
    const CommitWriter& writer;
    QueueBook& queues;
    HandOutTurns& turns;
    TaskNews& news;
    LatenessAccount& lateness;
    TaskRecords& records;
    LoadedTasks& tasks;
    LoadWindow& window;
    Answers& answers;
  };
  /// `shard` is in the number of every lease.
  HandOut(Parts parts, std::uint64_t shard);
  ~HandOut();
  HandOut(const HandOut&) = delete;
  HandOut& operator=(const HandOut&) = delete;

  /// Leases are of this epoch from now on, and nobody has the name of a wait of an earlier one.
  void begin(std::uint64_t epoch) noexcept;
  /// A lease of an earlier epoch is taken up: its number is not given again.
  void note_number(std::uint64_t number) noexcept;
  /// A commit is over: who waited for it has been told of all leases.
  void note_told() noexcept { told_to_ = last_lease_; }
  /// Whether its holder knows of a lease.
  bool is_told(std::uint64_t number, const Lease& lease) const noexcept {
    return lease.is_told || number <= told_to_;
  }

  // The verbs of engine.h of these names.

  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  Result<std::optional<ReadyHead>> next_ready(const LeaseRequest& request);
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  void abandon_wait(WaitId id);
  void end_waits();
  Result<std::vector<Delivery>> lease_deliveries(const DeliveryRequest& request,
                                                 const HeldWebhooks& held);
  void lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                DeliveriesDone done);
  /// Leases a ready task, whose record this is.
  LeasedTask hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request);

  // The turn's part.

  /// What limits held back until now comes again; whose time to wait is over is answered.
  void end_times(Tick now);
  /// Serves those who wait, as far as there is something ready, or a part of them.
  void serve();
  /// Serves workers that wait as far as they may be told at once; the others stay in line. Asks
  /// nothing of the store but records, so that it may be called while the store writes. Returns the
  /// tasks handed out, with a KiB of payload as one more. Of these wheels all that is due has
  /// fired: who waits for queues of others too is left in line, for what is due together goes by
  /// its order.
  std::size_t serve_now(TaskTimers::Wheels have_fired = kAllWheels);
  /// When it was called last.
  Tick served_at() const noexcept { return served_at_; }
  /// The store has failed: answers everyone who waits so.
  void fail_waits(const Error& error);
  bool have_waits_ended() const noexcept { return waits_.have_ended(); }
  /// How many workers wait.
  std::size_t waiting() const noexcept { return waits_.size(); }
  bool does_anyone_wait() const noexcept { return waiting() > 0 || delivery_wait_ != nullptr; }
  /// Whether serve() may have something to do.
  bool has_work() const {
    if (parts_.window.holds_hand_outs()) return false;
    return parts_.turns.has_to_serve() ||
           (delivery_wait_ != nullptr && parts_.turns.to_deliver() > 0);
  }
  /// When end_times() has something to do.
  std::optional<Tick> next_time() const;

  void check_invariants() const { waits_.check_invariants(); }

 private:
  struct DeliveryWait;

  /// Tasks handed to waiting workers in one go, but for those of the last answer; a KiB of payload
  /// counts as one, too. About a millisecond.
  static constexpr std::size_t kServeLimit = 256;
  /// Tasks that a worker is handed at once while workers of other queues wait, and for a second
  /// after: they are at work, and will wait again.
  static constexpr std::size_t kShare = 128;

  // Whom to take from.
  Result<std::vector<LeasedTask>> lease_from(const std::string& name, const LeaseRequest& request);
  Result<std::vector<LeasedTask>> lease_most_urgent(const LeaseRequest& request);
  std::vector<Queue*> queues_of(const LeaseRequest& request) const;
  Result<Queue*> most_urgent(const std::vector<Queue*>& queues, const WorkerWait* wait);

  // What to take.
  Result<std::vector<LeasedTask>> take_ready(Queue& queue, ReadyTasks& ready,
                                             const LeaseRequest& request,
                                             const LoadedTask* until = nullptr);
  Result<std::vector<LeasedTask>> take_deliveries(Queue& queue, const LeaseRequest& request);
  Result<std::vector<LeasedTask>> take_run(Queue& queue, const LeaseRequest& request);
  std::vector<LeasedTask> hand_out_all(Queue& queue, const std::vector<LoadedTask*>& picked,
                                       std::vector<Result<Task>> records,
                                       const LeaseRequest& request);
  std::size_t share_of(const Queue& queue) noexcept;

  // Those who wait.
  void serve_waits(std::size_t served = 0);
  void serve_waits_before(const LeaseRequest& request);
  std::size_t serve_next(Queue& queue);
  void hold_back(Queue& queue);
  void finish_wait(WorkerWait& wait, Result<std::vector<LeasedTask>> answer);
  LeaseDone end_wait(WorkerWait& wait);
  std::size_t serve_now(Queue& queue, TaskTimers::Wheels have_fired);
  Queue* next_for(const WorkerWait& wait) const;
  std::vector<LeasedTask> take_now(Queue& queue, const LeaseRequest& request);
  void serve_delivery_wait();
  void end_delivery_wait(Result<std::vector<Delivery>> answer);

  const Parts parts_;
  const std::uint64_t shard_;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_lease_ = 0;  // LeaseToken::number
  std::uint64_t told_to_ = 0;     // up to here all were told at a commit

  WaitingWorkers waits_;
  std::unique_ptr<DeliveryWait> delivery_wait_;  // the deliverer, when it waits
  bool is_deliverers_turn_ = false;              // whoever took last is served second
  Tick served_at_ = 0;                           // by serve_now()
  Tick shared_until_ = 0;  // workers of several queues were there of late: share_of()
};

}  // namespace detent
