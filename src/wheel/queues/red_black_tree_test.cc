// The red-black tree: its order and its colours after every step.
#include "detent/internal/red_black_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::internal {
namespace {

std::vector<const TreeNode*> in_order(const RedBlackTree& tree) {
  std::vector<const TreeNode*> nodes;
  tree.for_each([&nodes](const TreeNode& node) { nodes.push_back(&node); });
  return nodes;
}

// Inserts seven nodes in every order, and erases them in every seventh order. So all shapes and
// repairs of small trees occur many times.
TEST(RedBlackTree, IsCorrectAfterEveryStepInEveryOrder) {
  constexpr std::size_t kCount = 7;
  std::array<std::size_t, kCount> insertion{0, 1, 2, 3, 4, 5, 6};
  std::array<std::size_t, kCount> erasure = insertion;
  do {
    for (int some = 0; some < 7; ++some) {
      std::next_permutation(erasure.begin(), erasure.end());
      std::array<TreeNode, kCount> nodes;
      RedBlackTree tree;
      for (const std::size_t i : insertion) {
        nodes[i].deadline = i;
        tree.insert(nodes[i]);
        tree.check_invariants();
      }
      std::array<bool, kCount> erased{};
      for (const std::size_t i : erasure) {
        tree.erase(nodes[i]);
        erased[i] = true;
        tree.check_invariants();
        const auto first = std::find(erased.begin(), erased.end(), false) - erased.begin();
        ASSERT_EQ(tree.first(),
                  first == kCount ? nullptr : &nodes[static_cast<std::size_t>(first)]);
      }
    }
  } while (std::next_permutation(insertion.begin(), insertion.end()));
}

TEST(RedBlackTree, KeepsEqualDeadlinesInTheOrderOfInsertion) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  std::vector<TreeNode> nodes(300);
  RedBlackTree tree;
  std::multimap<Tick, const TreeNode*> model;  // also keeps equal keys in the order of insertion
  std::vector<bool> is_in(nodes.size());
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random.below(300);
    TreeNode& node = nodes[i];
    if (is_in[i]) {
      tree.erase(node);
      std::erase_if(model, [&node](const auto& entry) { return entry.second == &node; });
    } else {
      node.deadline = random.below(20);
      tree.insert(node);
      model.emplace(node.deadline, &node);
    }
    is_in[i] = !is_in[i];
    if (step % 16 != 0) continue;
    tree.check_invariants();
    const std::vector<const TreeNode*> order = in_order(tree);
    ASSERT_TRUE(std::equal(order.begin(), order.end(), model.begin(), model.end(),
                           [](const TreeNode* a, const auto& b) { return a == b.second; }));
  }
}

// The worst case of an unbalanced tree: a path of 200 000 nodes would overflow the stack below.
TEST(RedBlackTree, StaysBalancedWhenNodesComeSorted) {
  std::vector<TreeNode> nodes(200'000);
  RedBlackTree tree;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].deadline = i;
    tree.insert(nodes[i]);
  }
  std::size_t depth = 0;
  for (const TreeNode* node = &nodes.back(); node != nullptr; node = node->parent) ++depth;
  EXPECT_LE(depth, 2u * 18u) << "at most twice the logarithm";
  tree.check_invariants();
  while (!tree.empty()) tree.erase(*tree.first());
}

}  // namespace
}  // namespace detent::internal
