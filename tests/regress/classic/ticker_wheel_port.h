// A port of the simple wheel that many tutorials build, with its bugs: one ring of slots, a ticker
// and a hand. The regression cases SW_* use it. Tests only.
//
// A timer goes into the slot (hand + whole ticks of its delay) % slots. At each tick, the wheel
// runs the hand's slot, and then moves the hand. Ticks come over a channel that holds one tick.
// While a job keeps the wheel busy, further ticks are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace detent::classic {

class TickerWheelPort {
 public:
  /// Returns the duration of the job in milliseconds.
  using Job = std::function<std::int64_t()>;

  TickerWheelPort(std::size_t slots, std::int64_t tick_ms) : tick_ms_(tick_ms), slots_(slots) {}

  void add(std::int64_t delay_ms, Job job) {
    const auto ticks = static_cast<std::size_t>(delay_ms / tick_ms_);
    slots_[(hand_ + ticks) % slots_.size()].push_back(std::move(job));
  }

  /// Lets time pass until `end_ms`. While a job runs, one tick waits and further ticks are dropped.
  void run_until(std::int64_t end_ms) {
    for (; next_tick_ms_ <= end_ms; next_tick_ms_ += tick_ms_) {
      if (tick_held_ && free_at_ms_ <= next_tick_ms_) {
        tick_held_ = false;
        now_ms_ = free_at_ms_;
        take_tick();
      }
      if (free_at_ms_ <= next_tick_ms_) {
        now_ms_ = next_tick_ms_;
        take_tick();
      } else {
        dropped_ += tick_held_ ? 1 : 0;
        tick_held_ = true;
      }
    }
    now_ms_ = end_ms;
  }

  std::int64_t now_ms() const { return now_ms_; }
  int dropped_ticks() const { return dropped_; }

  // The steps of a tick. Tests use them to insert an add between them.

  const std::vector<Job>& hands_slot() const { return slots_[hand_]; }
  void clear_hands_slot_and_step() {
    slots_[hand_].clear();
    hand_ = (hand_ + 1) % slots_.size();
  }

  // For drawings: the levels, and visit(level, slot, rounds, job) for each waiting job.

  static std::size_t level_count() { return 1; }
  std::size_t slot_count(std::size_t /*level*/) const { return slots_.size(); }
  std::size_t hand(std::size_t /*level*/) const { return hand_; }
  template <class Visit>
  void for_each_job(const Visit& visit) const {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      for (const Job& job : slots_[slot]) visit(0, slot, 0, job);
    }
  }

 private:
  void take_tick() {
    const std::vector<Job> due = hands_slot();
    for (const Job& job : due) free_at_ms_ = now_ms_ + job();
    clear_hands_slot_and_step();
  }

  std::int64_t tick_ms_;
  std::vector<std::vector<Job>> slots_;
  std::size_t hand_ = 0;
  std::int64_t now_ms_ = 0;
  std::int64_t next_tick_ms_ = tick_ms_;
  std::int64_t free_at_ms_ = 0;
  bool tick_held_ = false;
  int dropped_ = 0;
};

}  // namespace detent::classic
