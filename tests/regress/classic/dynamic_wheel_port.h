// A port of the dynamic wheel, which makes levels on demand, with its bugs. The regression cases
// DW_* use it. Tests only.
//
// Each level has `slots` slots and is `slots` times as wide as the level below. A level is made
// when a delay needs it. But the span of a level is a signed product that may wrap. And tickers are
// made only once, for the levels that exist at the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace detent::classic {

class DynamicWheelPort {
 public:
  using Job = std::function<void()>;

  explicit DynamicWheelPort(std::int64_t slots) : slot_count_(slots) { make_level(1); }

  /// Returns the level for a delay; empty where the original searches forever.
  std::optional<std::size_t> level_for(std::int64_t delay) const {
    constexpr std::size_t kForEver = 10'000;
    std::int64_t span = slot_count_;
    for (std::size_t at = 0; at < kForEver; ++at) {
      if (delay < span) return at;
      span = static_cast<std::int64_t>(static_cast<std::uint64_t>(span) *
                                       static_cast<std::uint64_t>(slot_count_));
    }
    return std::nullopt;
  }

  /// Requires: level_for(delay) is not empty.
  void add(std::int64_t delay, Job job) {
    const std::size_t at = level_for(delay).value();
    while (levels_.size() <= at) make_level(levels_.back().unit * slot_count_);
    put(levels_[at], {now_ + delay, std::move(job)});
  }

  void start() { driven_ = levels_.size(); }

  void run_until(std::int64_t end) {
    while (now_ < end) {
      ++now_;
      for (std::size_t at = driven_; at-- > 0;) {
        if (now_ % levels_[at].unit == 0) run_slot(at);
      }
    }
  }

  std::int64_t now() const { return now_; }

  // For drawings: the levels, and visit(level, slot, rounds, job) for each waiting job.

  std::size_t level_count() const { return levels_.size(); }
  std::size_t slot_count(std::size_t level) const { return levels_.at(level).slots.size(); }
  /// A level that is not driven keeps its hand where it is; here it stays at 0.
  std::size_t hand(std::size_t level) const {
    if (level >= driven_) return 0;
    return static_cast<std::size_t>(now_ / levels_.at(level).unit % slot_count_);
  }
  template <class Visit>
  void for_each_job(const Visit& visit) const {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      for (std::size_t slot = 0; slot < slot_count(level); ++slot) {
        for (const Task& task : levels_.at(level).slots[slot]) {
          visit(level, slot, 0, task.job);
        }
      }
    }
  }

 private:
  struct Task {
    std::int64_t deadline;
    Job job;
  };

  struct Level {
    std::int64_t unit;
    std::vector<std::list<Task>> slots;
  };

  void make_level(std::int64_t unit) {
    levels_.push_back(
        {.unit = unit,
         .slots = std::vector<std::list<Task>>(static_cast<std::size_t>(slot_count_))});
  }

  std::list<Task>& slot_at(Level& level, std::int64_t time) const {
    return level.slots[static_cast<std::size_t>(time / level.unit % slot_count_)];
  }

  void put(Level& level, Task task) const {
    slot_at(level, task.deadline).push_back(std::move(task));
  }

  void run_slot(std::size_t at) {
    for (Task& task : std::exchange(slot_at(levels_[at], now_), {})) {
      if (at > 0 && task.deadline > now_) {
        put(levels_[at - 1], std::move(task));
      } else {
        task.job();
      }
    }
  }

  std::int64_t slot_count_;
  std::vector<Level> levels_;
  std::size_t driven_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace detent::classic
