// Baselines: an empty queue, which shows the cost of the benchmark itself, and a sorted map, the
// usual choice of simple programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bench/wheel/bench_queue.h"

namespace detent::bench {

/// An empty queue. Its cost is the cost of the benchmark itself.
class NullQueue {
 public:
  static constexpr QueueLimits kLimits{.fires = false};
  static constexpr std::size_t kObjectBytes = 0;
  explicit NullQueue(const Capacity&) {}
  void schedule(std::uint32_t, Tick) {}
  void cancel(std::uint32_t) {}
  void postpone(std::uint32_t, Tick) {}
  void advance(Tick, Fired&) {}
  std::optional<Tick> next() const { return std::nullopt; }
};

/// std::multimap, with a table of the places of the timers, which a cancel needs.
class MultimapQueue {
 public:
  static constexpr QueueLimits kLimits{};
  static constexpr std::size_t kObjectBytes = sizeof(std::multimap<Tick, std::uint32_t>::iterator);

  explicit MultimapQueue(const Capacity& capacity) : places_(capacity.timers, capacity.pages) {
    for (auto& place : places_.all()) place = timers_.end();
  }
  void schedule(std::uint32_t id, Tick deadline) {
    cancel(id);
    places_[id] = timers_.emplace(deadline, id);
  }
  void cancel(std::uint32_t id) {
    if (places_[id] == timers_.end()) return;
    timers_.erase(places_[id]);
    places_[id] = timers_.end();
  }
  void postpone(std::uint32_t id, Tick deadline) { schedule(id, deadline); }
  void advance(Tick now, Fired& fired) {
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const std::uint32_t id = timers_.begin()->second;
      cancel(id);
      fired(id);
    }
  }
  std::optional<Tick> next() const {
    return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first);
  }

 private:
  std::multimap<Tick, std::uint32_t> timers_;
  PageArray<std::multimap<Tick, std::uint32_t>::iterator> places_;
};

}  // namespace detent::bench
