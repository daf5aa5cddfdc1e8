// DelayMap on a clock that the test moves: how long entries are visible, which arguments on_expire
// gets, and when keys and values are moved or destroyed. delay_map_wakeup_test.cc tests it with a
// scheduler.
#include "detent/delay_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "detent/simulation.h"
#include "runtime/testing/delay_map_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

// ---- visible entries ----------------------------------------------------------------------------

TEST(DelayMap, ShowsAnEntryUntilItsDeadlineAndNotANanosecondLonger) {
  ManualClock clock;
  DelayMap<std::string, int> map({.clock = &clock});
  EXPECT_EQ(map.insert_or_assign("user:42", 7, 5min), InsertResult::inserted);
  clock.advance(5min - 1ns);
  EXPECT_EQ(map.get("user:42"), 7);
  EXPECT_EQ(map.size(), 1u);
  clock.advance(1ns);
  EXPECT_EQ(map.get("user:42"), std::nullopt);
  EXPECT_FALSE(map.contains("user:42"));
  EXPECT_FALSE(map.with("user:42", [](int) { FAIL(); }));
  EXPECT_FALSE(map.touch("user:42", 1h));
  EXPECT_FALSE(map.erase("user:42"));
  EXPECT_EQ(map.take("user:42"), std::nullopt);
  EXPECT_TRUE(map.empty());
}

// A common bug of timers per key: the first timer deletes a newer entry with the same key.
TEST(DelayMap, KeepsAKeyThatWasSetAgainBeyondItsFirstDeadline) {
  ManualClock clock;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .clock = &clock});
  map.insert_or_assign(1, 10, 1s);
  clock.advance(500ms);
  EXPECT_EQ(map.insert_or_assign(1, 11, 10s), InsertResult::assigned);
  map.insert_or_assign(2, 20, 1s);
  map.erase(2);
  map.insert_or_assign(2, 21, 10s);
  clock.advance(9s);
  map.expire();
  EXPECT_EQ(map.get(1), 11);
  EXPECT_EQ(map.get(2), 21);
  EXPECT_TRUE(expired.empty());
  clock.advance(1s);
  map.expire();
  std::ranges::sort(expired);
  EXPECT_EQ(expired, (Expired{{1, 11}, {2, 21}}));
}

TEST(DelayMap, EndsAKeyThatWasSetAgainAtAnEarlierDeadline) {
  ManualClock clock;
  DelayMap<int, int> map({.clock = &clock});
  map.insert_or_assign(1, 10, 1h);
  map.insert_or_assign(1, 11, 1s);
  clock.advance(1s);
  EXPECT_FALSE(map.contains(1));
}

TEST(DelayMap, InsertsOnlyWhereThereIsNoLiveEntry) {
  ManualClock clock;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .clock = &clock});
  EXPECT_EQ(map.insert(1, 10, 1s), InsertResult::inserted);
  EXPECT_EQ(map.insert(1, 11, 1h), InsertResult::present);
  EXPECT_EQ(map.get(1), 10);
  clock.advance(1s);
  EXPECT_EQ(map.insert(1, 12, 1s), InsertResult::inserted);
  EXPECT_EQ(map.get(1), 12);
  EXPECT_EQ(expired, (Expired{{1, 10}})) << "it expired, though its key was set again";
}

TEST(DelayMap, TouchMovesTheDeadlineToLaterAndToEarlier) {
  ManualClock clock;
  DelayMap<int, int> map({.clock = &clock});
  map.insert_or_assign(1, 10, 5min);
  map.insert_or_assign(2, 20, 5min);
  clock.advance(1min);
  EXPECT_TRUE(map.touch(1, 10min));
  EXPECT_TRUE(map.touch(2, 1min));
  EXPECT_FALSE(map.touch(3, 1min));
  clock.advance(1min);
  EXPECT_TRUE(map.contains(1));
  EXPECT_FALSE(map.contains(2));
  clock.advance(9min - 1ns);
  EXPECT_TRUE(map.contains(1));
  clock.advance(1ns);
  EXPECT_FALSE(map.contains(1));
}

