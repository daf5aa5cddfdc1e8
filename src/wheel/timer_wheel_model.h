// A wheel and a sorted map do the same random things, and every difference is reported.
//
// The model holds pending timers in std::multimaps by deadline and plays the passes of TimerWheel:
// what was due when a pass began must fire in it, in deadline order, and nothing else may.
// Callbacks act at random too. Templated over the wheel, so that deliberately broken wheels can
// show that a fault is found. One episode is one wheel's life; equal seeds give equal episodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/rng.h"
#include "detent/timer_wheel.h"

namespace detent {

/// What the model cannot see from outside, whether a call that resumed an old pass and stopped at
/// its limit had already begun its own; and what it would need many timers to reach.
struct TimerWheelPeer {
  static Tick pass_end(const TimerWheel& wheel) { return wheel.pass_end_; }
  // So that a few timers already use every chain of a slot.
  static void spread_from(TimerWheel& wheel, std::size_t size) { wheel.spread_from_ = size; }
  static bool admitted_is_empty(const TimerWheel& wheel) { return wheel.admitted_.empty(); }
};

template <class Wheel>
class WheelModel {
 public:
  explicit WheelModel(std::uint64_t seed)
      : random_(seed), start_(random_.next() >> random_.below(64)), wheel_(start_) {
    now_ = pass_end_ = start_;
    constexpr std::array<std::size_t, 4> kSpreadFrom{0, 20, 40, 100'000};
    TimerWheelPeer::spread_from(wheel_, kSpreadFrom[random_.below(4)]);
    for (std::size_t id = 0; id < kTimerCount; ++id) revive(id);
  }

  /// Does `operation_count` random operations. Returns: the first difference found, if any.
  std::optional<std::string> run(std::size_t operation_count) {
    for (std::size_t i = 0; i < operation_count && !mismatch_; ++i) {
      if (random_.below(100) < 25) {
        advance();
      } else {
        act(random_.below(kTimerCount));
      }
      if (i % 256 == 0) wheel_.check_invariants();
      compare();
    }
    return mismatch_;
  }

  std::size_t fired() const { return fired_in_all_; }
  std::size_t resumed() const { return resumed_in_all_; }

 private:
  static constexpr std::size_t kTimerCount = 96;
  static constexpr Tick kLastTick = std::numeric_limits<Tick>::max();
  using ByDeadline = std::multimap<Tick, std::size_t>;

  struct NumberedTimer : Timer {
    std::size_t id = 0;
  };
  struct Entry {
    ByDeadline* where = nullptr;  // null: not pending
    ByDeadline::iterator at;
  };

  void expect(bool condition, const char* what) {
    if (condition || mismatch_) return;
    mismatch_ = std::string(what) + " (pass to " + std::to_string(pass_end_) + ", now " +
                std::to_string(wheel_.now()) + ')';
  }

  // ---- The two sides of each operation.

  void schedule(std::size_t id, Tick deadline, bool postpone) {
    if (postpone) {
      wheel_.postpone(*timers_[id], deadline);
    } else {
      expect(wheel_.schedule(*timers_[id], deadline), "schedule answers false");
    }
    forget(id);
    put(id, deadline, deadline > pass_end_ ? later_ : waiting_);
  }

  void cancel(std::size_t id) {
    const bool pending = entries_[id].where != nullptr;
    expect(wheel_.cancel(*timers_[id]) == pending, "cancel answers wrongly");
    forget(id);
  }

  void destroy(std::size_t id) {
    timers_[id].reset();
    forget(id);
    revive(id);
  }

  void revive(std::size_t id) {
    timers_[id] = std::make_unique<NumberedTimer>();
    timers_[id]->id = id;
  }

  void act(std::size_t id) {
    const std::uint32_t dice = random_.below(100);
    if (dice < 50) {
      schedule(id, random_deadline(), false);
    } else if (dice < 75) {
      const bool later = entries_[id].where != nullptr && random_.below(4) != 0;
      const Tick from = later ? timers_[id]->deadline() : pass_end_;
      schedule(id, plus(from, random_delay()), true);
    } else if (dice < 95) {
      cancel(id);
    } else {
      destroy(id);
    }
  }

  void advance() {
    const Tick to = random_advance();
    const std::size_t limit = random_.below(2) == 0 ? Wheel::npos : random_.below(24);
    const bool resumes = in_pass_;
    const Tick old_now = now_;
    resumed_in_all_ += resumes ? 1 : 0;
    fired_ = 0;
    own_pass_begun_ = false;
    target_ = to;
    move_all(waiting_, admitted_);
    if (!resumes) begin_pass();

    const AdvanceResult result = wheel_.advance(
        to, [this](Timer& timer) { on_fire(timer); }, limit);

    expect(result.fired == fired_, "fired is not the number of callbacks");
    expect(result.fired <= limit, "fired more than the limit");
    expect(limit != Wheel::npos || !result.more, "more without a limit");
    if (!own_pass_begun_ && (!result.more || has_begun_unseen())) begin_pass();
    now_ = wheel_.now();
    if (result.more) {
      check_stopped(old_now);
    } else {
      expect(due_.empty(), "a due timer did not fire");
      expect(now_ == pass_end_, "now() is not where advance went");
      in_pass_ = false;
    }
  }

  // ---- The model's passes.

  void begin_pass() {
    expect(due_.empty(), "the next pass began before the last was finished");
    own_pass_begun_ = true;
    in_pass_ = true;
    overdue_until_ = pass_end_;
    pass_end_ = std::max(target_, pass_end_);
    move_all(admitted_, due_);
    while (!later_.empty() && later_.begin()->first <= pass_end_) {
      const auto [deadline, id] = *later_.begin();
      forget(id);
      put(id, deadline, due_);
    }
  }

  bool has_begun_unseen() const {
    return TimerWheelPeer::pass_end(wheel_) != pass_end_ ||
           (!admitted_.empty() && TimerWheelPeer::admitted_is_empty(wheel_));
  }

  // A pass that was cut short: nothing after the pass began may be due and yet called finished.
  void check_stopped(Tick old_now) {
    expect(now_ >= old_now && now_ <= pass_end_, "now() went back, or too far");
    const auto next = due_.upper_bound(overdue_until_);
    expect(next == due_.end() || next->first > now_, "now() is not finished");
  }

  void on_fire(Timer& timer) {
    const std::size_t id = static_cast<NumberedTimer&>(timer).id;
    if (due_.empty() && !own_pass_begun_) begin_pass();
    ++fired_;
    ++fired_in_all_;
    expect(entries_[id].where == &due_, "fired a timer that is not due in this pass");
    if (mismatch_) return;
    const Tick deadline = entries_[id].at->first;
    expect(deadline == due_.begin()->first, "fired out of order");
    expect(timer.deadline() == deadline, "the timer forgot its deadline");
    expect(!timer.is_pending(), "pending in its own callback");
    expect(wheel_.now() == pass_end_, "now() in a callback is not the end of the pass");
    forget(id);
    expect(wheel_.size() == pending_count(), "size() in a callback");
    for (std::uint32_t actions = random_.below(8); actions > 5; --actions) {
      act(random_.below(2) == 0 ? id : random_.below(kTimerCount));
    }
    if (random_.below(512) == 0) wheel_.check_invariants();
  }

  // ---- The model's sets.

  void put(std::size_t id, Tick deadline, ByDeadline& where) {
    entries_[id] = {.where = &where, .at = where.emplace(deadline, id)};
  }

  void forget(std::size_t id) {
    if (entries_[id].where != nullptr) entries_[id].where->erase(entries_[id].at);
    entries_[id].where = nullptr;
  }

  void move_all(ByDeadline& from, ByDeadline& to) {
    while (!from.empty()) {
      const auto [deadline, id] = *from.begin();
      forget(id);
      put(id, deadline, to);
    }
  }

  std::size_t pending_count() const {
    return later_.size() + waiting_.size() + admitted_.size() + due_.size();
  }

  void compare() {
    expect(wheel_.size() == pending_count() && wheel_.empty() == (pending_count() == 0), "size()");
    expect(wheel_.now() == now_, "now() moved by itself");
    const std::optional<Tick> next = wheel_.next_wakeup();
    expect(next.has_value() == (pending_count() != 0), "next_wakeup() is empty, or is not");
    if (!next) return;
    expect(*next >= now_, "next_wakeup() is in the past");
    if (in_pass_ || !waiting_.empty()) {
      expect(*next == now_, "next_wakeup() is not now() although something waits");
    } else {
      expect(later_.empty() || *next <= later_.begin()->first, "next_wakeup() is too late");
    }
    const std::size_t id = random_.below(kTimerCount);
    expect(timers_[id]->is_pending() == (entries_[id].where != nullptr), "is_pending()");
  }

  // ---- What is random.

  static Tick plus(Tick from, Tick delay) { return from + std::min(delay, kLastTick - from); }

  Tick random_delay() {
    switch (random_.below(8)) {
      case 0:
        return random_.below(3);
      case 1:
      case 2:
        return random_.below(70);
      case 3:
        return random_.below(5'000);
      case 4:
        return (Tick{1} << (6 * random_.below(11))) + random_.below(3) - 1;
      case 5:
        return 64;  // equal deadlines
      case 6:
        return random_.below(300'000);
      default:
        return random_.next() >> random_.below(64);
    }
  }

  Tick random_deadline() {
    switch (random_.below(16)) {
      case 0:
        return random_.next() >> random_.below(64);
      case 1:
        return pass_end_ - std::min(pass_end_, random_delay());
      case 2:
        return now_;
      case 3:
        return random_.below(8) == 0 ? kLastTick : (pass_end_ | 4'095);
      default:
        return plus(pass_end_, random_delay());
    }
  }

  Tick random_advance() {
    switch (random_.below(16)) {
      case 0:
        return now_ - std::min(now_, random_delay());
      case 1:
      case 2:
        return wheel_.next_wakeup().value_or(now_);
      case 3:
        return later_.empty() ? now_ : later_.begin()->first;
      case 4:
        return random_.below(64) == 0 ? kLastTick : plus(now_, random_.below(20'000'000));
      case 5:
        return plus(now_, random_.below(6'000));
      case 6:
        return now_;
      case 7:
        return random_.below(64) == 0 ? plus(now_, random_delay()) : now_ | 63;
      default:
        return plus(now_, random_.below(40));
    }
  }

  Rng random_;
  Tick start_;
  Wheel wheel_;
  std::array<std::unique_ptr<NumberedTimer>, kTimerCount> timers_;

  std::array<Entry, kTimerCount> entries_{};
  ByDeadline later_;     // deadline after pass_end_
  ByDeadline waiting_;   // scheduled at or before pass_end_, since the last call began
  ByDeadline admitted_;  // the same, from before the last call
  ByDeadline due_;       // fires in this pass
  Tick now_ = 0;
  Tick pass_end_ = 0;
  Tick target_ = 0;         // what the running call was asked for
  Tick overdue_until_ = 0;  // what was finished before this pass began
  bool in_pass_ = false;
  bool own_pass_begun_ = false;

  std::size_t fired_ = 0;
  std::size_t fired_in_all_ = 0;
  std::size_t resumed_in_all_ = 0;
  std::optional<std::string> mismatch_;
};

}  // namespace detent
