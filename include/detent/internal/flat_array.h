// A row of plain values in one piece of memory that grows: where wheels keep cells and numbers.
//
// A std::vector copies all it has when it grows, gives nothing back, and lies in pages of 4 KiB, so
// that a processor waits for its page table at nearly every access to a row of many megabytes. From
// 128 KiB on this row asks Linux for memory of its own; below, and elsewhere, it is the heap's:
//
//     growing      moves page table entries to a place with room (mremap), not bytes. Meanwhile it
//                  takes address space for the old, the new and 2 MiB
//     untouched    costs nothing, so that it may double each time; but where vm.overcommit_memory
//                  is 2 it counts as used, and where the process locks its memory it is
//     given back   any part of it, once it is no longer needed (unless locked)
//     from 4 MiB   in pages of 2 MiB, where transparent huge pages are enabled for who asks
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#endif

#include "detent/check.h"

namespace detent::internal {

/// Bytes of a large page of the processor, and where one may start.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Memory of the heap.
struct HeapPages {
  static constexpr bool usable() noexcept { return true; }
  static constexpr std::size_t kHugeFrom = std::numeric_limits<std::size_t>::max();

  /// Makes `old_bytes` at `old` (none, when null) `bytes`, the new ones zero. Returns: where; null
  /// when there is no memory for it: `old` is then as it was.
  static void* grow(void* old, std::size_t old_bytes, std::size_t bytes) noexcept {
    void* const start = ::operator new(bytes, std::nothrow);
    if (start == nullptr) return nullptr;
    if (old != nullptr) std::memcpy(start, old, old_bytes);
    std::memset(static_cast<std::byte*>(start) + old_bytes, 0, bytes - old_bytes);
    ::operator delete(old);
    return start;
  }
  static void release(void* start, std::size_t) noexcept { ::operator delete(start); }
  static void touch(void*, std::size_t) noexcept {}
  static void give_back(void*, std::size_t) noexcept {}
  static std::size_t resident_bytes(void*, std::size_t) noexcept { return 0; }
};

#if defined(__linux__)
/// Memory of the kernel, for sizes that are powers of two and at least 64 KiB.
struct MappedPages {
  static constexpr bool usable() noexcept { return true; }
  /// Rows of that size are in pages of kHugePage.
  static constexpr std::size_t kHugeFrom = 2 * kHugePage;

  /// As HeapPages::grow.
  static void* grow(void* old, std::size_t old_bytes, std::size_t bytes) noexcept {
    void* start = old == nullptr ? map(bytes) : move(old, old_bytes, bytes);
    if (start == MAP_FAILED && old != nullptr) {
      start = map(bytes);
      if (start == MAP_FAILED) return nullptr;
      std::memcpy(start, old, old_bytes);
      release(old, old_bytes);
    }
    if (start == MAP_FAILED) return nullptr;
    // The kernel may know no such pages, or have none: they are not needed.
    if (bytes >= kHugeFrom) static_cast<void>(madvise(start, bytes, MADV_HUGEPAGE));
    return start;
  }
  static void release(void* start, std::size_t bytes) noexcept { munmap(start, bytes); }
  static void touch(void* start, std::size_t bytes) noexcept {
    // Linux before 5.14 knows no such call, and gives pages when they are written.
    static_cast<void>(madvise(start, bytes, kPopulate));
  }
  static void give_back(void* start, std::size_t bytes) noexcept {
    // It keeps what is locked.
    static_cast<void>(madvise(start, bytes, MADV_DONTNEED));
  }

  /// What the kernel holds of it: all, where it does not say. O(bytes / 4 KiB).
  static std::size_t resident_bytes(void* start, std::size_t bytes) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::array<unsigned char, 512> pages{};
    std::size_t count = 0;
    for (std::size_t at = 0; at < bytes; at += pages.size() * page) {
      const std::size_t length = std::min(bytes - at, pages.size() * page);
      if (mincore(static_cast<std::byte*>(start) + at, length, pages.data()) != 0) pages.fill(1);
      for (std::size_t i = 0; i < length / page; ++i) count += pages[i] & 1u;
    }
    return count * page;
  }

 private:
  static constexpr int kPopulate = 23;  // MADV_POPULATE_WRITE, which older headers lack

  // Grows it as one mapping: before 6.17 Linux moves no two at once. Returns: where it is, or
  // MAP_FAILED, such as when a part of it was locked and so became a mapping of its own.
  static void* move(void* old, std::size_t old_bytes, std::size_t bytes) noexcept {
    if (bytes < kHugeFrom) return mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
    // On failure the place may be unmapped already, and another thread's: it is left as it is.
    constexpr int kThere = MREMAP_MAYMOVE | MREMAP_FIXED;
    void* const place = map(bytes);
    return place == MAP_FAILED ? place : mremap(old, old_bytes, bytes, kThere, place);
  }

