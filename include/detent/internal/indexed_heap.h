// IndexedHeap: a 4-ary heap whose elements know their index, so that any element can be removed or
// moved.
//
// A heap is an array in which no element sorts before its parent. With four children per element
// the heap is half as deep as a binary heap, and the children of one parent lie side by side in
// memory. Elements should be small: a key and a pointer to the owner of the key. Comparisons then
// read only the array. The owner stores the index of its element.
//
//     struct Entry {
//       Tick deadline;
//       Task* task;
//       bool is_before(const Entry& other) const noexcept { return deadline < other.deadline; }
//       void moved_to(std::size_t index) const noexcept { task->index = index; }
//     };
//
// Source: d-ary heaps, LaMarca and Ladner, "The influence of caches on the performance of heaps"
// (JEA 1996). Boost.Asio, libuv and libev keep their timers in heaps of this kind.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "detent/check.h"

namespace detent::internal {

/// `a.is_before(b)` is a strict weak order. `a.moved_to(i)` tells the element that its index is now
/// `i`.
template <class E>
concept HeapElement = std::movable<E> && requires(const E& unchanged, E& element) {
  { unchanged.is_before(unchanged) } -> std::same_as<bool>;
  element.moved_to(std::size_t{});
};

/// A priority queue. Equal elements leave it in an unspecified order, which is the same in every
/// run. Thread-compatible.
///
/// The array doubles when it is full and halves when it is a quarter full, but never shrinks below
/// the reserved size. Both cost O(1) per operation on average, and O(size()) in a single operation.
/// If an allocation fails, the process ends.
///
/// Invariants:
///
/// - No element sorts before its parent, (index - 1) / 4.
/// - Each element was last told its present index.
template <HeapElement Element>
class IndexedHeap {
 public:
  bool empty() const noexcept { return elements_.empty(); }
  std::size_t size() const noexcept { return elements_.size(); }
  std::size_t capacity() const noexcept { return elements_.capacity(); }

  /// Reserves and keeps memory for `size` elements. Up to this size no operation allocates.
  void reserve(std::size_t size) {
    reserved_ = std::max(reserved_, size);
    elements_.reserve(size);
  }

  /// Returns the first element: no other element sorts before it. Requires: !empty(). O(1).
  const Element& top() const noexcept { return elements_.front(); }

  /// Returns all elements in an unspecified order.
  std::span<const Element> elements() const noexcept { return elements_; }

  /// Adds an element. O(log n).
  void push(Element element) noexcept {
    elements_.push_back(std::move(element));
    sift_up(elements_.size() - 1);
  }

  /// Removes and returns top(). Requires: !empty(). O(log n).
  Element pop() noexcept { return erase(0); }

  /// Removes and returns the element at `index`. Requires: index < size(). O(log n).
  Element erase(std::size_t index) noexcept {
    DETENT_DCHECK(index < elements_.size());
    Element taken = std::move(elements_[index]);
    Element last = std::move(elements_.back());
    elements_.pop_back();
    if (index < elements_.size()) replace(index, std::move(last));
    give_back_memory();
    return taken;
  }

  /// Replaces the element at `index` by `element`, and moves it to its place. Requires: index <
  /// size(). O(log n).
  void replace(std::size_t index, Element element) noexcept {
    DETENT_DCHECK(index < elements_.size());
    elements_[index] = std::move(element);
    if (index > 0 && elements_[index].is_before(elements_[parent_of(index)])) {
      sift_up(index);
    } else {
      sift_down(index);
    }
  }

  /// Stops the process if the first invariant is broken. The owner of the indices must check the
  /// second invariant. O(n).
  void check_invariants() const noexcept {
    for (std::size_t i = 1; i < elements_.size(); ++i) {
      DETENT_CHECK(!elements_[i].is_before(elements_[parent_of(i)]));
    }
  }

 private:
  static constexpr std::size_t kChildren = 4;
  static constexpr std::size_t kSmallestShrunk = 64;

  static constexpr std::size_t parent_of(std::size_t index) noexcept {
    return (index - 1) / kChildren;
  }

  // Both sifts hold the element aside, and write each other element once.
  void sift_up(std::size_t index) noexcept {
    Element element = std::move(elements_[index]);
    while (index > 0 && element.is_before(elements_[parent_of(index)])) {
      put(index, std::move(elements_[parent_of(index)]));
      index = parent_of(index);
    }
    put(index, std::move(element));
  }

  void sift_down(std::size_t index) noexcept {
    Element element = std::move(elements_[index]);
    for (;;) {
      const std::size_t first = index * kChildren + 1;
      if (first >= elements_.size()) break;
      const std::size_t end = std::min(first + kChildren, elements_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (elements_[child].is_before(elements_[least])) least = child;
      }
      if (!elements_[least].is_before(element)) break;
      put(index, std::move(elements_[least]));
      index = least;
    }
    put(index, std::move(element));
  }

  void put(std::size_t index, Element element) noexcept {
    elements_[index] = std::move(element);
    elements_[index].moved_to(index);
  }

  void give_back_memory() noexcept {
    const std::size_t half = elements_.capacity() / 2;
    if (elements_.size() > half / 2 || half < std::max(reserved_, kSmallestShrunk)) return;
    std::vector<Element> smaller;
    smaller.reserve(half);
    std::move(elements_.begin(), elements_.end(), std::back_inserter(smaller));
    elements_ = std::move(smaller);
  }

  std::vector<Element> elements_;
  std::size_t reserved_ = 0;
};

}  // namespace detent::internal
