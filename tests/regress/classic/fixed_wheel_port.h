// A port of the fixed wheel of 60 seconds, 60 minutes and 24 hours with rounds, with its bugs. The
// regression cases HW_* use it. Tests only.
//
// The delay alone decides the level. The slot is (hand + whole units of the delay) % slots, with
// one round for each further turn. Every level runs the slot of its own hand, and then moves the
// hand. No timer moves to another level, except with `Promotion::to_seconds`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <utility>
#include <vector>

namespace detent::classic {

/// What a level does with a due slot: the code path for single tasks, or the code path for batches,
/// which drops tasks that have rounds left.
enum class SlotPath : std::uint8_t { single, batch };

/// Whether a due minute slot runs its tasks, or moves them to the seconds level for the rest of
/// their delays.
enum class Promotion : std::uint8_t { none, to_seconds };

class FixedWheelPort {
 public:
  using Job = std::function<void()>;

  explicit FixedWheelPort(SlotPath path = SlotPath::single, Promotion promotion = Promotion::none)
      : path_(path), promotion_(promotion) {}

  /// A delay of more than a day fits no level. The task is dropped without an error.
  void add(int id, std::int64_t delay_seconds, Job job) {
    for (std::size_t at = 0; at < levels_.size(); ++at) {
      const Level& level = levels_.at(at);
      const std::int64_t span = level.unit * level.slot_count();
      // The last level also accepts a delay of its whole span.
      if (delay_seconds >= span + (at + 1 == levels_.size() ? 1 : 0)) continue;
      const std::size_t slot = put(at, delay_seconds, {id, 0, delay_seconds, std::move(job)});
      places_[id] = {at, slot};
      return;
    }
  }

  /// Returns false if the task is no longer in its first slot.
  bool cancel(int id) {
    const auto place = places_.find(id);
    if (place == places_.end()) return false;
    std::list<Task>& slot = levels_.at(place->second.first).slots.at(place->second.second);
    return slot.remove_if([id](const Task& task) { return task.id == id; }) > 0;
  }

  /// Every start makes another ticker.
  void start() { ++tickers_; }

  void run_until(std::int64_t second) {
    while (now_ < second) {
      ++now_;
      for (int ticker = 0; ticker < tickers_; ++ticker) tick();
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
          visit(level, slot, task.rounds, task.job);
        }
      }
    }
  }

 private:
  struct Task {
    int id;
    std::int64_t rounds;
    std::int64_t delay;
    Job job;
  };

  struct Level {
    std::int64_t unit;  // seconds per slot
    std::vector<std::list<Task>> slots;
    std::size_t hand = 0;

    std::int64_t slot_count() const { return static_cast<std::int64_t>(slots.size()); }
  };

  std::size_t put(std::size_t at, std::int64_t delay, Task task) {
    Level& level = levels_.at(at);
    const std::int64_t units = delay / level.unit;
    const std::size_t slot = (level.hand + static_cast<std::size_t>(units)) % level.slots.size();
    task.rounds = units / level.slot_count();
    level.slots[slot].push_back(std::move(task));
    return slot;
  }

  void tick() {
    ++ticks_;
    for (std::size_t at = levels_.size(); at-- > 0;) {
      if (ticks_ % levels_.at(at).unit == 0) run_slot(at);
    }
  }

  void run_slot(std::size_t at) {
    Level& level = levels_.at(at);
    std::list<Task> due = std::exchange(level.slots[level.hand], {});
    for (Task& task : due) {
      if (task.rounds > 0) {
        --task.rounds;
        if (path_ == SlotPath::single) level.slots[level.hand].push_back(std::move(task));
      } else if (at == 1 && promotion_ == Promotion::to_seconds) {
        const std::int64_t left = task.delay % level.unit;
        put(0, left, std::move(task));
      } else {
        task.job();
      }
    }
    level.hand = (level.hand + 1) % level.slots.size();
  }

  static Level make_level(std::int64_t unit, std::size_t slots) {
    return {.unit = unit, .slots = std::vector<std::list<Task>>(slots)};
  }

  SlotPath path_;
  Promotion promotion_;
  std::array<Level, 3> levels_{make_level(1, 60), make_level(60, 60), make_level(3600, 24)};
  std::map<int, std::pair<std::size_t, std::size_t>> places_;  // level and slot of each id
  std::int64_t now_ = 0;
  std::int64_t ticks_ = 0;
  int tickers_ = 0;
};

/// How this wheel runs tasks: it hands a fired task to a new thread, and gives the task back to its
/// pool immediately, before the thread has run it.
class PooledTasksPort {
 public:
  using Job = std::function<void()>;
  struct Task {
    Job job;
  };

  Task& make(Job job) {
    if (free_.empty()) {
      free_.push_back(&tasks_.emplace_back());
    }
    Task& task = *free_.back();
    free_.pop_back();
    task.job = std::move(job);
    return task;
  }

  void fire(Task& task) {
    handed_over_.push_back(&task);
    task.job = nullptr;
    free_.push_back(&task);
  }

  /// Runs the threads. Returns how many found a task without a job. In this case, the original
  /// crashes.
  int run_handed_over() {
    int without_job = 0;
    for (const Task* task : std::exchange(handed_over_, {})) {
      if (task->job) {
        task->job();
      } else {
        ++without_job;
      }
    }
    return without_job;
  }

 private:
  std::list<Task> tasks_;
  std::vector<Task*> free_;
  std::vector<const Task*> handed_over_;
};

}  // namespace detent::classic
