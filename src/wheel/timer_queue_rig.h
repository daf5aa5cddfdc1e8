// TimerQueueRig: executes the same operations on a queue and on its model, and reports every
// difference. The operations come from bytes.
//
//     const Episode episode = run_episode<TimerWheelCase>(bytes);   // one queue's life
//     EXPECT_EQ(episode.mismatch, std::nullopt);
//
// The rig uses only the public interface. Callbacks also execute operations from the bytes. Equal
// bytes give equal episodes. Read first: test_operations.h (the bytes), timer_queue_model.h (the
// correct behaviour).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "detent/queues/timer_queue.h"
#include "detent/tick.h"
#include "wheel/test_operations.h"
#include "wheel/test_queues.h"
#include "wheel/timer_queue_model.h"

namespace detent {

/// The result of an input.
struct Episode {
  std::optional<std::string> mismatch;  ///< the first difference between the queue and its model
  std::size_t operations = 0;
  std::size_t fired = 0;
  std::size_t refused = 0;    ///< deadlines beyond the queue's span
  std::size_t resumed = 0;    ///< calls that continued an old pass
  std::size_t ambiguous = 0;  ///< calls that left the model with several cases
};

template <TimerQueue Queue>
class TimerQueueRig {
 public:
  /// Requires: `queue` is empty, its time is `start.tick`, and it outlives the rig.
  TimerQueueRig(Queue& queue, const QueueNature& nature, const EpisodeStart& start)
      : queue_(queue), nature_(nature), target_(start.tick), timers_(start.timer_count) {
    const EqualDeadlines equal = nature.keeps_schedule_order ? EqualDeadlines::in_schedule_order
                                                             : EqualDeadlines::in_any_order;
    cases_.emplace_back(start.timer_count, start.tick, equal);
  }

  Episode run(OperationReader& input) {
    input_ = &input;
    for (std::size_t i = 1; !input.done() && !episode_.mismatch; ++i) {
      const Operation operation = input.operation();
      if (operation.verb == Verb::advance) {
        advance(operation);
      } else {
        act(operation);
      }
      if (i % kCheckEvery == 0) queue_.check_invariants();
      compare();
    }
    queue_.check_invariants();
    return std::move(episode_);
  }

 private:
  // One check of the invariants costs as much as a hundred operations.
  static constexpr std::size_t kCheckEvery = 512;
  static constexpr Tick kLast = std::numeric_limits<Tick>::max();

  struct NumberedTimer : Queue::Timer {
    std::size_t id = 0;
  };

  void expect(bool condition, const char* what) {
    if (condition || episode_.mismatch) return;
    episode_.mismatch = std::string(what) + " (operation " + std::to_string(episode_.operations) +
                        ", pass to " + std::to_string(model().pass_end()) + ", now " +
                        std::to_string(queue_.now()) + ')';
  }

  // ---- The two sides of each operation.

  void act(const Operation& operation) {
    for (std::size_t i = 0; i < operation.timer_count; ++i) {
      const std::size_t id = (operation.first_timer + i) % timers_.size();
      ++episode_.operations;
      switch (operation.verb) {
        case Verb::schedule:
        case Verb::postpone:
          schedule(id, operation);
          break;
        case Verb::cancel:
          cancel(id);
          break;
        case Verb::destroy:
          timers_[id].reset();
          forget(id);
          break;
        case Verb::advance:
          break;  // not allowed inside a callback
      }
      expect(timer(id).is_pending() == model().is_pending(id), "is_pending()");
    }
  }

  void schedule(std::size_t id, const Operation& operation) {
    NumberedTimer& moved = timer(id);
    const Tick before = moved.deadline();
    const Tick deadline = tick_of(operation.when, id);
    const bool accepted = operation.verb == Verb::postpone ? queue_.postpone(moved, deadline)
                                                           : queue_.schedule(moved, deadline);
    const bool in_span = deadline <= queue_.now() || deadline - queue_.now() <= nature_.span;
    expect(accepted == in_span, "accepts what is beyond its span, or refuses what is within");
    expect(moved.deadline() == (accepted ? deadline : before), "the timer forgot its deadline");
    ++orders_;
    episode_.refused += accepted ? 0u : 1u;
    if (!accepted) return;
    for (PassModel& each : cases_) each.schedule(id, due_at(deadline), orders_);
  }

  void cancel(std::size_t id) {
    const bool pending = model().is_pending(id);
    expect(queue_.cancel(timer(id)) == pending, "cancel answers wrongly");
    forget(id);
  }

  // A timer is made when it is first used, and made again after it was destroyed.
  NumberedTimer& timer(std::size_t id) {
    if (timers_[id] == nullptr) {
      timers_[id] = std::make_unique<NumberedTimer>();
      timers_[id]->id = id;
    }
    return *timers_[id];
  }

  void advance(const Operation& operation) {
    const Tick to =
        std::min(tick_of(operation.when, operation.first_timer % timers_.size()),
                 plus(queue_.now(), std::min(operation.longest_step, nature_.longest_step)));
    ++episode_.operations;
    episode_.resumed += is_in_pass_ ? 1u : 0u;
    target_ = std::max(target_, to);
    fired_ = 0;
    for (PassModel& each : cases_) each.begin_call(to);

    const AdvanceResult result = queue_.advance(
        to, [this](auto& timer) { on_fire(timer); }, operation.limit);

    expect(result.fired == fired_, "fired is not the number of callbacks");
    expect(result.fired <= operation.limit, "fired more than the limit");
    expect(operation.limit != kNoLimit || !result.more, "more without a limit");
    end_call(result);
    is_in_pass_ = result.more;
  }

