// The machine of a benchmark: one core, memory pages of a known size, and the use by other
// programs.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "detent/check.h"

namespace detent::bench {

/// How memory is mapped: in pages of 4 KiB, or of 2 MiB if the kernel grants them.
enum class Pages { small, huge };

inline const char* name_of(Pages pages) { return pages == Pages::huge ? "2 MiB" : "4 KiB"; }

/// Moves this thread to the last core that it may use, because the first core serves most
/// interrupts.
inline void pin_to_one_core() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return;
  for (std::size_t core = CPU_SETSIZE; core-- > 0;) {
    if (!CPU_ISSET(core, &cores)) continue;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) == 0) std::printf("pinned to core %zu\n", core);
    return;
  }
}

/// An array of `count` objects on pages of the given kind, all constructed from the same arguments.
/// It does not use malloc, so the memory of a queue and the memory of its user can be measured
/// separately.
template <class T>
class PageArray {
 public:
  template <class... Arguments>
  PageArray(std::size_t count, Pages pages, Arguments&... arguments)
      : count_(count), bytes_(count * sizeof(T) + 2 * kHuge) {
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    mapping_ = mmap(nullptr, bytes_, kAccess, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    DETENT_CHECK(mapping_ != MAP_FAILED);
    void* start = mapping_;
    std::size_t space = bytes_;
    std::align(kHuge, count * sizeof(T), start, space);
    madvise(start, space, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    first_ = static_cast<T*>(start);
    for (std::size_t i = 0; i < count_; ++i) std::construct_at(first_ + i, arguments...);
  }
  ~PageArray() {
    std::destroy_n(first_, count_);
    munmap(mapping_, bytes_);
  }
  PageArray(const PageArray&) = delete;
  PageArray& operator=(const PageArray&) = delete;

  T& operator[](std::size_t index) { return first_[index]; }
  std::size_t index_of(const T& object) const { return static_cast<std::size_t>(&object - first_); }
  std::span<T> all() { return {first_, count_}; }

 private:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;

  std::size_t count_;
  std::size_t bytes_;
  void* mapping_ = nullptr;
  T* first_ = nullptr;
};

/// Maps memory to test whether the kernel grants pages of 2 MiB on request.
inline bool huge_pages_are_granted() {
  const PageArray<char> probe(std::size_t{8} << 20, Pages::huge);
  std::ifstream mappings("/proc/self/smaps_rollup");
  for (std::string line; std::getline(mappings, line);) {
    if (line.starts_with("AnonHugePages:")) return std::atoi(line.c_str() + 14) > 0;
  }
  return false;
}

/// Restarts the program with a malloc that also requests huge pages, so the memory of a queue is
/// mapped like the timers. The setting is a tunable of glibc 2.35 and later, read only at the
/// start. Returns in the restarted program.
inline void use_huge_pages_in_malloc(char** argv) {
  if (std::getenv("GLIBC_TUNABLES") != nullptr) return;
  setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
  execv("/proc/self/exe", argv);
  std::perror("/proc/self/exe");
}

}  // namespace detent::bench
