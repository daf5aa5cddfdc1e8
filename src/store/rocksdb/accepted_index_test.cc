// Compares the index with a simple model: a map from ids to places.
#include "store/rocksdb/accepted_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

using Places = std::vector<Place>;

constexpr std::size_t kAll = 1'000'000;

TaskId id_of(std::uint64_t n) { return {n << TaskId::kShardBits}; }
Place due(std::int64_t ms, std::uint64_t n) {
  return {.lane = Lane::due,
          .queue = 0,
          .priority = 0,
          .at = WallTime{std::chrono::milliseconds{ms}},
          .id = id_of(n)};
}
Place ready(std::uint32_t queue, std::uint32_t priority, std::uint64_t n) {
  Place place = due(5, n);
  place.lane = Lane::ready;
  place.queue = queue;
  place.priority = priority;
  return place;
}
Places due_places(AcceptedIndex& index, std::size_t limit = kAll) {
  return index.read(begin_of(Lane::due), end_of(Lane::due), limit);
}

TEST(AcceptedIndex, ReadsInDueOrderAndById) {
  AcceptedIndex index;
  index.put(due(30, 1));
  index.put(due(10, 2));
  index.put(due(20, 3));
  index.put(due(10, 4));
  EXPECT_EQ(due_places(index), (Places{due(10, 2), due(10, 4), due(20, 3), due(30, 1)}));
  EXPECT_EQ(index.read_by_id(id_of(1), 2), (Places{due(10, 2), due(20, 3)}));
  EXPECT_EQ(index.find(id_of(3)), due(20, 3));
  EXPECT_EQ(index.find(id_of(5)), std::nullopt);
  EXPECT_EQ(index.size(), 4u);
}

TEST(AcceptedIndex, PageExcludesTheFirstBoundAndIncludesTheLast) {
  AcceptedIndex index;
  for (std::uint64_t n = 1; n <= 5; ++n) index.put(due(10, n));
  EXPECT_EQ(index.read(due(10, 2), due(10, 4), kAll), (Places{due(10, 3), due(10, 4)}));
  EXPECT_EQ(index.read(due(10, 2), due(10, 4), 1), (Places{due(10, 3)}));
  EXPECT_EQ(index.read(due(10, 5), due(99, 9), kAll), Places{});
}

TEST(AcceptedIndex, MovedTaskIsReadOnlyAtItsNewPlace) {
  AcceptedIndex index;
  index.put(due(10, 1));
  index.put(due(20, 2));
  EXPECT_EQ(due_places(index).size(), 2u);  // sorts the tail, so later entries go to another run
  index.put(due(30, 1));
  EXPECT_EQ(due_places(index), (Places{due(20, 2), due(30, 1)}));
  index.put(due(10, 1));  // back where it was
  EXPECT_EQ(due_places(index), (Places{due(10, 1), due(20, 2)}));
  index.put(due(30, 1));
  index.put(due(10, 1));
  EXPECT_EQ(due_places(index), (Places{due(10, 1), due(20, 2)}));
  EXPECT_EQ(index.size(), 2u);
}

TEST(AcceptedIndex, TasksEnterAndLeaveOtherLanes) {
  AcceptedIndex index;
  index.put(due(10, 1));
  index.put(ready(2, 7, 2));
  index.put(ready(2, 3, 3));
  index.put(ready(1, 1, 4));
  index.put(ready(2, 9, 1));
  EXPECT_EQ(due_places(index), Places{});
  EXPECT_EQ(index.read(begin_of(Lane::ready, 2), end_of(Lane::ready, 2), kAll),
            (Places{ready(2, 3, 3), ready(2, 7, 2), ready(2, 9, 1)}));
  index.put(due(5, 3));
  index.erase(id_of(2));
  EXPECT_EQ(index.read(begin_of(Lane::ready, 2), end_of(Lane::ready, 2), kAll),
            (Places{ready(2, 9, 1)}));
  EXPECT_EQ(index.read_by_id({}, kAll), (Places{ready(2, 9, 1), due(5, 3), ready(1, 1, 4)}));
  index.check_invariants();
}

TEST(AcceptedIndex, AcceptsAnIdBelowTheOthers) {
  AcceptedIndex index;
  index.put(due(10, 8));
  index.put(due(20, 3));
  index.put(due(5, 5));
  EXPECT_EQ(index.read_by_id({}, kAll), (Places{due(20, 3), due(5, 5), due(10, 8)}));
  EXPECT_EQ(due_places(index), (Places{due(5, 5), due(10, 8), due(20, 3)}));
}

TEST(AcceptedIndex, DropThroughRemovesOnlyLowerIds) {
  AcceptedIndex index;
  for (std::uint64_t n = 1; n <= 10; ++n) index.put(due(static_cast<std::int64_t>(100 - n), n));
  index.put(ready(1, 1, 4));
  index.drop_through(id_of(7));
  EXPECT_EQ(due_places(index), (Places{due(90, 10), due(91, 9), due(92, 8)}));
  EXPECT_EQ(index.size(), 3u);
  EXPECT_EQ(index.find(id_of(4)), std::nullopt);
  EXPECT_EQ(index.entry_count(), 3u);
  index.check_invariants();
}

