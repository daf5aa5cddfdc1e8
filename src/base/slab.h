// Stores values under small numbers, in chunks of 64 values that never move.
//
// A value gets an index when it is created, and keeps it. After the value is erased, another value
// may get the index. A new chunk is added only if all chunks are full. So every index is below the
// largest number of values that existed together, rounded up to a whole chunk. The indices are
// dense enough for arrays, or for the timers of a DenseWheel.
//
// When the last value of a chunk is erased, the memory of the chunk is freed. One empty chunk is
// kept, so creating and erasing a single value repeatedly does not allocate.
//
// Slab allocation: Bonwick, "The slab allocator" (USENIX 1994).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "detent/check.h"

namespace detent {

/// A value of a slab. It is constructed from its index and stores the index.
template <class T>
concept SlabValue = requires(const T& value, std::uint32_t index) {
  T{index};
  { value.index } -> std::convertible_to<std::uint32_t>;
};

/// Owns its values. T is a SlabValue (it may be incomplete here), and its destructor must not use
/// the slab. Thread-compatible. Every operation is O(1) unless its comment gives another cost.
///
/// Invariants:
///  1. A chunk without memory is in bare_ once. A chunk with memory and a free slot is in open_
///     once. A full chunk is in neither list.
///  2. At most one chunk with memory is empty, and spare_ is its number.
///  3. size_ is the number of used slots: the bits that are not set in the chunks' `free`.
template <class T>
class Slab {
 public:
  Slab() = default;
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  /// Creates a value, T{index, args…}. Its address and index stay the same. At most one call in 64
  /// allocates memory.
  template <class... Args>
  T& emplace(Args&&... args);

  /// Destroys the value with this index. Requires: the value exists.
  void erase(std::uint32_t index) noexcept { erase((*this)[index]); }
  /// As above, for a value of this slab.
  void erase(T& value) noexcept;

  /// The value with this index, which may be any number; null if there is none.
  T* find(std::uint32_t index) const noexcept {
    const std::size_t number = index / kChunkSize;
    if (number >= chunks_.size() || (chunks_[number].free & bit_of(index)) != 0) return nullptr;
    return &chunks_[number].values->slots[index % kChunkSize].value;
  }

  /// Requires: a value with this index exists.
  T& operator[](std::uint32_t index) const noexcept {
    T* const value = find(index);
    DETENT_CHECK(value != nullptr);
    return *value;
  }

  /// Calls `visit(T&)` with each value, in the order of the indices. `visit` may erase the visited
  /// value, but no other value. O(size() + chunks).
  template <std::invocable<T&> Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t number = 0; number < chunks_.size(); ++number) {
      for (std::uint64_t used = ~chunks_[number].free; used != 0; used &= used - 1) {
        visit(chunks_[number].values->slots[lowest(used)].value);
      }
    }
  }

  /// Every index is below this.
  std::uint32_t index_limit() const noexcept {
    return static_cast<std::uint32_t>(chunks_.size()) * kChunkSize;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Stops the process unless every invariant holds. For tests: O(chunks²).
  void check_invariants() const noexcept;
  /// The number of chunks with memory. For tests.
  std::size_t allocated_chunks() const noexcept { return chunks_.size() - bare_.size(); }

  static constexpr std::uint32_t kChunkSize = 64;

 private:
  static constexpr std::uint64_t kAllFree = ~std::uint64_t{0};

  // Memory for a value that the slab constructs and destroys itself. The two functions are not
  // defaulted, because they would be deleted.
  union Slot {
    Slot() noexcept {}  // NOLINT(modernize-use-equals-default)
    ~Slot() {}          // NOLINT(modernize-use-equals-default)
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    T value;
  };
  struct Values {
    std::array<Slot, kChunkSize> slots;
  };
  // Its size is a power of two, so that finding a chunk needs no multiplication.
  struct alignas(32) Chunk {
    std::unique_ptr<Values> values;  // null: the memory was freed
    std::uint64_t free = kAllFree;   // one bit per slot; 1 means free
    std::uint32_t open_index = 0;    // the chunk's position in open_, if it is there
  };

  static std::uint64_t bit_of(std::uint32_t index) noexcept {
    return std::uint64_t{1} << (index % kChunkSize);
  }
  static std::uint32_t lowest(std::uint64_t bits) noexcept {
    return static_cast<std::uint32_t>(std::countr_zero(bits));
  }

  void add_chunk();
  void leave_empty(std::uint32_t number) noexcept;
  void add_open(std::uint32_t number) noexcept;
  void remove_open(std::uint32_t number) noexcept;

  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> open_;  // its first open_count_ numbers; it has room for all chunks
  std::uint32_t open_count_ = 0;
  std::vector<std::uint32_t> bare_;
  std::optional<std::uint32_t> spare_;
  std::size_t size_ = 0;
};

