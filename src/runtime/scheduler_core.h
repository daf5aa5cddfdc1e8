// How the threads of a Scheduler meet: callers, the driver, and the executor's threads that run
// jobs.
//
// All timers are in one TimerShard behind one mutex, held for short steps only and never while a
// job is called or destroyed. The path of a timer:
//
//   schedule ─ lock: into the wheel ─► driver ─ lock: collect what is due ─► executor ─► run
//   run ─ lock: take the job ─► call it ─► lock: re-arm or end
//
// The driver sleeps until the wheel's next wake-up. Before it sleeps it publishes that instant in
// `sleeps_until_`, in the same critical section in which it read it from the wheel; whoever makes
// an earlier wake-up necessary sees it in his, and rings. The ring is kept if the driver is not
// asleep yet (Doorbell). So no earlier timer is overslept, and nobody rings a driver that is awake.
//
// A timer is cancelled, moved or run under the lock, whichever comes first; the others then find
// another state or, by the generation in its id, no timer. Who waits for a job to end waits until
// the job is destroyed as well: that happens before the lock is taken that ends the timer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "detent/timer_handle.h"
#include "runtime/timer_shard.h"

namespace detent::internal {

/// Thread-safe. Owned by the Scheduler, by its handles, and by what is queued at the executor;
/// after `stop` it holds no timers and touches neither clock nor executor, which may be gone.
class SchedulerCore final : public std::enable_shared_from_this<SchedulerCore> {
 public:
  explicit SchedulerCore(SchedulerOptions options);
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;

  const Clock& clock() const noexcept { return clock_; }

  /// Returns: no id when the scheduler has stopped.
  std::optional<TimerId> schedule(NewTimer timer);
  CancelResult cancel(TimerId id) noexcept;
  CancelResult cancel_and_wait(TimerId id) noexcept;
  bool move(TimerId id, std::chrono::nanoseconds delay) noexcept;
  bool is_pending(TimerId id) const noexcept;
  std::vector<PendingJob> stop(Drain drain);
  SchedulerStats stats() const;

  /// The driver thread's whole life; returns after `stop`.
  void drive();

  /// Whether the calling thread is inside a job of this scheduler.
  bool is_inside_job() const noexcept;

 private:
  /// What the driver does after one look at the timers.
  enum class Next : std::uint8_t { hand_out, sleep, end };

  Next look(std::vector<TimerId>& due, std::optional<MonotonicTime>& until);
  void hand_out(const std::vector<TimerId>& due);
  void run(TimerId id) noexcept;
  void call(Job& job) noexcept;
  void finish(TimerId id, Job job) noexcept;
  bool must_ring() noexcept DETENT_REQUIRES(mu_);

  // Constant after construction.
  SystemClock machine_;
  InlineExecutor inline_;
  Clock& clock_;
  Executor& executor_;
  const std::function<void(std::exception_ptr)> error_handler_;

  // Synchronises itself.
  Doorbell bell_;

  mutable Mutex mu_;
  CondVar changed_;  // a job ended, or the driver did
  TimerShard shard_ DETENT_GUARDED_BY(mu_);
  // What the driver sleeps until (max: a ring); empty while it is awake and will look by itself.
  std::optional<MonotonicTime> sleeps_until_ DETENT_GUARDED_BY(mu_);
  std::optional<Drain> stopping_ DETENT_GUARDED_BY(mu_);
  bool driver_ended_ DETENT_GUARDED_BY(mu_) = false;
};

}  // namespace detent::internal