  void end_call(const AdvanceResult& result) {
    std::vector<PassModel> others;
    for (PassModel& each : cases_) {
      std::optional<PassModel> other = each.end_call(result, queue_.now());
      if (other) others.push_back(*std::move(other));
    }
    for (PassModel& other : others) cases_.push_back(std::move(other));
    drop_refuted();
    drop_equal();
    episode_.ambiguous += cases_.size() > 1 ? 1u : 0u;
  }

  void on_fire(typename Queue::Timer& timer) {
    const std::size_t id = static_cast<NumberedTimer&>(timer).id;
    ++fired_;
    ++episode_.fired;
    for (PassModel& each : cases_) each.fire(id, queue_.now());
    drop_refuted();
    expect(!timer.is_pending(), "pending in its own callback");
    expect(queue_.size() == model().size(), "size() in a callback");
    if (episode_.mismatch) return;
    for (unsigned left = input_->callback_operations(); left > 0; --left) act(input_->operation());
    if (episode_.fired % kCheckEvery == 0) queue_.check_invariants();
  }

  // ---- The model's cases.

  // Any case will do for facts that all cases share.
  const PassModel& model() const { return cases_.front(); }

  void forget(std::size_t id) {
    for (PassModel& each : cases_) each.forget(id);
  }

  void drop_refuted() {
    const auto refuted = [](const PassModel& each) { return each.mismatch() != nullptr; };
    if (std::all_of(cases_.begin(), cases_.end(), refuted)) {
      expect(false, model().mismatch());
    } else {
      std::erase_if(cases_, refuted);
    }
  }

  void drop_equal() {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      for (std::size_t j = cases_.size() - 1; j > i; --j) {
        if (cases_[i] == cases_[j]) cases_.erase(cases_.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  }

  void compare() {
    expect(queue_.size() == model().size() && queue_.empty() == (model().size() == 0), "size()");
    expect(queue_.now() == model().now(), "now() moved by itself");
    const std::optional<Tick> next = queue_.next_wakeup();
    expect(next.has_value() == (model().size() != 0), "next_wakeup() is empty, or is not");
    if (!next) return;
    expect(*next >= queue_.now(), "next_wakeup() is in the past");
    if (model().wants_to_go_on()) {
      expect(*next == queue_.now(), "next_wakeup() is not now() although something waits");
    } else if (const std::optional<Tick> earliest = model().earliest_later()) {
      expect(*next <= *earliest, "next_wakeup() is too late");
    }
  }

  // ---- Ticks.

  static Tick plus(Tick from, Tick delay) { return from + std::min(delay, kLast - from); }

  // The tick at which a timer fires: its deadline, rounded up to a slot. The last possible tick
  // counts as a slot.
  Tick due_at(Tick deadline) const {
    const Tick past_slot = deadline % nature_.slot_width;
    return past_slot == 0 ? deadline : plus(deadline, nature_.slot_width - past_slot);
  }

  Tick anchor_of(Anchor anchor, std::size_t id) {
    switch (anchor) {
      case Anchor::zero:
        return 0;
      case Anchor::now:
        return queue_.now();
      case Anchor::target:
        return target_;
      case Anchor::own_deadline:
        return timer(id).is_pending() ? timer(id).deadline() : target_;
      case Anchor::wakeup:
        return queue_.next_wakeup().value_or(queue_.now());
      case Anchor::earliest:
        return model().earliest_later().value_or(queue_.now());
    }
    return 0;
  }

  Tick tick_of(const When& when, std::size_t id) {
    const Tick anchor = anchor_of(when.anchor, id);
    switch (when.relation) {
      case Relation::after:
        return plus(anchor, when.offset);
      case Relation::before:
        return anchor - std::min(anchor, when.offset);
      case Relation::filled:
        return anchor | when.offset;
    }
    return anchor;
  }

  Queue& queue_;
  QueueNature nature_;
  OperationReader* input_ = nullptr;
  std::vector<PassModel> cases_;  // never empty
  Tick target_;                   // the latest target of an advance
  bool is_in_pass_ = false;
  std::size_t fired_ = 0;  // by the running call
  std::uint64_t orders_ = 0;
  Episode episode_;
  std::vector<std::unique_ptr<NumberedTimer>> timers_;  // destroyed first: timers cancel themselves
};

/// Runs an input on the queue of `Case`.
template <class Case>
Episode run_episode(std::span<const std::uint8_t> bytes) {
  OperationReader input(bytes);
  const EpisodeStart start = input.start();
  auto queue = Case::make(start.tick);
  return TimerQueueRig<typename Case::Queue>(*queue, Case::kNature, start).run(input);
}

/// Runs an input on all queues. Returns the first mismatch and the name of its queue.
template <class... Cases>
std::optional<std::string> find_mismatch(testing::Types<Cases...>,
                                         std::span<const std::uint8_t> bytes) {
  std::optional<std::string> found;
  const auto run = [&](const char* name, const auto& run_one) {
    if (found) return;
    const Episode episode = run_one();
    if (episode.mismatch) found = std::string(name) + ": " + *episode.mismatch;
  };
  (run(Cases::kName, [bytes] { return run_episode<Cases>(bytes); }), ...);
  return found;
}

}  // namespace detent