  // Returns: memory of the kernel, or MAP_FAILED.
  static void* map(std::size_t bytes) noexcept {
    // A page of 2 MiB starts at a multiple of that, so one more is mapped and the ends are let go.
    const std::size_t more = bytes >= kHugeFrom ? kHugePage : 0;
    constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const mapped = mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, kOwn, -1, 0);
    if (more == 0 || mapped == MAP_FAILED) return mapped;
    auto* const first = static_cast<std::byte*>(mapped);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(mapped) % kHugePage;
    if (before != 0) munmap(first, before);
    munmap(first + before + bytes, more - before);
    return first + before;
  }
};

/// Of AddressSanitizer and LeakSanitizer; null without them.
extern "C" [[gnu::weak]] int __lsan_do_recoverable_leak_check();  // NOLINT: their name

/// MappedPages, but not where a sanitizer runs, which looks for leaks and overruns in the heap
/// only. Asked when the program runs, since a library in it may be compiled without.
struct LargePages : MappedPages {
  static bool usable() noexcept { return &__lsan_do_recoverable_leak_check == nullptr; }
};
#else
using LargePages = HeapPages;
#endif

/// A growing row of `T`s. A new one is zero bytes, which must be a `T` that can be used. Not
/// movable. Thread-compatible.
template <class T, class Large = LargePages>
class FlatArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::has_single_bit(sizeof(T)));

  FlatArray() noexcept = default;
  ~FlatArray() {
    if (is_large()) {
      Large::release(first_, bytes());
    } else {
      HeapPages::release(first_, bytes());
    }
  }
  FlatArray(const FlatArray&) = delete;
  FlatArray& operator=(const FlatArray&) = delete;

  T& operator[](std::size_t index) noexcept { return first_[index]; }
  const T& operator[](std::size_t index) const noexcept { return first_[index]; }
  std::size_t size() const noexcept { return size_; }

  /// Makes it at least `count` long, and twice as long as before. Moves what is in it. Running out
  /// of memory ends the process. O(size) while it is small, then O(pages).
  [[gnu::noinline]] void grow(std::size_t count) noexcept {
    const bool has_memory = try_grow(count);
    DETENT_CHECK(has_memory);
  }

  /// The same. Returns: false when there is no memory for it: the row is then as it was.
  [[nodiscard]] bool try_grow(std::size_t count) noexcept {
    if (count <= size_) return true;
    if (count > kMostBytes / sizeof(T)) return false;
    const std::size_t old_bytes = bytes();
    const std::size_t new_bytes = std::bit_ceil(std::max<std::size_t>(count * sizeof(T), 64));
    const bool moves_to_large = !is_large() && is_large(new_bytes);
    void* start = nullptr;
    if (moves_to_large) {
      start = Large::grow(nullptr, 0, new_bytes);
    } else if (is_large()) {
      start = Large::grow(first_, old_bytes, new_bytes);
    } else {
      start = HeapPages::grow(first_, old_bytes, new_bytes);
    }
    if (start == nullptr) return false;
    if (moves_to_large && first_ != nullptr) {
      std::memcpy(start, first_, old_bytes);
      HeapPages::release(first_, old_bytes);
    }
    first_ = static_cast<T*>(start);
    size_ = new_bytes / sizeof(T);
    return true;
  }

  /// Whether it is in large pages, of which only whole ones are worth giving back.
  bool is_huge() const noexcept { return is_large() && bytes() >= Large::kHugeFrom; }

  /// Gives the memory of `count` of them back to the kernel, if it is the kernel's and it takes it.
  /// What they are then is anybody's guess; each may be written again at any time. Requires:
  /// `first` and `count` are multiples of 64 KiB.
  void give_back(std::size_t first, std::size_t count) noexcept {
    if (is_large()) Large::give_back(first_ + first, count * sizeof(T));
  }

  /// Has the kernel give the memory of `count` of them now, and not a page at a time when they are
  /// first written. Requires: `first` is a multiple of 64 KiB.
  void touch(std::size_t first, std::size_t count) noexcept {
    if (is_large()) Large::touch(first_ + first, count * sizeof(T));
  }

  /// Bytes that the kernel holds for it; 0 while it is the heap's. O(pages).
  std::size_t mapped_bytes() const noexcept {
    return is_large() ? Large::resident_bytes(first_, bytes()) : 0;
  }

 private:
  // A mapping each would be too many for a program of many small ones (vm.max_map_count).
  static constexpr std::size_t kLargeBytes = std::size_t{128} << 10;
  static constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max() / 2;

  static bool is_large(std::size_t bytes) noexcept {
    return bytes >= kLargeBytes && Large::usable();
  }
  bool is_large() const noexcept { return is_large(bytes()); }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

  T* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace detent::internal
