// A scheduler for one timer, either correct or with one of three planted faults that the explorer
// must find.
//
// It works like the real scheduler. The driver publishes a deadline and sleeps on a bell until
// then. A thread that sets an earlier deadline rings the bell.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/clock.h"

namespace detent::explore {

enum class Fault : std::uint8_t {
  none,
  publishes_late,        // publishes the driver's wake-up time after it has freed the lock
  cancels_in_two_steps,  // checks for a pending timer, and ends it under another lock
  locks_both_ways,       // takes its two locks in different orders
};

/// Thread-safe.
class MiniScheduler {
 public:
  MiniScheduler(ManualClock& clock, Fault fault)
      : clock_(clock), fault_(fault), driver_([this] { drive(); }) {}
  ~MiniScheduler() {
    {
      MutexLock lock(mu_);
      stopping_ = true;
    }
    bell_.ring();
    driver_.join();
  }
  MiniScheduler(const MiniScheduler&) = delete;
  MiniScheduler& operator=(const MiniScheduler&) = delete;

  void schedule(MonotonicTime deadline) {
    bool ring = false;
    {
      MutexLock lock(mu_);
      deadline_ = deadline;
      ring = sleeps_until_ && deadline < *sleeps_until_;
      if (ring) sleeps_until_.reset();
    }
    if (ring) bell_.ring();
  }

  /// Returns whether the timer was pending. If so, it does not fire.
  bool cancel() {
    bool pending = false;
    {
      MutexLock lock(mu_);
      pending = deadline_.has_value();
      if (fault_ != Fault::cancels_in_two_steps) deadline_.reset();
    }
    if (fault_ == Fault::cancels_in_two_steps) {
      MutexLock lock(mu_);
      deadline_.reset();
    }
    return pending;
  }

  /// How often the timer has fired; 0 while it is pending.
  int fired() {
    if (fault_ == Fault::locks_both_ways) {
      MutexLock count_lock(count_mu_);
      MutexLock lock(mu_);
      return deadline_ ? 0 : count_;
    }
    MutexLock lock(mu_);
    MutexLock count_lock(count_mu_);
    return deadline_ ? 0 : count_;
  }

 private:
  void drive() {
    std::optional<MonotonicTime> until;
    while (look(until)) {
      if (fault_ == Fault::publishes_late) publish(until);
      clock_.wait(bell_, until);
    }
  }

  /// Fires the timer if it is due. Returns false if the driver must end.
  bool look(std::optional<MonotonicTime>& until) {
    MutexLock lock(mu_);
    if (stopping_) return false;
    if (deadline_ && *deadline_ <= clock_.now()) {
      MutexLock count_lock(count_mu_);
      deadline_.reset();
      ++count_;
    }
    until = deadline_;
    sleeps_until_.reset();
    if (fault_ != Fault::publishes_late) sleeps_until_ = until.value_or(MonotonicTime::max());
    return true;
  }

  void publish(std::optional<MonotonicTime> until) {
    MutexLock lock(mu_);
    sleeps_until_ = until.value_or(MonotonicTime::max());
  }

  // Constant after construction.
  ManualClock& clock_;
  const Fault fault_;

  // With its own synchronisation.
  Doorbell bell_;

  Mutex mu_;  // lock before count_mu_
  std::optional<MonotonicTime> deadline_ DETENT_GUARDED_BY(mu_);
  std::optional<MonotonicTime> sleeps_until_ DETENT_GUARDED_BY(mu_);
  bool stopping_ DETENT_GUARDED_BY(mu_) = false;

  Mutex count_mu_;
  int count_ DETENT_GUARDED_BY(count_mu_) = 0;

  Thread driver_;  // last, because it uses all members above
};

}  // namespace detent::explore
