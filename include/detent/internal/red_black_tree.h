// An intrusive red-black tree of nodes sorted by deadline, the first one at hand.
//
// A red-black tree is a binary search tree whose nodes are coloured so that no path from the root
// to a leaf is more than twice as long as another: a red node has no red child, and every path
// passes equally many black nodes. Inserting and erasing repair that by recolouring along one path
// and at most three rotations.
//
// A node is a Link whose two pointers are its children here, and its neighbours while it is in a
// list. Left and right are mirror images, so the code names a side and its opposite once.
//
// Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", chapter 13 (after Guibas and
// Sedgewick, 1978). Linux keeps its high-resolution timers in such a tree, the first node cached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "detent/check.h"
#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// What is sorted. In a tree `prev` and `next` are the left and the right child. Whoever takes it
/// out of a tree may use them as a link again.
struct TreeNode : Link {
  enum class Colour : std::uint8_t { red, black };

  TreeNode* parent = nullptr;
  Tick deadline = 0;
  Colour colour = Colour::red;
};

/// Nodes by deadline; equal deadlines in the order of insertion. Owns no node. Not movable.
/// Thread-compatible.
///
/// Invariants:
///  1. No node has an earlier deadline than the one before it, left to right.
///  2. The root is black, and no red node has a red child.
///  3. Every path from the root to a missing child passes equally many black nodes.
///  4. Each node is its children's parent, the root has none, and first() is the leftmost.
class RedBlackTree {
 public:
  RedBlackTree() noexcept = default;
  RedBlackTree(const RedBlackTree&) = delete;
  RedBlackTree& operator=(const RedBlackTree&) = delete;

  bool empty() const noexcept { return root_ == nullptr; }

  /// Returns: the first node; null when the tree is empty. O(1).
  TreeNode* first() const noexcept { return first_; }

  /// Returns: the node behind `node`, or null. O(log n), O(1) on average over a walk.
  static TreeNode* next(const TreeNode& node) noexcept {
    if (right(&node) != nullptr) return leftmost(right(&node));
    const TreeNode* below = &node;
    TreeNode* above = node.parent;
    while (above != nullptr && right(above) == below) {
      below = above;
      above = above->parent;
    }
    return above;
  }

  /// Behind every node with the same deadline. Requires: `node` is in no tree and no list. O(log
  /// n).
  void insert(TreeNode& node) noexcept {
    TreeNode* parent = nullptr;
    Side side = Side::left;
    for (TreeNode* at = root_; at != nullptr; at = child(at, side)) {
      parent = at;
      side = node.deadline < at->deadline ? Side::left : Side::right;
    }
    node.prev = node.next = nullptr;
    node.parent = parent;
    node.colour = Colour::red;
    if (first_ == nullptr || node.deadline < first_->deadline) first_ = &node;
    if (parent == nullptr) {
      root_ = &node;
    } else {
      set_child(parent, side, &node);
    }
    repair_after_insert(&node);
  }

  /// Requires: `node` is in this tree. O(log n); O(1) besides finding the next first.
  void erase(TreeNode& node) noexcept {
    if (first_ == &node) first_ = next(node);
    // What moves up where a node went missing, which may be nothing, and its new parent.
    TreeNode* moved = right(&node);
    TreeNode* parent = node.parent;
    Colour missing = node.colour;
    if (left(&node) == nullptr || right(&node) == nullptr) {
      if (moved == nullptr) moved = left(&node);
      put_in_place_of(node, moved);
    } else {
      TreeNode* const heir = leftmost(right(&node));
      missing = heir->colour;
      moved = right(heir);
      parent = heir->parent == &node ? heir : heir->parent;
      put_in_place_of(*heir, moved);
      adopt(*heir, node);
    }
    if (missing == Colour::black) repair_after_erase(moved, parent);
  }