TEST(AcceptedIndex, StaleEntriesAreCleanedUp) {
  AcceptedIndex index;
  for (std::uint64_t n = 1; n <= 100; ++n) index.put(due(1, n));
  for (std::int64_t ms = 2; ms < 2'000; ++ms) {
    for (std::uint64_t n = 1; n <= 100; ++n) index.put(due(ms, n));
    ASSERT_LE(index.entry_count(), 1'400u);
  }
  for (std::uint64_t n = 101; n <= 100'000; ++n) {
    index.put(due(7, n));
    index.erase(id_of(n));
  }
  EXPECT_LE(index.entry_count(), 1'400u);
  EXPECT_EQ(due_places(index).size(), 100u);
  index.check_invariants();
}

TEST(AcceptedIndex, StaleEntriesAtTheFrontArePassedByWritesNotByReads) {
  AcceptedIndex index;
  for (std::uint64_t n = 1; n <= 9'000; ++n) index.put(due(static_cast<std::int64_t>(n), n));
  EXPECT_EQ(due_places(index, 1), Places{due(1, 1)});
  for (std::uint64_t n = 1; n <= 2'000; ++n) index.erase(id_of(n));
  EXPECT_EQ(index.entry_count(), 7'000u);
  for (std::uint64_t n = 2'001; n <= 4'000; ++n) index.put(due(20'000, n));
  EXPECT_EQ(index.entry_count(), 7'000u) << "tasks that moved have their entries at the new place";
  EXPECT_EQ(due_places(index, 1), Places{due(4'001, 4'001)});
  index.check_invariants();
}

/// Makes random changes to the index and to a map of places.
class RandomChanges {
 public:
  explicit RandomChanges(std::uint64_t seed) : rng_(seed) {}

  void make_one() {
    const std::uint64_t kind = rng_.below(100);
    if (kind < 45 || places_.empty()) {
      next_id_ += 1 + rng_.below(3);
      put(random_place(next_id_));
    } else if (kind < 70) {
      put(random_place(some_task() >> TaskId::kShardBits));
    } else if (kind < 96) {
      const TaskId id{some_task()};
      index_.erase(id);
      places_.erase(id.value);
    } else if (kind < 98) {
      put(random_place(1 + rng_.next() % next_id_));
    } else {
      const TaskId mark{some_task()};
      index_.drop_through(mark);
      places_.erase(places_.begin(), places_.upper_bound(mark.value));
    }
  }

  void compare() {
    index_.check_invariants();
    ASSERT_EQ(index_.size(), places_.size());
    Places by_id;
    for (const auto& [id, place] : places_) by_id.push_back(place);
    ASSERT_EQ(index_.read_by_id({}, kAll), by_id);
    std::sort(by_id.begin(), by_id.end());
    const Place after = random_place(rng_.below(100));
    Place until = end_of(after.lane, after.queue);
    if (after.lane == Lane::due) until.at = after.at + std::chrono::milliseconds{rng_.below(60)};
    const std::size_t limit = 1 + rng_.below(20);
    Places expected;
    for (const Place& place : by_id) {
      if (after < place && place <= until && expected.size() < limit) expected.push_back(place);
    }
    ASSERT_EQ(index_.read(after, until, limit), expected);
  }

 private:
  void put(const Place& place) {
    index_.put(place);
    places_[place.id.value] = place;
  }
  Place random_place(std::uint64_t n) {
    if (rng_.below(10) == 0) {
      return ready(1 + static_cast<std::uint32_t>(rng_.below(2)),
                   static_cast<std::uint32_t>(rng_.below(3)), n);
    }
    return due(static_cast<std::int64_t>(rng_.below(50)), n);
  }
  std::uint64_t some_task() {
    const auto skip = static_cast<std::ptrdiff_t>(rng_.next() % places_.size());
    return std::next(places_.begin(), skip)->first;
  }

  Rng rng_;
  AcceptedIndex index_;
  std::map<std::uint64_t, Place> places_;
  std::uint64_t next_id_ = 0;
};

TEST(AcceptedIndex, BehavesLikeASortedMap) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  RandomChanges changes(seed);
  for (int i = 0; i < 3'000; ++i) {
    changes.make_one();
    if (i % 10 == 0) changes.compare();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// So many tasks that tails are sorted and runs are merged while tasks are added.
TEST(AcceptedIndex, ManyTasksAreReadPageByPageInOrder) {
  Rng rng(7);
  AcceptedIndex index;
  Places expected;
  for (std::uint64_t n = 1; n <= 100'000; ++n) {
    expected.push_back(due(static_cast<std::int64_t>(rng.below(1'000'000)), n));
    index.put(expected.back());
  }
  std::sort(expected.begin(), expected.end());
  Places read;
  Place after = begin_of(Lane::due);
  while (true) {
    const Places page = index.read(after, end_of(Lane::due), 1'000);
    if (page.empty()) break;
    read.insert(read.end(), page.begin(), page.end());
    after = page.back();
  }
  EXPECT_EQ(read, expected);
  EXPECT_EQ(index.entry_count(), 100'000u);
}

}  // namespace
}  // namespace detent
