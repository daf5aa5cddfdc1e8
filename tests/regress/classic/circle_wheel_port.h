// A port of the hashed wheel with circles, with its bugs (the design of nosixtools/timewheel, and
// of many delay queues with one ring in Go and Java). The regression cases LK_* use it. Tests only.
//
// A task goes into the slot (hand + whole ticks of its delay) % slots, with one circle for each
// further turn. At each tick, the wheel walks through the hand's slot. A task with circles left
// loses one circle. The other tasks run, and periodic tasks are put in again. Then the hand moves.
// Tasks have keys. Callers send their orders to the wheel's loop over a channel; here the channel
// is a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace detent::classic {

class CircleWheelPort {
 public:
  using Job = std::function<void()>;

  /// The number of further runs of a task. kForEver: without end.
  static constexpr int kForEver = -1;
  struct Timing {
    std::int64_t delay_ms;
    int times = 0;  // 0: the task runs once and is not put in again
    std::int64_t created_ms_ago = 0;
  };

  CircleWheelPort(std::size_t slots, std::int64_t tick_ms)
      : tick_seconds_(tick_ms / 1000), slots_(slots) {}

  /// Reports from now on that the wheel is running, but starts no thread.
  void start() { running_ = true; }
  bool is_running() const { return running_; }
  /// Starts the thread that `start` should have started.
  void start_thread() { has_thread_ = true; }

  /// Returns false if the key is taken. Does not see orders that the loop has not carried out yet.
  bool add(const std::string& key, const Timing& timing, Job job) {
    if (records_.contains(key)) return false;
    orders_.emplace_back([this, key, timing, job = std::move(job)]() mutable {
      const Place place = choose(timing);
      insert({key, timing, place, std::move(job)});
    });
    return true;
  }

  /// Returns false if there is no such key. Does not see orders that the loop has not carried out
  /// yet.
  bool remove(const std::string& key) {
    if (!records_.contains(key)) return false;
    orders_.emplace_back([this, key] {
      const auto record = records_.find(key);
      if (record == records_.end()) throw std::logic_error("nil is not a list element");
      slots_[record->second->place.slot].erase(record->second);
      records_.erase(record);
    });
    return true;
  }

  /// Lets time pass until `second`. First carries out all orders.
  void run_until(std::int64_t second) {
    if (!has_thread_) {
      now_ = second;
      return;
    }
    carry_out_orders();
    while (now_ < second) {
      ++now_;
      tick();
    }
  }

  std::int64_t now() const { return now_; }
  /// The number of ticks that would never end.
  int endless_ticks() const { return endless_ticks_; }

  void carry_out_orders() {
    for (const auto& order : std::exchange(orders_, {})) order();
  }

  struct Place {
    std::size_t slot;
    std::int64_t circle;
  };
  struct Task {
    std::string key;
    Timing timing;
    Place place;
    Job job;
  };

  // The two steps of an add without the loop. Tests use them to insert ticks between the steps.

  /// Throws std::domain_error where the original divides by zero.
  Place choose(const Timing& timing) const {
    if (tick_seconds_ == 0) throw std::domain_error("integer divide by zero");
    const std::int64_t delay = timing.delay_ms / 1000;
    const std::int64_t left = delay - timing.created_ms_ago / 1000 % delay;
    const auto ticks = static_cast<std::size_t>(left / tick_seconds_);
    const std::size_t slot = (hand_ + ticks) % slots_.size();
    std::int64_t circle = delay / tick_seconds_ / static_cast<std::int64_t>(slots_.size());
    if (slot == hand_ && circle != 0) --circle;  // the bug: assumes that the hand was here already
    return {slot, circle};
  }

  void insert(Task task) {
    std::list<Task>& slot = slots_[task.place.slot];
    const std::string key = task.key;
    slot.push_back(std::move(task));
    records_[key] = std::prev(slot.end());
  }

  // For drawings: the levels, and visit(level, slot, rounds, job) for each waiting job.

  static std::size_t level_count() { return 1; }
  std::size_t slot_count(std::size_t /*level*/) const { return slots_.size(); }
  std::size_t hand(std::size_t /*level*/) const { return hand_; }
  template <class Visit>
  void for_each_job(const Visit& visit) const {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      for (const Task& task : slots_[slot]) visit(0, slot, task.place.circle, task.job);
    }
  }

 private:
  void tick() {
    constexpr int kForEverInOneTick = 1000;
    std::list<Task>& slot = slots_[hand_];
    int runs = 0;
    for (auto at = slot.begin(); at != slot.end();) {
      if (at->place.circle > 0) {
        --at->place.circle;
        ++at;
        continue;
      }
      at->job();
      const auto next = std::next(at);
      Task task = std::move(*at);
      records_.erase(task.key);
      slot.erase(at);
      at = next;
      if (task.timing.times != 0) put_in_again(std::move(task));
      if (++runs == kForEverInOneTick) {
        ++endless_ticks_;
        break;
      }
    }
    hand_ = (hand_ + 1) % slots_.size();
  }

  void put_in_again(Task task) {
    if (task.timing.times > 0) --task.timing.times;
    task.timing.created_ms_ago = 0;
    task.place = choose(task.timing);
    insert(std::move(task));
  }

  std::int64_t tick_seconds_;
  std::vector<std::list<Task>> slots_;
  std::map<std::string, std::list<Task>::iterator> records_;
  std::vector<std::function<void()>> orders_;
  std::size_t hand_ = 0;
  std::int64_t now_ = 0;
  bool running_ = false;
  bool has_thread_ = false;
  int endless_ticks_ = 0;
};

}  // namespace detent::classic
