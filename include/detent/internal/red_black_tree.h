// RedBlackTree: an intrusive red-black tree of nodes, sorted by deadline. The first node is cached.
//
// A red-black tree is a binary search tree with coloured nodes. A red node has no red child, and
// every path from the root to a leaf has equally many black nodes. Therefore no path is more than
// twice as long as another. Inserting and erasing restore these rules by recolouring along one
// path, and by at most three rotations.
//
// A node is a Link. In a tree, its two pointers are its children; in a list, they are its
// neighbours. Left and right are mirror images, so the code is written once, for a side and its
// opposite.
//
// Source: Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", chapter 13 (after Guibas
// and Sedgewick, 1978). Linux keeps its high-resolution timers in such a tree, and caches the first
// node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "detent/check.h"
#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// A node of the tree. In a tree, `prev` and `next` are the left and the right child. After removal
/// from a tree, the node can be used as a link again.
struct TreeNode : Link {
  enum class Colour : std::uint8_t { red, black };

  TreeNode* parent = nullptr;
  Tick deadline = 0;
  Colour colour = Colour::red;
};

/// Nodes sorted by deadline; equal deadlines are in the order of insertion. Owns no node. Not
/// movable. Thread-compatible.
///
/// Invariants:
///
/// - In order from left to right, no node has an earlier deadline than its predecessor.
/// - The root is black, and no red node has a red child.
/// - Every path from the root to a missing child has equally many black nodes.
/// - Each node is the parent of its children, the root has no parent, and first() is the leftmost
///   node.
class RedBlackTree {
 public:
  RedBlackTree() noexcept = default;
  RedBlackTree(const RedBlackTree&) = delete;
  RedBlackTree& operator=(const RedBlackTree&) = delete;

  bool empty() const noexcept { return root_ == nullptr; }

  /// Returns the first node; null if the tree is empty. O(1).
  TreeNode* first() const noexcept { return first_; }

  /// Returns the node after `node`, or null. O(log n); O(1) on average over a walk.
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

  /// Inserts `node` behind all nodes with the same deadline. Requires: `node` is in no tree and no
  /// list. O(log n).
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

  /// Removes `node`. Requires: `node` is in this tree. O(log n); O(1) except for finding the new
  /// first node.
  void erase(TreeNode& node) noexcept {
    if (first_ == &node) first_ = next(node);
    // The node that moves up to the gap (possibly null), and its new parent.
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

  /// Stops the process if an invariant is broken. O(n); the recursion is as deep as the tree.
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

  // `other`, which may be null, replaces `node` as the child of its parent.
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

  // The paths through `node`, which may be null, have one black node too few.
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

  // Returns the number of black nodes on a path from `node` downwards.
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