TEST(DelayMap, TreatsNonPositiveTtlsAsExpiredAndTooLongTtlsAsForever) {
  ManualClock clock;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .clock = &clock});
  map.insert_or_assign(1, 10, 1h);
  EXPECT_EQ(map.insert_or_assign(1, 11, 0s), InsertResult::assigned);
  map.insert_or_assign(2, 20, std::chrono::hours::min());
  map.insert_or_assign(3, 30, std::chrono::hours::max());
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.expire(), 0u) << "the calls before did";
  std::ranges::sort(expired);
  EXPECT_EQ(expired, (Expired{{1, 11}, {2, 20}}));
  clock.advance(200 * 365 * 24h);
  EXPECT_TRUE(map.contains(3));
}

TEST(DelayMap, TakesErasesAndChangesTheLiveValue) {
  ManualClock clock;
  DelayMap<std::string, std::unique_ptr<int>> map({.clock = &clock});
  map.insert_or_assign("a", std::make_unique<int>(1), 1s);
  map.insert_or_assign("b", std::make_unique<int>(2), 1s);
  EXPECT_TRUE(map.with("a", [](std::unique_ptr<int>& value) { *value = 42; }));
  const std::optional<std::unique_ptr<int>> taken = map.take("a");
  ASSERT_TRUE(taken);
  EXPECT_EQ(**taken, 42);
  EXPECT_FALSE(map.contains("a"));
  EXPECT_TRUE(map.erase(std::string("b")));
  EXPECT_FALSE(map.erase(std::string_view("b")));
}

TEST(DelayMap, ClearErasesLiveEntriesAndLeavesExpiredEntriesToOnExpire) {
  ManualClock clock;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .clock = &clock});
  for (int i = 0; i < 100; ++i) map.insert_or_assign(i, i, i < 50 ? 1s : 1h);
  clock.advance(1s);
  map.clear();
  map.check_invariants();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(expired.size(), 50u);
  EXPECT_EQ(map.insert(99, 1, 1s), InsertResult::inserted);
}

TEST(DelayMap, RefusesANewKeyWhenFullOfLiveEntries) {
  ManualClock clock;
  DelayMap<int, std::unique_ptr<int>> map({.capacity = 2, .clock = &clock});
  map.insert_or_assign(1, nullptr, 1s);
  map.insert_or_assign(2, nullptr, 1h);
  std::array<std::unique_ptr<int>, 3> values;
  for (std::unique_ptr<int>& value : values) value = std::make_unique<int>(3);
  EXPECT_EQ(map.insert(3, std::move(values[0]), 1h), InsertResult::full);
  EXPECT_EQ(map.insert_or_assign(3, std::move(values[1]), 1h), InsertResult::full);
  EXPECT_EQ(map.insert(2, std::move(values[2]), 1h), InsertResult::present);
  for (const std::unique_ptr<int>& value : values) {
    EXPECT_NE(value, nullptr) << "a refused rvalue is left to its owner";
  }
  EXPECT_EQ(map.insert_or_assign(2, nullptr, 1h), InsertResult::assigned);
  clock.advance(1s);
  EXPECT_EQ(map.insert(3, nullptr, 1h), InsertResult::inserted);
}

/// Puts all keys into one bucket.
struct SameHash {
  std::size_t operator()(int) const noexcept { return 7; }
};

TEST(DelayMap, DistinguishesKeysWithTheSameHash) {
  ManualClock clock;
  DelayMap<int, int, SameHash> map({.clock = &clock});
  for (int i = 0; i < 20; ++i) map.insert_or_assign(i, i, 1h);
  for (int i = 0; i < 20; i += 3) EXPECT_TRUE(map.erase(i));
  map.check_invariants();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(map.contains(i), i % 3 != 0);
}

