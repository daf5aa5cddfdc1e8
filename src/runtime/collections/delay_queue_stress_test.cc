// Many producers and consumers use one DelayQueue, with random pauses where the order of steps
// matters. Run this test under ThreadSanitizer.
//
// A lost wake-up does not hang these tests: ManualClock knows when every consumer sleeps. If a due
// element is in the queue at that time, a wake-up was lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "runtime/testing/delay_queue_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// Each call yields up to three times, at random. Thread-safe.
class RandomPauses {
 public:
  explicit RandomPauses(std::uint64_t seed) : seed_(seed) {}
  void pause() noexcept {
    Rng rng(seed_ + calls_.fetch_add(1, std::memory_order_relaxed));
    for (std::uint32_t left = rng.below(4); left > 0; --left) std::this_thread::yield();
  }

 private:
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> calls_ = 0;  // relaxed: the number only selects the random pause
};

// ---- no wake-up is lost -------------------------------------------------------------------------

/// The parameters of one round of the test below.
struct RoundShape {
  std::uint64_t seed;
  int producers;
  int pushes;  // of each producer
};

/// Pushes elements that are due within one microsecond, while time passes through this microsecond.
/// The value of an element is its deadline in nanoseconds.
void push_while_time_passes(DelayQueue<std::int64_t>& queue, WatchedClock& clock,
                            const RoundShape& round) {
  std::vector<std::thread> producers;
  for (int p = 0; p < round.producers; ++p) {
    producers.emplace_back([&queue, &clock, &round, p] {
      Rng rng(round.seed + static_cast<std::uint64_t>(p));
      for (int i = 0; i < round.pushes; ++i) {
        const MonotonicTime deadline = clock.now() + nanoseconds{rng.below(1000)};
        queue.push_at(deadline.time_since_epoch().count(), deadline);
        queue.check_invariants();
      }
    });
  }
  Rng rng(round.seed + 1000);
  for (int step = 0; step < 8; ++step) {
    clock.advance(nanoseconds{rng.below(250)});
    std::this_thread::yield();
  }
  for (std::thread& producer : producers) producer.join();
}

/// The consumers always wait for an element that is one hour ahead, while earlier elements arrive.
void expect_no_lost_wakeup(std::uint64_t seed, int consumer_count) {
  RandomPauses pauses(seed);
  WatchedClock clock([&] { pauses.pause(); });
  DelayQueue<std::int64_t> queue({.clock = &clock});
  queue.push(std::numeric_limits<std::int64_t>::max(), 1h);
  // Some consumers pop with a time limit, so the first consumer in line sometimes leaves without an
  // element.
  Consumers<std::int64_t> consumers(queue, consumer_count, [&](DelayQueue<std::int64_t>& from) {
    pauses.pause();
    return consumer_count % 2 == 0 ? from.pop_for(300ns) : from.pop();
  });
  std::size_t pushed = 0;
  Rng rng(seed);
  for (int i = 0; i < 40; ++i) {
    const RoundShape round{.seed = rng.next(),
                           .producers = 1 + static_cast<int>(rng.below(3)),
                           .pushes = 1 + static_cast<int>(rng.below(4))};
    push_while_time_passes(queue, clock, round);
    pushed += static_cast<std::size_t>(round.producers * round.pushes);
    clock.advance(1us);  // after this, all elements are due
    clock.await_waiters(consumer_count);
    EXPECT_EQ(consumers.taken().size(), pushed) << "an element is due and every consumer sleeps";
    EXPECT_EQ(queue.size(), 1u);
    queue.check_invariants();
  }
  queue.close();
  clock.advance(1h);
}

TEST(DelayQueueStress, NoConsumerSleepsPastAnEarlierElement) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < 16; ++i) {
    expect_no_lost_wakeup(seed + i, 1 + static_cast<int>(i % 4));
    if (testing::Test::HasFailure()) return;
  }
}

// ---- everything at once -------------------------------------------------------------------------

/// An element: its number, and a time before which it must not come out.
struct Item {
  std::uint32_t id = 0;
  MonotonicTime not_before;
};

