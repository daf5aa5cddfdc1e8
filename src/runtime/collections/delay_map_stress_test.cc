// Many threads use one DelayMap while time passes and a scheduler expires entries on other threads.
// Run this test under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/test_seed.h"
#include "detent/delay_map.h"
#include "detent/executor.h"
#include "detent/scheduler.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::uint32_t kThreads = 6;
constexpr std::uint32_t kSteps = 3000;  // of each thread
constexpr int kSharedKeys = 40;         // keys that all threads use
constexpr int kOwnKeys = 1000;          // the first of the keys that belong to one thread each

/// Counts the objects that exist.
class Token {
 public:
  explicit Token(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
  Token(const Token& other) : Token(*other.alive_) {}
  Token& operator=(const Token&) = default;  // both use the same counter
  ~Token() { --*alive_; }

 private:
  std::atomic<int>* alive_;
};

/// A value: its number, and a time before which it must not expire, whichever thread touches it.
struct Item {
  std::uint32_t serial = 0;
  MonotonicTime not_before;
  Token token;
};

enum class Drive : std::uint8_t { by_calls, by_scheduler };

/// Threads use shared keys at random, and their own keys in ways that have one correct result.
/// Thread-safe.
class Traffic {
 public:
  Traffic(std::uint64_t seed, Drive drive)
      : seed_(seed),
        scheduler_({.clock = &clock_, .executor = &pool_}),
        map_(std::make_unique<Map>(DelayMapOptions<int, Item>{
            .on_expire = [this](int key, Item& item) { on_expire(key, item); },
            .capacity = 200,
            .resolution = 1us,
            .clock = &clock_,
            .scheduler = drive == Drive::by_scheduler ? &scheduler_ : nullptr})) {}