// ---- expired entries ----------------------------------------------------------------------------

TEST(DelayMap, ReportsExpiredEntriesByDeadlineAndLetsTheValueBeMovedOut) {
  ManualClock clock;
  std::vector<std::unique_ptr<int>> values;
  DelayMap<int, std::unique_ptr<int>> map(
      {.on_expire = [&](int, std::unique_ptr<int>& v) { values.push_back(std::move(v)); },
       .clock = &clock});
  for (const int delay : {3, 1, 2, 9}) {
    map.insert_or_assign(delay, std::make_unique<int>(delay), std::chrono::seconds{delay});
  }
  clock.advance(5s);
  EXPECT_EQ(map.expire(), 3u);
  ASSERT_EQ(values.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*values[static_cast<std::size_t>(i)], i + 1);
}

TEST(DelayMap, MayBeUsedInsideOnExpire) {
  ManualClock clock;
  DelayMap<int, int>* self = nullptr;
  DelayMap<int, int> map({.on_expire =
                              [&](int key, int value) {
                                EXPECT_FALSE(self->contains(key));
                                self->insert_or_assign(key, value + 1, 1s);
                              },
                          .clock = &clock});
  self = &map;
  map.insert_or_assign(1, 10, 1s);
  for (int i = 1; i <= 3; ++i) {
    clock.advance(1s);
    EXPECT_EQ(map.expire(), 1u);
    EXPECT_EQ(map.get(1), 10 + i);
  }
}

