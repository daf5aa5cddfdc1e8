// PassModel: a model of a queue, made of sorted sets. It knows which timers belong to the running
// pass.
//
// A call of `advance` finishes the pass that an earlier call left unfinished, then begins its own
// pass. Timers that were due when a pass began must fire in this pass, in the order of deadlines.
// No other timer may fire.
//
// One fact cannot be observed from outside. Suppose that a call continues an old pass, fires no
// further timer and stops at its limit. The queue may have moved timers of the old pass, or already
// timers of its own pass. The model then splits into two models, one for each case. Later behaviour
// of the queue refutes one of them. The queue is wrong if every model is refuted.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "detent/advance.h"
#include "detent/tick.h"

namespace detent {

/// The order of timers with equal deadlines: any order, or the order of scheduling.
enum class EqualDeadlines { in_any_order, in_schedule_order };

/// One possible state of the queue. A value type.
class PassModel {
 public:
  PassModel(std::size_t timer_count, Tick now, EqualDeadlines equal)
      : entries_(timer_count), equal_(equal), now_(now), pass_end_(now), overdue_until_(now) {}

  bool operator==(const PassModel&) const = default;

  bool is_pending(std::size_t id) const { return entries_[id].place != none; }
  std::size_t size() const {
    return sets_[later].size() + sets_[waiting].size() + sets_[admitted].size() + sets_[due].size();
  }
  /// Returns true if next_wakeup() must be now().
  bool wants_to_go_on() const { return in_pass_ || !sets_[waiting].empty(); }
  Tick now() const { return now_; }
  Tick pass_end() const { return pass_end_; }
  /// Returns the earliest deadline of a later pass.
  std::optional<Tick> earliest_later() const {
    if (sets_[later].empty()) return std::nullopt;
    return sets_[later].begin()->deadline;
  }
  /// Returns the first error of the queue; null if there is no error.
  const char* mismatch() const { return mismatch_; }

  /// Schedules a timer. `order` grows from call to call.
  void schedule(std::size_t id, Tick deadline, std::uint64_t order) {
    forget(id);
    put({deadline, order, id}, deadline > pass_end_ ? later : waiting);
  }

  void forget(std::size_t id) {
    Entry& entry = entries_[id];
    if (entry.place != none) sets_[entry.place].erase(entry.key);
    entry.place = none;
  }

  void begin_call(Tick target) {
    target_ = target;
    own_pass_begun_ = false;
    move_all(waiting, admitted);
    if (!in_pass_) begin_pass();
  }

  /// The queue calls back, and reports `now`.
  void fire(std::size_t id, Tick now) {
    if (sets_[due].empty() && !own_pass_begun_) begin_pass();
    const Entry& entry = entries_[id];
    expect(entry.place == due, "fired a timer that is not due in this pass");
    expect(now == pass_end_, "now() in a callback is not the end of the pass");
    if (mismatch_ != nullptr) return;
    const Key& first = *sets_[due].begin();
    expect(entry.key.deadline == first.deadline, "fired out of order");
    if (equal_ == EqualDeadlines::in_schedule_order) {
      expect(entry.key == first, "equal deadlines fired in another order than scheduled");
    }
    forget(id);
  }

  /// The call has ended, and the queue reports `now`. If the observed behaviour does not tell
  /// whether the queue's own pass has begun, returns the model of the other case.
  std::optional<PassModel> end_call(const AdvanceResult& result, Tick now) {
    if (!result.more) {
      if (!own_pass_begun_) begin_pass();
      expect(sets_[due].empty(), "a due timer did not fire");
      expect(now == pass_end_, "now() is not where advance went");
      now_ = now;
      in_pass_ = false;
      return std::nullopt;
    }
    std::optional<PassModel> other;
    if (!own_pass_begun_ && sets_[due].empty()) {
      other = *this;
      other->begin_pass();
      other->stop(now);
    }
    stop(now);
    return other;
  }

 private:
  enum Place : std::uint8_t {
    later,     // deadline after the end of the pass
    waiting,   // deadline at or before it, scheduled since the last call began
    admitted,  // as waiting, but scheduled before the last call
    due,       // fires in this pass
    none,      // not pending
  };

  struct Key {
    Tick deadline;
    std::uint64_t order;
    std::size_t id;

    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    Place place = none;
    Key key{};

    bool operator==(const Entry&) const = default;
  };

  void expect(bool condition, const char* what) {
    if (!condition && mismatch_ == nullptr) mismatch_ = what;
  }

  // The previous pass is finished, and therefore its target tick, too.
  void begin_pass() {
    expect(sets_[due].empty(), "the next pass began before the last was finished");
    own_pass_begun_ = true;
    in_pass_ = true;
    now_ = overdue_until_ = pass_end_;
    pass_end_ = std::max(target_, pass_end_);
    move_all(admitted, due);
    while (!sets_[later].empty() && sets_[later].begin()->deadline <= pass_end_) {
      move_first(later, due);
    }
  }

  // The limit ends a call. Timers that were not overdue and have not fired have deadlines after the
  // queue's now().
  void stop(Tick now) {
    expect(now >= now_ && now <= pass_end_, "now() went back, or too far");
    const auto next = std::find_if(sets_[due].begin(), sets_[due].end(), [this](const Key& key) {
      return key.deadline > overdue_until_;
    });
    expect(next == sets_[due].end() || next->deadline > now, "now() is not finished");
    now_ = now;
  }

  void put(const Key& key, Place place) {
    entries_[key.id] = {place, key};
    sets_[place].insert(key);
  }

  void move_first(Place from, Place to) {
    auto node = sets_[from].extract(sets_[from].begin());
    entries_[node.value().id].place = to;
    sets_[to].insert(std::move(node));
  }

  void move_all(Place from, Place to) {
    while (!sets_[from].empty()) move_first(from, to);
  }

  std::vector<Entry> entries_;  // by id
  std::array<std::set<Key>, 4> sets_;
  EqualDeadlines equal_;
  Tick now_;
  Tick pass_end_;       // target of the running pass, or of the last pass
  Tick target_ = 0;     // target of the running call
  Tick overdue_until_;  // last finished tick before this pass began
  bool in_pass_ = false;
  bool own_pass_begun_ = false;  // by the running call, or by the last call
  const char* mismatch_ = nullptr;
};

}  // namespace detent
