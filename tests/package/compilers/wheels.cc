// Compares the wheels with a sorted map over random operations, with any compiler: without
// exceptions, RTTI and libraries, and on processors of 32 bits. The exit status is 0 if they agree.
// tools/compilers compiles and runs it. It is small; the tests in src/wheel/ are the thorough ones.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "detent/dense_wheel.h"
#include "detent/fifo_timer_wheel.h"
#include "detent/member_timer.h"
#include "detent/queues/hashed_wheel.h"
#include "detent/queues/heap_queue.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/list_queue.h"
#include "detent/queues/simple_wheel.h"
#include "detent/queues/tree_queue.h"
#include "detent/timer_wheel.h"
#include "detent/wheel.h"

namespace {

void expect(bool condition, const char* text) {
  if (condition) return;
  std::printf("wrong: %s\n", text);
  std::exit(1);
}

/// SplitMix64, always with the same seed.
class Numbers {
 public:
  std::uint64_t below(std::uint64_t bound) {
    std::uint64_t mixed = state_ += 0x9E37'79B9'7F4A'7C15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58'476D'1CE4'E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EBu;
    return (mixed ^ (mixed >> 31)) % bound;
  }

 private:
  std::uint64_t state_ = 1;
};

constexpr std::uint32_t kTimers = 20'000;

/// A queue whose timers are objects, with the interface of a DenseWheel.
template <class Q>
class Objects {
 public:
  void schedule(std::uint32_t number, detent::Tick deadline) {
    queue_.schedule(timers_[number], deadline);
  }
  void postpone(std::uint32_t number, detent::Tick deadline) {
    queue_.postpone(timers_[number], deadline);
  }
  bool cancel(std::uint32_t number) { return queue_.cancel(timers_[number]); }
  template <class OnFire>
  void advance(detent::Tick now, const OnFire& on_fire) {
    queue_.advance(now, [&](typename Q::Timer& timer) {
      on_fire(static_cast<std::uint32_t>(&timer - timers_.data()));
    });
  }
  auto next_wakeup() const { return queue_.next_wakeup(); }
  std::size_t size() const { return queue_.size(); }
  void check_invariants() const { queue_.check_invariants(); }

 private:
  std::vector<typename Q::Timer> timers_ = std::vector<typename Q::Timer>(kTimers);
  Q queue_;
};

template <class W>
void compare_with_a_map() {
  W wheel;
  std::vector<detent::Tick> deadlines(kTimers, 0);  // 0: not pending
  std::multimap<detent::Tick, std::uint32_t> model;
  const auto remove = [&](std::uint32_t number) {
    if (deadlines[number] == 0) return false;
    auto it = model.find(deadlines[number]);
    while (it->second != number) ++it;
    model.erase(it);
    deadlines[number] = 0;
    return true;
  };
  Numbers random;
  detent::Tick now = 0;
  for (int round = 0; round < 300'000; ++round) {
    const auto number = static_cast<std::uint32_t>(random.below(kTimers));
    const detent::Tick deadline = now + 1 + random.below(std::uint64_t{1} << random.below(40));
    switch (random.below(8)) {
      case 0:
        expect(wheel.cancel(number) == remove(number), "cancel");
        break;
      case 1: {
        now += random.below(std::uint64_t{1} << random.below(24));
        detent::Tick last = 0;
        wheel.advance(now, [&](std::uint32_t fired) {
          expect(deadlines[fired] != 0 && deadlines[fired] <= now, "no timer is early");
          expect(deadlines[fired] >= last, "the order of deadlines");
          last = deadlines[fired];
          remove(fired);
        });
        expect(model.empty() || model.begin()->first > now, "no timer is left");
        break;
      }
      default:
        remove(number);
        if (round % 2 == 0) {
          wheel.schedule(number, deadline);
        } else {
          wheel.postpone(number, deadline);
        }
        deadlines[number] = deadline;
        model.emplace(deadline, number);
    }
    const auto next = wheel.next_wakeup();
    expect(next.has_value() == !model.empty(), "a wake-up for each timer");
    expect(!next || *next <= model.begin()->first, "no late wake-up");
    expect(wheel.size() == model.size(), "size");
  }
  wheel.check_invariants();
}

// Times of std::chrono; here the machine may have no type of 128 bits.
void drive_by_a_clock() {
  using namespace std::chrono_literals;
  detent::Wheel<> wheel;
  detent::Timer timer;
  wheel.schedule_after(timer, 1h);
  const auto left = wheel.time_to_next();
  expect(left && *left > 0s && *left <= 1h + 1ms, "time_to_next");
  wheel.schedule_after(timer, 0s);
  expect(wheel.run_ready({}, [](detent::Timer&) noexcept {}).fired == 1, "run_ready");
}

}  // namespace

int main() {
  compare_with_a_map<detent::DenseWheel>();
  compare_with_a_map<Objects<detent::TimerWheel>>();
  compare_with_a_map<Objects<detent::FifoTimerWheel>>();
  compare_with_a_map<Objects<detent::HeapQueue>>();
  compare_with_a_map<Objects<detent::TreeQueue>>();
  drive_by_a_clock();
  std::puts("the wheels agree with a sorted map");
}
