// Compares DelayMap with a sorted map in random steps. Every result, every size and every call of
// on_expire must be equal, exact to the nanosecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/delay_map.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using std::chrono::nanoseconds;
using Expired = std::vector<std::pair<int, int>>;

/// The behaviour of DelayMap, in the simplest possible code.
class Model {
 public:
  explicit Model(std::size_t capacity) : capacity_(capacity) {}

  void advance(nanoseconds delta) {
    now_ += delta;
    expire();
  }

  InsertResult put(int key, int value, nanoseconds ttl, internal::Existing existing) {
    const auto found = entries_.find(key);
    const bool is_there = found != entries_.end();
    if (is_there && existing == internal::Existing::keep) return InsertResult::present;
    if (!is_there && entries_.size() >= capacity_) return InsertResult::full;
    entries_[key] = {.value = value, .deadline = now_ + ttl};
    expire();
    return is_there ? InsertResult::assigned : InsertResult::inserted;
  }

  bool touch(int key, nanoseconds ttl) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    found->second.deadline = now_ + ttl;
    expire();
    return true;
  }

  std::optional<int> get(int key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional<int>(found->second.value);
  }

  bool erase(int key) { return entries_.erase(key) == 1; }
  void clear() { entries_.clear(); }
  std::size_t size() const { return entries_.size(); }
  const Expired& expired() const { return expired_; }

 private:
  struct Entry {
    int value = 0;
    nanoseconds deadline{};
  };

  void expire() {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.deadline > now_) {
        ++it;
        continue;
      }
      expired_.emplace_back(it->first, it->second.value);
      it = entries_.erase(it);
    }
  }

  const std::size_t capacity_;
  nanoseconds now_{};
  std::map<int, Entry> entries_;
  Expired expired_;
};

enum class Drive : std::uint8_t { by_calls, by_scheduler };

/// Makes the same calls on a map and on its model, and compares them.
class Comparison {
 public:
  Comparison(std::uint64_t seed, Drive drive)
      : rng_(seed),
        capacity_(1 + rng_.below(48)),
        model_(capacity_),
        map_({.on_expire = [this](int key, int value) { expired_.emplace_back(key, value); },
              .capacity = capacity_,
              .resolution = nanoseconds{1 + rng_.below(3'000'000)},
              .clock = &rig_.clock(),
              .scheduler = drive == Drive::by_scheduler ? &rig_.scheduler() : nullptr}) {}

  void step() {
    const int key = static_cast<int>(rng_.below(64));
    const int value = ++last_value_;
    switch (rng_.below(16)) {
      case 0:
      case 1:
      case 2:
        return compare_put(key, value, internal::Existing::replace);
      case 3:
      case 4:
        return compare_put(key, value, internal::Existing::keep);
      case 5:
      case 6: {
        const nanoseconds ttl = any_ttl();
        return compare(map_.touch(key, ttl), model_.touch(key, ttl));
      }
      case 7:
        compare(map_.take(key), model_.get(key));
        return static_cast<void>(model_.erase(key));
      case 8:
        return compare(map_.erase(key), model_.erase(key));
      case 9:
        return compare(map_.size(), model_.size());
      case 10:
        return compare_expired();
      case 11:
        if (rng_.below(64) != 0) return;
        map_.clear();
        return model_.clear();
      case 12:
      case 13:
        return compare(map_.get(key), model_.get(key));
      default:
        return advance(any_ttl());
    }
  }

  void check() {
    rig_.settle();
    map_.check_invariants();
  }

  /// Checks that on_expire was called exactly once for each expired entry.
  void compare_expired() {
    map_.expire();
    rig_.settle();
    Expired wanted = model_.expired();
    std::ranges::sort(wanted);
    std::ranges::sort(expired_);
    EXPECT_EQ(expired_, wanted);
  }

 private:
  /// A random TTL of any order of magnitude, so that all levels of the wheel are used. Often zero.
  nanoseconds any_ttl() { return nanoseconds{rng_.next() >> (20 + rng_.below(44))}; }

  template <class T>
  static void compare(const T& is, const T& should_be) {
    EXPECT_EQ(is, should_be);
  }

  void compare_put(int key, int value, internal::Existing existing) {
    const nanoseconds ttl = any_ttl();
    const InsertResult result = existing == internal::Existing::replace
                                    ? map_.insert_or_assign(key, value, ttl)
                                    : map_.insert(key, value, ttl);
    compare(result, model_.put(key, value, ttl, existing));
  }

  void advance(nanoseconds delta) {
    rig_.advance(delta);
    model_.advance(delta);
  }

  Rng rng_;
  SchedulerRig rig_;
  const std::size_t capacity_;
  Model model_;
  Expired expired_;
  int last_value_ = 0;
  DelayMap<int, int> map_;
};

void expect_no_mismatch(Drive drive, int runs, int steps) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (int run = 0; run < test_rounds(runs); ++run) {
    Comparison comparison(seed + static_cast<std::uint64_t>(run), drive);
    for (int i = 0; i < steps; ++i) {
      comparison.step();
      comparison.check();
      if (testing::Test::HasFailure()) return;
    }
    comparison.compare_expired();
  }
}

TEST(DelayMapModel, AnswersAsASortedMapDoes) { expect_no_mismatch(Drive::by_calls, 40, 4000); }

TEST(DelayMapModel, AnswersAsASortedMapDoesWithAScheduler) {
  expect_no_mismatch(Drive::by_scheduler, 20, 2000);
}

}  // namespace
}  // namespace detent
