// The queues that timers_bench compares, behind one shape.
//
// Timers are named 0 … n − 1. Each queue has schedule, cancel, postpone (to later), advance, which
// calls on_fire(id), and next. All are called through Outlined, so that the compiler treats each as
// a program does whose calls lie in another file, and none is optimised into the loop around it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bench/baseline_heap.h"
#include "detent/timer_wheel.h"

namespace detent::bench {

/// What fired since it was cleared. The callback of every queue does this much work.
struct Fired {
  explicit Fired(std::uint32_t capacity) : ids(capacity) {}

  void operator()(std::uint32_t id) {
    sum += id;
    ids[count++] = id;
  }

  std::vector<std::uint32_t> ids;
  std::size_t count = 0;
  std::uint64_t sum = 0;
};

/// Does nothing: what it costs is the driver.
class NullQueue {
 public:
  static constexpr const char* kName = "null";
  static constexpr bool kFires = false;
  explicit NullQueue(std::uint32_t) {}
  void schedule(std::uint32_t, Tick) {}
  void cancel(std::uint32_t) {}
  void postpone(std::uint32_t, Tick) {}
  void advance(Tick, Fired&) {}
  std::optional<Tick> next() const { return std::nullopt; }
};

/// TimerWheel with timers in an array; the timer's place in it is its number.
class WheelQueue {
 public:
  static constexpr const char* kName = "TimerWheel";
  static constexpr bool kFires = true;
  explicit WheelQueue(std::uint32_t n) : timers_(std::make_unique<Timer[]>(n)) {}
  void schedule(std::uint32_t id, Tick deadline) { wheel_.schedule(timers_[id], deadline); }
  void cancel(std::uint32_t id) { wheel_.cancel(timers_[id]); }
  void postpone(std::uint32_t id, Tick deadline) { wheel_.postpone(timers_[id], deadline); }
  void advance(Tick now, Fired& fired) {
    wheel_.advance(
        now, [&](Timer& timer) { fired(static_cast<std::uint32_t>(&timer - timers_.get())); });
  }
  std::optional<Tick> next() const { return wheel_.next_wakeup(); }

 private:
  TimerWheel wheel_;
  std::unique_ptr<Timer[]> timers_;  // destroyed first, which cancels what is left
};

class HeapQueue {
 public:
  static constexpr const char* kName = "heap";
  static constexpr bool kFires = true;
  explicit HeapQueue(std::uint32_t n) : heap_(n) {}
  void schedule(std::uint32_t id, Tick deadline) { heap_.schedule(id, deadline); }
  void cancel(std::uint32_t id) { heap_.cancel(id); }
  void postpone(std::uint32_t id, Tick deadline) { heap_.schedule(id, deadline); }
  void advance(Tick now, Fired& fired) { heap_.advance(now, fired); }
  std::optional<Tick> next() const { return heap_.next(); }

 private:
  IndexedHeap heap_;
};

class MultimapQueue {
 public:
  static constexpr const char* kName = "multimap";
  static constexpr bool kFires = true;
  explicit MultimapQueue(std::uint32_t n) : places_(n, timers_.end()) {}
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
  std::vector<std::multimap<Tick, std::uint32_t>::iterator> places_;
};

/// A queue whose operations are not inlined, nor left out when they do nothing.
template <class Queue>
class Outlined {
 public:
  explicit Outlined(std::uint32_t n) : queue_(n) {}
  static constexpr bool kFires = Queue::kFires;

  [[gnu::noinline]] void schedule(std::uint32_t id, Tick deadline) {
    keep_call();
    queue_.schedule(id, deadline);
  }
  [[gnu::noinline]] void cancel(std::uint32_t id) {
    keep_call();
    queue_.cancel(id);
  }
  [[gnu::noinline]] void postpone(std::uint32_t id, Tick deadline) {
    keep_call();
    queue_.postpone(id, deadline);
  }
  [[gnu::noinline]] void advance(Tick now, Fired& fired) {
    keep_call();
    queue_.advance(now, fired);
  }
  [[gnu::noinline]] std::optional<Tick> next() const {
    keep_call();
    return queue_.next();
  }

 private:
  static void keep_call() { asm volatile("" ::: "memory"); }

  Queue queue_;
};

}  // namespace detent::bench