/// How the queue of a stress run ends.
enum class Ending : std::uint8_t { drain, take_all };

/// Producers and consumers use every way in and out of one bounded queue. Thread-safe.
class Traffic {
 public:
  static constexpr std::uint32_t kProducers = 3;
  static constexpr std::uint32_t kConsumers = 3;
  static constexpr std::uint32_t kItems = 3000;  // of each producer
  static constexpr std::size_t kCapacity = 64;

  Traffic(Clock& clock, std::uint64_t seed)
      : clock_(clock), seed_(seed), queue_({.capacity = kCapacity, .clock = &clock}) {}

  /// Runs until every producer has finished. With `take_all`, runs until a third of the elements
  /// was taken.
  void run(Ending ending) {
    std::vector<std::thread> producers;
    std::vector<std::thread> consumers;
    for (std::uint32_t i = 0; i < kProducers; ++i) {
      producers.emplace_back([this, i] { produce(i); });
    }
    for (std::uint32_t i = 0; i < kConsumers; ++i) {
      consumers.emplace_back([this, i] { consume(i); });
    }
    if (ending == Ending::take_all) {
      while (taken_ < kProducers * kItems / 3) std::this_thread::yield();
      queue_.close();
      for (const Delayed<Item>& left : queue_.take_all()) ++outs_.at(left.value.id);
    }
    for (std::thread& producer : producers) producer.join();
    queue_.close();
    for (std::thread& consumer : consumers) consumer.join();
  }

  void expect_all_accounted_for(Ending ending) const {
    // With take_all, some elements were taken out without a consumer.
    const bool all_consumed = taken_ == pushed_;
    EXPECT_TRUE(all_consumed || ending == Ending::take_all);
    EXPECT_EQ(early_, 0u);
    EXPECT_TRUE(queue_.empty());
    EXPECT_GT(pushed_, 0u);
    for (std::size_t id = 0; id < outs_.size(); ++id) {
      ASSERT_EQ(outs_[id], ins_[id]) << "element " << id;
    }
  }