  /// Calls visit(TreeNode&) in order; it must not change the tree. O(n).
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (TreeNode* node = first_; node != nullptr; node = next(*node)) visit(*node);
  }

  /// Stops the process unless every invariant holds. O(n), and as deep as the tree.
  void check_invariants() const noexcept {
    DETENT_CHECK(root_ == nullptr || (root_->parent == nullptr && !is_red(root_)));
    DETENT_CHECK(first_ == (root_ == nullptr ? nullptr : leftmost(root_)));
    check_subtree(root_);
    Tick latest = 0;
    for_each([&latest](const TreeNode& node) {
      DETENT_CHECK(node.deadline >= latest);
      latest = node.deadline;
    });
  }

 private:
  using Colour = TreeNode::Colour;
  enum class Side : bool { left, right };

  static Side opposite(Side side) noexcept { return side == Side::left ? Side::right : Side::left; }
  static TreeNode* left(const TreeNode* node) noexcept {
    return static_cast<TreeNode*>(node->prev);
  }
  static TreeNode* right(const TreeNode* node) noexcept {
    return static_cast<TreeNode*>(node->next);
  }
  static TreeNode* child(const TreeNode* node, Side side) noexcept {
    return side == Side::left ? left(node) : right(node);
  }
  static Side side_of(const TreeNode* node, const TreeNode* parent) noexcept {
    return left(parent) == node ? Side::left : Side::right;
  }
  static bool is_red(const TreeNode* node) noexcept {
    return node != nullptr && node->colour == Colour::red;
  }
  static TreeNode* leftmost(TreeNode* node) noexcept {
    while (left(node) != nullptr) node = left(node);
    return node;
  }

  static void set_child(TreeNode* node, Side side, TreeNode* child) noexcept {
    (side == Side::left ? node->prev : node->next) = child;
    if (child != nullptr) child->parent = node;
  }

  // `other`, which may be null, becomes the child of node's parent.
  void put_in_place_of(const TreeNode& node, TreeNode* other) noexcept {
    TreeNode* const parent = node.parent;
    if (parent != nullptr) return set_child(parent, side_of(&node, parent), other);
    root_ = other;
    if (other != nullptr) other->parent = nullptr;
  }

  // `heir` takes over the place, the children and the colour of `node`.
  void adopt(TreeNode& heir, TreeNode& node) noexcept {
    put_in_place_of(node, &heir);
    set_child(&heir, Side::left, left(&node));
    set_child(&heir, Side::right, right(&node));
    heir.colour = node.colour;
  }

  // Moves `node` down to `side`, and its other child up into its place.
  void rotate(TreeNode* node, Side side) noexcept {
    TreeNode* const up = child(node, opposite(side));
    put_in_place_of(*node, up);
    set_child(node, opposite(side), child(up, side));
    set_child(up, side, node);
  }

  // `node` is red; its parent may be red too.
  void repair_after_insert(TreeNode* node) noexcept {
    while (is_red(node->parent)) {
      TreeNode* parent = node->parent;
      TreeNode* const grandparent = parent->parent;
      const Side side = side_of(parent, grandparent);
      TreeNode* const uncle = child(grandparent, opposite(side));
      if (is_red(uncle)) {
        parent->colour = uncle->colour = Colour::black;
        grandparent->colour = Colour::red;
        node = grandparent;
        continue;
      }
      if (side_of(node, parent) != side) {
        rotate(parent, side);
        parent = node;
      }
      parent->colour = Colour::black;
      grandparent->colour = Colour::red;
      rotate(grandparent, opposite(side));
      break;
    }
    root_->colour = Colour::black;
  }

  // The paths through `node`, which may be null, lack one black node.
  void repair_after_erase(TreeNode* node, TreeNode* parent) noexcept {
    while (node != root_ && !is_red(node)) {
      const Side side = side_of(node, parent);
      const Side other = opposite(side);
      TreeNode* sibling = child(parent, other);
      if (is_red(sibling)) {
        sibling->colour = Colour::black;
        parent->colour = Colour::red;
        rotate(parent, side);
        sibling = child(parent, other);
      }
      if (!is_red(left(sibling)) && !is_red(right(sibling))) {
        sibling->colour = Colour::red;
        node = parent;
        parent = node->parent;
        continue;
      }
      if (!is_red(child(sibling, other))) {
        child(sibling, side)->colour = Colour::black;
        sibling->colour = Colour::red;
        rotate(sibling, other);
        sibling = child(parent, other);
      }
      sibling->colour = parent->colour;
      parent->colour = Colour::black;
      child(sibling, other)->colour = Colour::black;
      rotate(parent, side);
      return;
    }
    if (node != nullptr) node->colour = Colour::black;
  }

  // Returns: how many black nodes a path from `node` down passes.
  static std::size_t check_subtree(const TreeNode* node) noexcept {
    if (node == nullptr) return 0;
    for (const TreeNode* const below : {left(node), right(node)}) {
      if (below == nullptr) continue;
      DETENT_CHECK(below->parent == node);
      DETENT_CHECK(!is_red(node) || !is_red(below));
    }
    const std::size_t black_nodes = check_subtree(left(node));
    DETENT_CHECK(check_subtree(right(node)) == black_nodes);
    return black_nodes + (is_red(node) ? 0 : 1);
  }

  TreeNode* root_ = nullptr;
  TreeNode* first_ = nullptr;
};

}  // namespace detent::internal
