// Sorting links by tick: correct, stable, and with a bounded number of moves.
#include "detent/internal/link_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::internal {
namespace {

struct Item {
  Link link;  // first, so the address of a link is the address of its item
  Tick tick = 0;
  int moves = 0;
};

Item& item_of(Link& link) { return reinterpret_cast<Item&>(link); }

// Takes all items out, in order.
std::vector<Item*> drain(LinkLevels& levels) {
  std::vector<Item*> order;
  while (!levels.empty()) {
    levels.check_invariants();
    const Tick start = levels.next_start();
    LinkList list;
    const LinkLevels::Slot slot = levels.take(list);
    EXPECT_EQ(slot.start, start);
    while (!list.empty()) {
      Item& item = item_of(list.pop_front());
      ++item.moves;
      if (slot.level == 0) {
        EXPECT_EQ(item.tick, start);
        order.push_back(&item);
      } else {
        levels.insert(item.link, item.tick);
      }
    }
  }
  return order;
}

TEST(LinkLevels, SortsAnyTicksAndKeepsEqualTicksInOrder) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  LinkLevels levels;
  for (int round = 0; round < 50; ++round) {
    levels.reset();
    std::vector<Item> items(400);
    std::vector<Item*> expected;
    for (Item& item : items) {
      item.tick = random.next() >> random.below(64);
      if (random.below(8) == 0) item.tick = std::numeric_limits<Tick>::max() - random.below(3);
      levels.insert(item.link, item.tick);
      expected.push_back(&item);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const Item* a, const Item* b) { return a->tick < b->tick; });
    ASSERT_EQ(drain(levels), expected);
    for (const Item& item : items) ASSERT_LE(item.moves, 16);
  }
}

TEST(LinkLevels, ForgetsLinksThatAreTakenOutOfItsLists) {
  LinkLevels levels;
  std::vector<Item> items(100);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].tick = Tick{1} << (i % 50);
    levels.insert(items[i].link, items[i].tick);
  }
  for (Item& item : items) {
    if (const Link* const emptied = unlink(item.link)) levels.note_emptied(emptied);
    levels.check_invariants();
  }
  EXPECT_TRUE(levels.empty());
  LinkList elsewhere;
  elsewhere.push_back(items[0].link);
  levels.insert(items[1].link, 5);
  levels.note_emptied(unlink(items[0].link));
  EXPECT_FALSE(levels.empty()) << "links in another list must not change it";
}

}  // namespace
}  // namespace detent::internal