TEST(DelayMap, GivesMemoryBackThroughLaterCallsAFewEntriesEach) {
  ManualClock clock;
  const auto owner = std::make_shared<int>(1);
  DelayMap<int, std::shared_ptr<int>> map({.clock = &clock});
  for (int i = 0; i < 10'000; ++i) map.insert_or_assign(i, owner, std::chrono::seconds{i % 60});
  clock.advance(1min);
  auto held = owner.use_count();
  for (int i = 0; held > 1; ++i) {
    ASSERT_LT(i, 4000) << "held: " << held;
    map.contains(0);
    ASSERT_LE(held - owner.use_count(), 16) << "work in a call is bounded";
    held = owner.use_count();
  }
  EXPECT_TRUE(map.empty());
}

TEST(DelayMap, DestroysRemainingEntriesWithoutCallingOnExpire) {
  auto owner = std::make_shared<int>(1);
  ManualClock clock;
  {
    DelayMap<int, std::shared_ptr<int>> map(
        {.on_expire = [](int, std::shared_ptr<int>&) { FAIL(); }, .clock = &clock});
    map.insert_or_assign(1, owner, 1h);
    map.insert_or_assign(2, owner, 1s);
    clock.advance(1s);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

/// Calls size() of its map whenever it is moved or destroyed, as the types of users may do.
template <class Map>
struct Curious {
  explicit Curious(const Map& its_map, int its_name) : map(&its_map), name(its_name) {}
  Curious(Curious&& other) noexcept : map(other.map), name(other.name) { look(); }
  Curious& operator=(Curious&& other) noexcept {
    map = other.map;
    look();
    return *this;
  }
  ~Curious() { look(); }
  void look() const {
    if (map->core != nullptr) static_cast<void>(map->core->size());
  }
  bool operator==(const Curious& other) const { return name == other.name; }
  const Map* map;
  int name;
};
struct CuriousMap {
  using Element = Curious<CuriousMap>;
  struct Hash {
    std::size_t operator()(const Element& e) const { return static_cast<std::size_t>(e.name); }
  };
  DelayMap<Element, Element, Hash>* core = nullptr;
};

// A call with the lock held would wait for this lock forever.
TEST(DelayMap, NeverMovesOrDestroysKeysAndValuesWithItsLockHeld) {
  using Element = CuriousMap::Element;
  ManualClock clock;
  CuriousMap holder;
  DelayMap<Element, Element, CuriousMap::Hash> map({.capacity = 4, .clock = &clock});
  holder.core = &map;
  const auto of = [&](int name) { return Element(holder, name); };
  for (int i = 0; i < 4; ++i) map.insert_or_assign(of(i), of(i), 1h);
  EXPECT_EQ(map.insert_or_assign(of(0), of(9), 1s), InsertResult::assigned);
  EXPECT_EQ(map.insert(of(1), of(9), 1s), InsertResult::present);
  EXPECT_EQ(map.insert(of(5), of(9), 1s), InsertResult::full);
  EXPECT_TRUE(map.take(of(1)));
  EXPECT_TRUE(map.erase(of(2)));
  clock.advance(1s);
  EXPECT_EQ(map.expire(), 1u);
  map.clear();
  EXPECT_TRUE(map.empty());
  holder.core = nullptr;
}

TEST(DelayMap, IsUnchangedIfAnElementOrAFunctionThrows) {
  struct Fragile {
    explicit Fragile(bool throws_now) { check(throws_now); }
    Fragile(const Fragile& other) : throws(other.throws) { check(throws); }
    Fragile(Fragile&&) = default;
    Fragile& operator=(Fragile&&) = default;
    static void check(bool now) {
      if (now) throw std::runtime_error("fragile");
    }
    bool throws = false;
  };
  ManualClock clock;
  DelayMap<int, Fragile> map({.clock = &clock});
  EXPECT_THROW(map.insert_or_assign(1, true, 1s), std::runtime_error);
  EXPECT_TRUE(map.empty());
  map.insert_or_assign(1, false, 1s);
  map.with(1, [](Fragile& value) { value.throws = true; });
  EXPECT_THROW(map.get(1), std::runtime_error);
  EXPECT_THROW(map.with(1, [](Fragile&) { throw std::runtime_error("f"); }), std::runtime_error);
  EXPECT_TRUE(map.take(1)) << "the lock is free and the entry is there";
}

TEST(DelayMapDeathTest, RefusesACapacityOfZero) {
  EXPECT_DEATH((DelayMap<int, int>({.capacity = 0})), "capacity_ >= 1");
}

// Such a call would wait for its own lock forever.
TEST(DelayMapDeathTest, IsNotCalledFromInsideTheFunctionGivenToWith) {
  DelayMap<int, int> map;
  map.insert_or_assign(1, 1, 1h);
  EXPECT_DEATH(map.with(1, [&](int&) { map.contains(2); }), "is_inside_its_own_call");
  EXPECT_DEATH(map.with(1, [&](int&) { map.erase(1); }), "is_inside_its_own_call");
  EXPECT_DEATH(map.with(1, [&](int&) { map.expire(); }), "is_inside_its_own_call");
  EXPECT_THROW(map.with(1, [](int&) { throw std::runtime_error("f"); }), std::runtime_error);
  EXPECT_TRUE(map.contains(1)) << "one that threw is not inside any more";
}

struct AskingEqual {
  static inline const DelayMap<int, int, std::hash<int>, AskingEqual>* asked = nullptr;
  bool operator()(int one, int other) const {
    return (asked == nullptr || asked->contains(3)) && one == other;
  }
};

TEST(DelayMapDeathTest, IsNotCalledFromInsideEqual) {
  DelayMap<int, int, std::hash<int>, AskingEqual> map;
  map.insert_or_assign(1, 1, 1h);
  AskingEqual::asked = &map;
  EXPECT_DEATH(map.contains(1), "is_inside_its_own_call");
  AskingEqual::asked = nullptr;
}

// Otherwise wake-ups and deadlines would use different clocks.
TEST(DelayMapDeathTest, RefusesAnotherClockThanItsSchedulers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ManualClock clock;
  EXPECT_DEATH(
      {
        Simulation simulation(1);
        (DelayMap<int, int>({.clock = &clock, .scheduler = &simulation.scheduler()}));
      },
      "options.clock == &schedulers");
}

}  // namespace
}  // namespace detent
