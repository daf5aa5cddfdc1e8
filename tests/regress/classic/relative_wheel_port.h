// A port of the hierarchical wheel that uses the delay to find the slot, like the extended wheel
// with a level for years, with its bugs. The cases EW_* and KW_003_PARTIAL_SLOT use it. Tests only.
//
// A timer goes to the highest level whose unit fits into its delay, into the slot that is so many
// units after the hand. The wheel keeps the rest of the delay, and places the timer again when the
// hand arrives. It has two bugs. It ignores that a part of the hand's slot has already passed. And
// it assumes that the unit of a level is one turn of the level below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

namespace detent::classic {

class RelativeWheelPort {
 public:
  using Job = std::function<void()>;
  struct LevelShape {
    std::int64_t unit;  // in ticks; delays are divided by it
    std::size_t slots;
  };

  explicit RelativeWheelPort(const std::vector<LevelShape>& shapes) {
    for (const LevelShape& shape : shapes) {
      levels_.push_back({.unit = shape.unit, .slots = std::vector<std::list<Task>>(shape.slots)});
    }
  }

  void add(std::int64_t delay, Job job) { place({delay, std::move(job)}); }

  void run_until(std::int64_t end) {
    while (now_ < end) {
      ++now_;
      step(0);
    }
  }

  std::int64_t now() const { return now_; }

  // For drawings: the levels, and visit(level, slot, rounds, job) for each waiting job.

  std::size_t level_count() const { return levels_.size(); }
  std::size_t slot_count(std::size_t level) const { return levels_.at(level).slots.size(); }
  std::size_t hand(std::size_t level) const { return levels_.at(level).hand; }
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
    std::int64_t left;
    Job job;
  };

  struct Level {
    std::int64_t unit;
    std::vector<std::list<Task>> slots;
    std::size_t hand = 0;
  };

  void place(Task task) {
    std::size_t at = levels_.size();
    while (at > 0 && task.left < levels_[at - 1].unit) --at;
    if (at == 0) {
      task.job();
      return;
    }
    Level& level = levels_[at - 1];
    const auto units = static_cast<std::size_t>(task.left / level.unit);
    task.left %= level.unit;
    level.slots[(level.hand + units) % level.slots.size()].push_back(std::move(task));
  }

  // Moves the hand of a level. At the end of a turn, also moves the hand of the level above.
  void step(std::size_t at) {
    if (at == levels_.size()) return;
    Level& level = levels_[at];
    level.hand = (level.hand + 1) % level.slots.size();
    if (level.hand == 0) step(at + 1);
    for (Task& task : std::exchange(level.slots[level.hand], {})) place(std::move(task));
  }

  std::vector<Level> levels_;
  std::int64_t now_ = 0;
};

}  // namespace detent::classic
