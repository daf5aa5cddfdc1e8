// The heap: its order, the index that each element knows, and the memory that it frees.
#include "detent/internal/indexed_heap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::internal {
namespace {

constexpr std::size_t kNowhere = ~std::size_t{0};

struct Item {
  unsigned key = 0;
  std::size_t index = kNowhere;
};

struct Element {
  unsigned key;
  Item* item;

  bool is_before(const Element& other) const noexcept { return key < other.key; }
  void moved_to(std::size_t index) const noexcept { item->index = index; }
};

void expect_indices_are_right(const IndexedHeap<Element>& heap) {
  for (std::size_t i = 0; i < heap.size(); ++i) {
    const Element& element = heap.elements()[i];
    ASSERT_EQ(element.item->index, i);
    ASSERT_EQ(element.item->key, element.key);
  }
}

TEST(IndexedHeap, AgreesWithASortedSetAfterRandomSteps) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  std::vector<Item> items(200);
  IndexedHeap<Element> heap;
  std::multiset<unsigned> keys;
  for (int step = 0; step < 50'000; ++step) {
    Item& item = items[random.below(200)];
    const unsigned key = random.below(64);  // so that many keys are equal
    if (item.index == kNowhere) {
      item.key = key;
      heap.push({key, &item});
      keys.insert(key);
    } else if (random.below(2) == 0) {
      keys.erase(keys.find(item.key));
      keys.insert(key);
      item.key = key;
      heap.replace(item.index, {key, &item});
    } else {
      const std::size_t index = random.below(4) == 0 ? 0 : item.index;
      const Element taken = heap.erase(index);
      keys.erase(keys.find(taken.key));
      taken.item->index = kNowhere;
    }
    ASSERT_EQ(heap.size(), keys.size());
    if (!keys.empty()) {
      ASSERT_EQ(heap.top().key, *keys.begin());
    }
    heap.check_invariants();
    expect_indices_are_right(heap);
  }
}

TEST(IndexedHeap, PopsInOrder) {
  std::vector<Item> items(1'000);
  IndexedHeap<Element> heap;
  for (unsigned i = 0; i < items.size(); ++i) heap.push({(i * 7'919) % 1'000, &items[i]});
  for (unsigned i = 0; i < items.size(); ++i) ASSERT_EQ(heap.pop().key, i);
  EXPECT_TRUE(heap.empty());
}

TEST(IndexedHeap, GivesMemoryBackWhenAQuarterFullAndKeepsReservedMemory) {
  std::vector<Item> items(100'000);
  IndexedHeap<Element> heap;
  for (Item& item : items) heap.push({0, &item});
  const std::size_t peak = heap.capacity();
  while (heap.size() > peak / 4 + 1) heap.pop();
  EXPECT_EQ(heap.capacity(), peak) << "it does not shrink before it is a quarter full";
  heap.pop();
  EXPECT_EQ(heap.capacity(), peak / 2);
  while (heap.size() > 10) heap.pop();
  EXPECT_LE(heap.capacity(), 128u);
  expect_indices_are_right(heap);

  heap.reserve(1'000);
  while (!heap.empty()) heap.pop();
  EXPECT_GE(heap.capacity(), 1'000u);
}

// A queue of values needs this, because its elements own resources.
TEST(IndexedHeap, HoldsElementsThatCanOnlyBeMoved) {
  struct Owner {
    unsigned key;
    std::unique_ptr<unsigned> value;

    bool is_before(const Owner& other) const noexcept { return key < other.key; }
    void moved_to(std::size_t) noexcept {}
  };
  IndexedHeap<Owner> heap;
  for (unsigned i = 0; i < 300; ++i) {
    const unsigned key = (i * 7) % 300;
    heap.push({key, std::make_unique<unsigned>(key)});
  }
  for (unsigned i = 0; i < 300; ++i) {
    const Owner owner = heap.pop();
    ASSERT_NE(owner.value, nullptr);
    ASSERT_EQ(*owner.value, i);
  }
}

}  // namespace
}  // namespace detent::internal