  void run() {
    std::atomic<bool> done = false;
    std::thread time([&] {
      Rng rng(seed_);
      while (!done) {
        clock_.advance(nanoseconds{rng.below(20'000)});
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i] { work(i); });
    }
    for (std::thread& thread : threads) thread.join();
    map_->check_invariants();
    map_.reset();  // while time passes and entries expire
    done = true;
    time.join();
  }

  void expect_all_accounted_for() const {
    EXPECT_EQ(alive_, 0);
    EXPECT_EQ(early_, 0);
    EXPECT_GT(expired_, 0);
    for (const std::atomic<int>& ends : ends_) ASSERT_LE(ends, 1);
  }

 private:
  using Map = DelayMap<int, Item>;
  static constexpr nanoseconds kMostTtl = 200us;

  void on_expire(int key, const Item& item) {
    if (clock_.now() < item.not_before) ++early_;
    ++ends_.at(item.serial);
    ++expired_;
    if (item.serial % 8 == 0) watched_->touch((key + 1) % kSharedKeys, kMostTtl);
  }

  Item make_item(std::uint32_t serial, nanoseconds ttl) {
    return {.serial = serial, .not_before = clock_.now() + ttl, .token = Token(alive_)};
  }

  void work(std::uint32_t thread) {
    Rng rng(seed_ + 1 + thread);
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      const std::uint32_t serial = 3 * (thread * kSteps + i);
      do_anything(serial, rng);
      const int own_key = kOwnKeys + static_cast<int>(thread);
      expect_visible_until_the_deadline(own_key, serial + 1, rng);
      expect_set_again_stays(own_key, serial + 2, rng);
    }
  }

  void do_anything(std::uint32_t serial, Rng& rng) {
    const int key = static_cast<int>(rng.below(kSharedKeys));
    const nanoseconds ttl{rng.below(static_cast<std::uint32_t>(kMostTtl.count()))};
    switch (rng.below(12)) {
      case 0:
      case 1:
      case 2:
        map_->insert_or_assign(key, make_item(serial, ttl), ttl);
        return;
      case 3:
      case 4:
        static_cast<void>(map_->insert(key, make_item(serial, ttl), ttl));
        return;
      case 5:
        map_->touch(key, kMostTtl);  // never earlier than the present deadline
        return;
      case 6:
        if (const std::optional<Item> taken = map_->take(key)) ++ends_.at(taken->serial);
        return;
      case 7:
        map_->erase(key);
        return;
      case 8:
        EXPECT_LE(map_->size(), kSharedKeys + kThreads);
        return;
      case 9:
        if (serial % 16 == 0) map_->expire();
        return;
      default:
        map_->with(key, [](Item& item) { item.not_before -= 1ns; });
    }
  }

  // Uses a key of this thread only: the key must exist before its deadline, and not after.
  void expect_visible_until_the_deadline(int key, std::uint32_t serial, Rng& rng) {
    const nanoseconds ttl{rng.below(20'000)};
    const MonotonicTime before = clock_.now();
    map_->insert_or_assign(key, make_item(serial, 0ns), ttl);
    // The deadline is between `before + ttl` and `after + ttl`.
    const MonotonicTime after = clock_.now();
    for (int i = 0; i < 3; ++i) {
      const MonotonicTime before_look = clock_.now();
      if (map_->contains(key)) {
        EXPECT_LT(before_look, after + ttl);
      } else {
        EXPECT_GE(clock_.now(), before + ttl);
      }
    }
  }

  // An earlier deadline of a key must not end its new value.
  void expect_set_again_stays(int key, std::uint32_t serial, Rng& rng) {
    const nanoseconds for_ever = 24h;
    const InsertResult result = map_->insert_or_assign(key, make_item(serial, for_ever), for_ever);
    EXPECT_NE(result, InsertResult::full);
    if (rng.below(2) == 0) std::this_thread::yield();
    const std::optional<Item> found = map_->get(key);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->serial, serial);
    if (rng.below(4) == 0) {
      EXPECT_TRUE(map_->erase(key));
    }
  }

  const std::uint64_t seed_;
  ManualClock clock_;
  ThreadPool pool_{{.threads = 2, .capacity = 16}};
  Scheduler scheduler_;
  std::atomic<int> alive_ = 0;
  std::atomic<int> early_ = 0;
  std::atomic<int> expired_ = 0;
  // How often each item was passed to on_expire or taken out.
  std::array<std::atomic<int>, std::size_t{3} * kThreads * kSteps> ends_{};
  std::unique_ptr<Map> map_;
  Map* const watched_ = map_.get();  // used by callbacks while the destructor waits for them
};

void stress(Drive drive) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto traffic = std::make_unique<Traffic>(seed + i, drive);
    traffic->run();
    traffic->expect_all_accounted_for();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DelayMapStress, EveryEntryEndsOnceAndNotEarlyByCalls) { stress(Drive::by_calls); }
TEST(DelayMapStress, EveryEntryEndsOnceAndNotEarlyByAScheduler) { stress(Drive::by_scheduler); }

/// Threads insert entries with random deadlines within a microsecond, while time passes through
/// this microsecond. Afterwards every entry is due and no thread calls the map, so only wake-ups
/// can expire the entries.
TEST(DelayMapStress, NoWakeupIsLost) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ManualClock clock;
  Scheduler scheduler({.resolution = 1ns, .clock = &clock});
  std::atomic<std::size_t> expired = 0;
  DelayMap<std::uint64_t, int> map({.on_expire = [&](std::uint64_t, int) { ++expired; },
                                    .resolution = 1ns,
                                    .scheduler = &scheduler});
  std::size_t inserted = 0;
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, key = 4 * round + i] {
        Rng rng(seed + key);
        map.insert_or_assign(key, 0, nanoseconds{rng.below(1000)});
        map.touch(key, nanoseconds{rng.below(1000)});
      });
    }
    Rng rng(seed + round);
    for (int step = 0; step < 4; ++step) clock.advance(nanoseconds{rng.below(500)});
    for (std::thread& thread : threads) thread.join();
    inserted += threads.size();
    clock.advance(1us);
    clock.await_waiters(1);
    ASSERT_EQ(expired, inserted) << "the driver sleeps, and something is due";
  }
}

/// Maps are destroyed while their wake-ups run on a pool, many times.
TEST(DelayMapStress, EndsSafelyWhileItIsBeingWoken) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ManualClock clock;
  ThreadPool pool({.threads = 3});
  Scheduler scheduler({.resolution = 1ns, .clock = &clock, .executor = &pool});
  Rng rng(seed);
  for (int round = 0; round < 1000; ++round) {
    std::atomic<bool> is_over = false;
    std::atomic<int> late = 0;
    {
      DelayMap<int, int> map({.on_expire =
                                  [&](int, int) {
                                    if (is_over) ++late;
                                  },
                              .resolution = 1ns,
                              .scheduler = &scheduler});
      for (int i = 0; i < 8; ++i) map.insert_or_assign(i, i, nanoseconds{rng.below(100)});
      for (std::uint32_t i = rng.below(4); i > 0; --i) {
        clock.advance(nanoseconds{rng.below(50)});
        std::this_thread::yield();
      }
    }
    is_over = true;
    ASSERT_EQ(late, 0);
  }
}

}  // namespace
}  // namespace detent
