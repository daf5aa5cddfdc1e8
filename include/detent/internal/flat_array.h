// FlatArray: a growing array of plain values in one piece of memory. Wheels keep cells and numbers
// in it.
//
// A std::vector has three disadvantages here: it copies all elements when it grows, it returns no
// memory, and it lies in pages of 4 KiB. In an array of many megabytes the processor then waits for
// its page table at nearly every access. From 128 KiB on, FlatArray gets its own memory from Linux.
// Smaller arrays, and arrays on other systems, use the heap. With memory from Linux:
//
//
//     growing      moves page table entries to a place with room (mremap), and copies no bytes.
//                  Until it is done, it needs address space for the old array, the new array and 2
//                  MiB
//     untouched    memory that was never written costs nothing, so the array can double each time.
//                  Exceptions: if vm.overcommit_memory is 2, the memory counts as used; if the
//                  process locks its memory, the memory is used
//     returned     any part that is no longer needed (unless locked)
//     from 4 MiB   in pages of 2 MiB, if transparent huge pages are enabled for programs that ask
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

/// Calls `allocate`. Returns false if it throws std::bad_alloc. If the program is compiled without
/// exceptions, a lack of memory ends the process instead.
template <class Allocate>
[[nodiscard]] bool try_allocate(const Allocate& allocate) noexcept {
#if defined(__cpp_exceptions)
  try {
    allocate();
  } catch (const std::bad_alloc&) {
    return false;
  }
#else
  allocate();
#endif
  return true;
}

/// Size and alignment of a large page of the processor, in bytes.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Memory from the heap.
struct HeapPages {
  static constexpr bool usable() noexcept { return true; }
  static constexpr std::size_t kHugeFrom = std::numeric_limits<std::size_t>::max();

  /// Grows memory from `old_bytes` at `old` (null: no memory yet) to `bytes`; new bytes are zero.
  /// Returns the new address. Returns null if there is no memory; `old` is then unchanged.
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
/// Memory from the kernel, for sizes that are powers of two and at least 64 KiB.
struct MappedPages {
  static constexpr bool usable() noexcept { return true; }
  /// Arrays of at least this size use pages of kHugePage.
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
    // The kernel may not support such pages, or have no free ones. Small pages work too.
    if (bytes >= kHugeFrom) static_cast<void>(madvise(start, bytes, MADV_HUGEPAGE));
    return start;
  }
  static void release(void* start, std::size_t bytes) noexcept { munmap(start, bytes); }
  static void touch(void* start, std::size_t bytes) noexcept {
    // Linux before 5.14 does not have this call, and provides pages when they are written.
    static_cast<void>(madvise(start, bytes, kPopulate));
  }
  static void give_back(void* start, std::size_t bytes) noexcept {
    // The kernel keeps locked pages.
    static_cast<void>(madvise(start, bytes, MADV_DONTNEED));
  }

  /// Returns the number of bytes that the kernel holds, or all bytes if it does not tell. O(bytes /
  /// 4 KiB).
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

  // Grows the memory as one mapping, because Linux before 6.17 cannot move two mappings at once.
  // Returns the new address, or MAP_FAILED. A possible reason for a failure: a part of the memory
  // was locked and became a mapping of its own.
  static void* move(void* old, std::size_t old_bytes, std::size_t bytes) noexcept {
    if (bytes < kHugeFrom) return mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
    // After a failure the place may already be unmapped and belong to another thread, so it is not
    // unmapped again.
    constexpr int kThere = MREMAP_MAYMOVE | MREMAP_FIXED;
    void* const place = map(bytes);
    return place == MAP_FAILED ? place : mremap(old, old_bytes, bytes, kThere, place);
  }

  // Returns memory from the kernel, or MAP_FAILED.
  static void* map(std::size_t bytes) noexcept {
    // A page of 2 MiB starts at a multiple of 2 MiB. Therefore one page more is mapped, and both
    // ends are unmapped.
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

/// Defined by AddressSanitizer and LeakSanitizer; null without them.
extern "C" [[gnu::weak]] int __lsan_do_recoverable_leak_check();  // NOLINT: their name

/// MappedPages, except under a sanitizer, which looks for leaks and overruns only in the heap. The
/// check is made at run time, because a library in the program may be compiled without the
/// sanitizer.
struct LargePages : MappedPages {
  static bool usable() noexcept { return &__lsan_do_recoverable_leak_check == nullptr; }
};
#else
using LargePages = HeapPages;
#endif

/// A growing array of `T`s. New elements are zero bytes, which must be a valid `T`. Not movable.
/// Thread-compatible.
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

  /// Grows to at least `count` elements, and at least to the double size. Moves the elements. If
  /// there is no memory, the process ends. O(size) for a small array, O(pages) for a large array.
  [[gnu::noinline]] void grow(std::size_t count) noexcept {
    const bool has_memory = try_grow(count);
    DETENT_CHECK(has_memory);
  }

  /// As grow. Returns false if there is no memory; the array is then unchanged.
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

  /// Returns true if the array is in large pages. Only whole large pages are worth returning.
  bool is_huge() const noexcept { return is_large() && bytes() >= Large::kHugeFrom; }

  /// Returns the memory of `count` elements to the kernel, if it came from the kernel and the
  /// kernel takes it. The values of these elements are then undefined; each may be written again at
  /// any time. Requires: `first` and `count` are multiples of 64 KiB.
  void give_back(std::size_t first, std::size_t count) noexcept {
    if (is_large()) Large::give_back(first_ + first, count * sizeof(T));
  }

  /// Makes the kernel provide the memory of `count` elements now, instead of page by page at the
  /// first write. Requires: `first` is a multiple of 64 KiB.
  void touch(std::size_t first, std::size_t count) noexcept {
    if (is_large()) Large::touch(first_ + first, count * sizeof(T));
  }

  /// Returns the number of bytes that the kernel holds; 0 for heap memory. O(pages).
  std::size_t mapped_bytes() const noexcept {
    return is_large() ? Large::resident_bytes(first_, bytes()) : 0;
  }

 private:
  // One mapping per small array would be too many for a program with many wheels
  // (vm.max_map_count).
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
