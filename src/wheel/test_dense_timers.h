// DenseTimers: adapts a wheel of numbers to an interface with timer objects. DenseWheel can thus
// run the tests of every other queue. Each timer gets a number when it is first scheduled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/tick.h"

namespace detent {

/// A TimerQueue over `Wheel`, a wheel of numbers. Thread-compatible. Timers may outlive it.
template <class Wheel>
class DenseTimers {
 public:
  class Timer {
   public:
    Timer() = default;
    ~Timer() { release(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    bool is_pending() const noexcept {
      return owner_ != nullptr && owner_->wheel_.is_pending(index_);
    }
    Tick deadline() const noexcept {
      return is_pending() ? owner_->wheel_.deadline_of(index_) : deadline_;
    }

   private:
    friend class DenseTimers;

    // Returns the timer's number to the owner.
    void release() noexcept {
      if (owner_ == nullptr) return;
      owner_->wheel_.cancel(index_);
      owner_->timers_[index_] = nullptr;
      owner_->free_.push_back(index_);
      owner_ = nullptr;
    }

    DenseTimers* owner_ = nullptr;  // the owner of its number
    std::uint32_t index_ = 0;
    Tick deadline_ = 0;
  };

  explicit DenseTimers(Tick now) : wheel_(now) {}
  ~DenseTimers() {
    for (Timer* timer : timers_) {
      if (timer != nullptr) timer->owner_ = nullptr;
    }
  }
  DenseTimers(const DenseTimers&) = delete;
  DenseTimers& operator=(const DenseTimers&) = delete;

  bool schedule(Timer& timer, Tick deadline) noexcept {
    give_number(timer);
    timer.deadline_ = deadline;  // a wheel of numbers refuses no deadline here
    return wheel_.schedule(timer.index_, deadline);
  }
  bool postpone(Timer& timer, Tick deadline) noexcept {
    give_number(timer);
    timer.deadline_ = deadline;
    return wheel_.postpone(timer.index_, deadline);
  }
  bool cancel(Timer& timer) noexcept {
    if (timer.owner_ == nullptr) return false;
    DETENT_CHECK(timer.owner_ == this || !timer.is_pending());
    return timer.owner_ == this && wheel_.cancel(timer.index_);
  }

  template <class OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = kNoLimit) noexcept {
    return wheel_.advance(
        now, [&](std::uint32_t index) { on_fire(*timers_[index]); }, limit);
  }

  std::optional<Tick> next_wakeup() const noexcept { return wheel_.next_wakeup(); }
  Tick now() const noexcept { return wheel_.now(); }
  std::size_t size() const noexcept { return wheel_.size(); }
  bool empty() const noexcept { return wheel_.empty(); }
  void check_invariants() const noexcept {
    wheel_.check_invariants();
    const auto pending = std::count_if(timers_.begin(), timers_.end(), [](const Timer* timer) {
      return timer != nullptr && timer->is_pending();
    });
    DETENT_CHECK(static_cast<std::size_t>(pending) == size());
  }

 private:
  void give_number(Timer& timer) {
    if (timer.owner_ == this) return;
    DETENT_CHECK(!timer.is_pending());
    timer.release();
    timer.owner_ = this;
    if (free_.empty()) {
      timer.index_ = static_cast<std::uint32_t>(timers_.size());
      timers_.push_back(&timer);
    } else {
      timer.index_ = free_.back();
      free_.pop_back();
      timers_[timer.index_] = &timer;
    }
  }

  Wheel wheel_;
  std::vector<Timer*> timers_;       // by number; null: number is free
  std::vector<std::uint32_t> free_;  // numbers that were returned
};

}  // namespace detent
