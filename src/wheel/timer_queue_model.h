// What a queue must do, played with sorted sets: which timers belong to the pass that runs.
//
// A call of `advance` finishes the pass that an earlier call left, then begins its own. What was
// due when a pass began must fire in it, in the order of deadlines, and nothing else may.
//
// One thing can't be seen from outside. A call that went on with an old pass, fired nothing more
// and stopped at its limit may have been moving timers of the old pass, or of its own already. The
// model then goes on as two, one for each case, until what the queue does next refutes one. It is
// refuted itself when every case is.
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

/// Which timer fires first: equal deadlines in any order, or in the order of scheduling.
enum class EqualDeadlines { in_any_order, in_schedule_order };

/// One case of what the queue may be doing. A value.
class PassModel {
 public:
  PassModel(std::size_t timer_count, Tick now, EqualDeadlines equal)
      : entries_(timer_count), equal_(equal), now_(now), pass_end_(now), overdue_until_(now) {}

  bool operator==(const PassModel&) const = default;

  bool is_pending(std::size_t id) const { return entries_[id].place != none; }
  std::size_t size() const {
    return sets_[later].size() + sets_[waiting].size() + sets_[admitted].size() + sets_[due].size();
  }
  /// Whether next_wakeup() must be now().
  bool wants_to_go_on() const { return in_pass_ || !sets_[waiting].empty(); }
  Tick now() const { return now_; }
  Tick pass_end() const { return pass_end_; }
  /// Returns: the earliest deadline of a later pass.
  std::optional<Tick> earliest_later() const {
    if (sets_[later].empty()) return std::nullopt;
    return sets_[later].begin()->deadline;
  }
  /// What the queue did that it must not; null when nothing.
  const char* mismatch() const { return mismatch_; }

  /// `order` grows from call to call.
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

  /// The queue calls back, and says that it is `now`.
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

  /// The call is over, and the queue says that it is `now`.
  /// Returns: the other case, when what the queue did does not tell whether its own pass has begun.
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
    later,     // deadline after the pass's end
    waiting,   // deadline at or before it, scheduled since the last call began
    admitted,  // the same, from before the last call
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

  // The pass before is over, so the tick that it went to is finished.
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

  // The limit ends a call. What was not overdue and still is to fire is after the queue's now().
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
  Tick pass_end_;       // where the pass goes, or where the last one went
  Tick target_ = 0;     // what the running call was asked for
  Tick overdue_until_;  // what was finished before this pass began
  bool in_pass_ = false;
  bool own_pass_begun_ = false;  // by the running call, or the last one
  const char* mismatch_ = nullptr;
};

}  // namespace detent