template <class T>
Slab<T>::~Slab() {
  for_each([](T& value) { std::destroy_at(&value); });
}

template <class T>
template <class... Args>
T& Slab<T>::emplace(Args&&... args) {
  static_assert(SlabValue<T>);
  if (open_count_ == 0) [[unlikely]]
    add_chunk();
  const std::uint32_t number = open_[open_count_ - 1];
  Chunk& chunk = chunks_[number];
  const std::uint64_t free = chunk.free;
  const std::uint32_t place = lowest(free);
  T* const value = new (&chunk.values->slots[place].value)
      T{number * kChunkSize + place, std::forward<Args>(args)...};
  chunk.free = free & (free - 1);
  if (chunk.free == 0) --open_count_;
  if (free == kAllFree) spare_.reset();
  ++size_;
  return *value;
}

template <class T>
void Slab<T>::erase(T& value) noexcept {
  const std::uint32_t index = value.index;
  std::destroy_at(&value);
  const std::uint32_t number = index / kChunkSize;
  Chunk& chunk = chunks_[number];
  if (chunk.free == 0) add_open(number);
  chunk.free |= bit_of(index);
  --size_;
  if (chunk.free == kAllFree) [[unlikely]]
    leave_empty(number);
}

/// Keeps an empty chunk as the spare, or frees its memory.
template <class T>
void Slab<T>::leave_empty(std::uint32_t number) noexcept {
  if (!spare_) {
    spare_ = number;
    return;
  }
  remove_open(number);
  chunks_[number].values.reset();
  bare_.push_back(number);
}

/// Allocates the memory of a chunk: of a chunk that had been freed, or of a new chunk.
template <class T>
void Slab<T>::add_chunk() {
  if (bare_.empty()) {
    const std::size_t count = chunks_.size() + 1;
    DETENT_CHECK(count <= std::numeric_limits<std::uint32_t>::max() / kChunkSize);
    if (open_.size() < count) {
      // A place for the number of every chunk, so that `erase` never allocates.
      open_.resize(2 * count);
      bare_.reserve(2 * count);
    }
    chunks_.emplace_back();
    bare_.push_back(static_cast<std::uint32_t>(count - 1));
  }
  chunks_[bare_.back()].values = std::make_unique<Values>();
  spare_ = bare_.back();  // until `emplace` creates a value in it
  add_open(bare_.back());
  bare_.pop_back();
}

template <class T>
void Slab<T>::add_open(std::uint32_t number) noexcept {
  chunks_[number].open_index = open_count_;
  open_[open_count_++] = number;
}

template <class T>
void Slab<T>::remove_open(std::uint32_t number) noexcept {
  const std::uint32_t index = chunks_[number].open_index;
  open_[index] = open_[--open_count_];
  chunks_[open_[index]].open_index = index;
}

template <class T>
void Slab<T>::check_invariants() const noexcept {
  std::size_t size = 0;
  std::size_t open = 0;
  std::size_t bare = 0;
  for (std::uint32_t number = 0; number < chunks_.size(); ++number) {
    const Chunk& chunk = chunks_[number];
    size += kChunkSize - static_cast<std::size_t>(std::popcount(chunk.free));
    if (chunk.values == nullptr) {
      ++bare;
      DETENT_CHECK(chunk.free == kAllFree);
      DETENT_CHECK(std::ranges::count(bare_, number) == 1);
      continue;
    }
    DETENT_CHECK((chunk.free == kAllFree) == (spare_ == number));
    if (chunk.free == 0) continue;
    ++open;
    DETENT_CHECK(chunk.open_index < open_count_ && open_[chunk.open_index] == number);
  }
  DETENT_CHECK(size == size_ && open == open_count_ && bare == bare_.size());
}

}  // namespace detent