 private:
  void produce(std::uint32_t producer) {
    Rng rng(seed_ + producer);
    for (std::uint32_t i = 0; i < kItems; ++i) {
      const nanoseconds delay{rng.below(200'000)};
      const Item item{.id = producer * kItems + i, .not_before = clock_.now() + delay};
      if (offer(item, delay, rng) == PushResult::pushed) {
        ++ins_[item.id];
        ++pushed_;
      }
      if (queue_.size() > kCapacity) ADD_FAILURE() << "more than its capacity";
    }
  }

  PushResult offer(const Item& item, nanoseconds delay, Rng& rng) {
    switch (rng.below(4)) {
      case 0:
        return queue_.try_push(item, delay);
      case 1:
        return queue_.push_for(nanoseconds{rng.below(100'000)}, item, delay);
      case 2:
        return queue_.push_at(item, item.not_before);
      default:
        return queue_.push(item, delay);
    }
  }

  void consume(std::uint32_t consumer) {
    Rng rng(seed_ + 1000 + consumer);
    for (;;) {
      const std::optional<Item> item = take(rng);
      if (!item && queue_.is_closed() && queue_.empty()) return;
      if (!item) continue;
      if (clock_.now() < item->not_before) ++early_;
      ++outs_[item->id];
      ++taken_;
      if (rng.below(16) == 0) queue_.check_invariants();
    }
  }

  std::optional<Item> take(Rng& rng) {
    switch (rng.below(4)) {
      case 0:
        return queue_.try_pop();
      case 1:
        return queue_.pop_for(nanoseconds{rng.below(100'000)});
      case 2:
        return queue_.pop_until(clock_.now() + nanoseconds{rng.below(100'000)});
      default:
        return queue_.pop();
    }
  }

  Clock& clock_;
  const std::uint64_t seed_;
  DelayQueue<Item> queue_;
  // Counts per element, and in total. Read after the threads have been joined, except `taken_`.
  std::array<std::atomic<int>, std::size_t{kProducers} * kItems> ins_{};
  std::array<std::atomic<int>, std::size_t{kProducers} * kItems> outs_{};
  std::atomic<std::uint32_t> pushed_ = 0;
  std::atomic<std::uint32_t> taken_ = 0;
  std::atomic<std::uint32_t> early_ = 0;
};

void stress_on_a_manual_clock(std::uint64_t seed, Ending ending) {
  RandomPauses pauses(seed);
  WatchedClock clock([&] { pauses.pause(); });
  Traffic traffic(clock, seed);
  std::atomic<bool> done = false;
  std::thread time([&] {
    Rng rng(seed);
    while (!done) {
      clock.advance(nanoseconds{rng.below(20'000)});
      std::this_thread::yield();
    }
  });
  traffic.run(ending);
  done = true;
  time.join();
  traffic.expect_all_accounted_for(ending);
}

TEST(DelayQueueStress, EveryElementComesOutOnceAndNotEarly) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  stress_on_a_manual_clock(seed, Ending::drain);
}

TEST(DelayQueueStress, EveryElementComesOutOnceWhenClosedInTheMiddle) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < 3; ++i) stress_on_a_manual_clock(seed + i, Ending::take_all);
}

TEST(DelayQueueStress, EveryElementComesOutOnceAndNotEarlyByTheMachinesClock) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  SystemClock clock;
  Traffic traffic(clock, seed);
  traffic.run(Ending::drain);
  traffic.expect_all_accounted_for(Ending::drain);
}

// ---- order --------------------------------------------------------------------------------------

/// An element that was taken out, with a position in an order of events that all threads share.
struct Taken {
  std::uint32_t id;
  std::uint64_t pop_began;
};

/// What a producer records about each element.
struct Pushed {
  MonotonicTime deadline;
  std::uint64_t push_ended = 0;
};

constexpr std::uint32_t kOrderProducers = 3;
constexpr std::uint32_t kOrderItems = 600;  // of each producer

/// Whether `second` should have come before `first`. This is so if `second` was in the queue before
/// the pop of `first` began, and has an earlier deadline. With equal deadlines, it must be an
/// earlier push of the same producer.
bool came_too_late(const Taken& first, const Taken& second, const std::vector<Pushed>& pushed) {
  const Pushed& a = pushed[first.id];
  const Pushed& b = pushed[second.id];
  if (b.push_ended > first.pop_began) return false;
  const bool same_producer = first.id / kOrderItems == second.id / kOrderItems;
  return b.deadline < a.deadline ||
         (b.deadline == a.deadline && same_producer && second.id < first.id);
}

TEST(DelayQueueStress, OneConsumerNeverGetsAnElementWhileAnEarlierOneIsThere) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ManualClock clock;
  DelayQueue<std::uint32_t> queue({.clock = &clock});
  std::atomic<std::uint64_t> events = 0;
  std::vector<Pushed> pushed(kOrderProducers * kOrderItems);
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kOrderProducers; ++p) {
    producers.emplace_back([&, p] {
      Rng rng(seed + p);
      for (std::uint32_t i = 0; i < kOrderItems; ++i) {
        Pushed& mine = pushed[p * kOrderItems + i];
        mine.deadline = clock.now() + nanoseconds{rng.below(50)};
        queue.push_at(p * kOrderItems + i, mine.deadline);
        mine.push_ended = ++events;
      }
    });
  }
  std::vector<Taken> taken;
  std::thread consumer([&] {
    for (;;) {
      const std::uint64_t began = ++events;
      const std::optional<std::uint32_t> id = queue.pop();
      if (!id) return;
      taken.push_back({.id = *id, .pop_began = began});
      if (*id % 8 == 0) clock.advance(nanoseconds{*id % 64});
    }
  });
  for (std::thread& producer : producers) producer.join();
  queue.close();
  while (!queue.empty()) {
    clock.advance(1ns);
    std::this_thread::yield();
  }
  consumer.join();
  ASSERT_EQ(taken.size(), pushed.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    for (std::size_t j = i + 1; j < taken.size(); ++j) {
      ASSERT_FALSE(came_too_late(taken[i], taken[j], pushed)) << taken[j].id;
    }
  }
}

}  // namespace
}  // namespace detent
