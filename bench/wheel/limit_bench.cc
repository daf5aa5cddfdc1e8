// limit_bench: the time of memory accesses alone, as a lower limit for the figures of timers_bench.
//
//     limit_bench [--n 10k,1m,10m] [--reps 3] [--csv FILE] [--quick]
//
// Reads, modifies and writes n random records of 8, 16, 32 and 64 bytes, on pages of 4 KiB and of
// 2 MiB:
//
//  - independent: the processor may overlap the accesses
//  - dependent: the address of each record depends on the previous record, so accesses cannot
//    overlap
//  - 3 lines: three records per operation, as when a timer is unlinked from between two timers
//  - prefetched: each record is prefetched 16 operations before its use
//  - driver: records are chosen, but not accessed
//
// An operation of a queue that touches k lines of timer memory takes at least k of these times.
// Figures are medians of nanoseconds of thread CPU time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "bench/machine.h"
#include "bench/results.h"
#include "bench/stopwatch.h"

namespace detent::bench {
namespace {

struct Options {
  std::vector<std::uint32_t> counts{10'000, 1'000'000, 10'000'000};
  std::uint32_t repetitions = 3;
  std::uint64_t operations = 2'000'000;
  std::string csv = "limit_bench.csv";
};

template <std::size_t kBytes>
struct alignas(kBytes) Sized {
  std::uint64_t value = 0;
};

// Makes the compiler believe that `value` is used.
void keep(std::uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

/// Measures records of one size at one count, on pages of one kind.
template <std::size_t kBytes>
class Limit {
 public:
  Limit(std::uint32_t count, Pages pages, std::uint64_t operations)
      : count_(count), operations_(operations), records_(count, pages) {}

  double driver() {
    Rng random(1);
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < operations_; ++i) keep(random.below(count_));
    return watch.nanoseconds_each(static_cast<double>(operations_));
  }

  double independent() {
    Rng random(2);
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < operations_; ++i) records_[random.below(count_)].value += i;
    return watch.nanoseconds_each(static_cast<double>(operations_));
  }

  double dependent() {
    Rng random(3);
    std::uint64_t seen = 0;
    const Stopwatch watch;
    const std::uint64_t operations = operations_ / 4;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const std::uint64_t index = ((random.next() + seen) >> 32) * count_ >> 32;
      seen = records_[index].value++;
    }
    keep(seen);
    return watch.nanoseconds_each(static_cast<double>(operations));
  }

  double three_lines() {
    Rng random(4);
    const Stopwatch watch;
    const std::uint64_t operations = operations_ / 2;
    for (std::uint64_t i = 0; i < operations; ++i) {
      for (int line = 0; line < 3; ++line) records_[random.below(count_)].value += i;
    }
    return watch.nanoseconds_each(static_cast<double>(operations));
  }

  double prefetched() {
    constexpr std::uint64_t kAhead = 16;
    Rng random(5);
    std::uint32_t indices[kAhead] = {};
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < operations_; ++i) {
      std::uint32_t& index = indices[i % kAhead];
      records_[index].value += i;
      index = random.below(count_);
      __builtin_prefetch(&records_[index], 1);
    }
    return watch.nanoseconds_each(static_cast<double>(operations_));
  }

 private:
  std::uint32_t count_;
  std::uint64_t operations_;
  PageArray<Sized<kBytes>> records_;
};

template <std::size_t kBytes>
void measure(const Options& options, std::uint32_t count, Pages pages, Results& results) {
  Limit<kBytes> limit(count, pages, options.operations);
  limit.independent();  // to warm up
  for (std::uint32_t repetition = 1; repetition <= options.repetitions; ++repetition) {
    const std::string row = std::to_string(kBytes) + " B / " + name_of(pages);
    const auto add = [&](const char* measure, double value) {
      results.add({count, row, measure, repetition, value});
    };
    add("driver", limit.driver());
    add("independent", limit.independent());
    add("dependent", limit.dependent());
    add("3 lines", limit.three_lines());
    add("prefetched", limit.prefetched());
  }
}

void measure_all(const Options& options) {
  Results results(options.csv);
  pin_to_one_core();
  for (const std::uint32_t count : options.counts) {
    std::vector<std::string> rows;
    for (const Pages pages : {Pages::small, Pages::huge}) {
      if (pages == Pages::huge && !huge_pages_are_granted()) {
        std::printf("the kernel grants no pages of 2 MiB\n");
        continue;
      }
      measure<8>(options, count, pages, results);
      measure<16>(options, count, pages, results);
      measure<32>(options, count, pages, results);
      measure<64>(options, count, pages, results);
      for (const char* const size : {"8", "16", "32", "64"}) {
        rows.push_back(std::string(size) + " B / " + name_of(pages));
      }
    }
    std::printf("%u records, median of %u, ns an operation\n", count, options.repetitions);
    results.print(count, rows);
  }
}

[[noreturn]] void usage() {
  std::fprintf(stderr, "usage: limit_bench [--n 10k,1m,10m] [--reps 3] [--csv FILE] [--quick]\n");
  std::exit(2);
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  const auto quick = [&] {
    options.repetitions = 1;
    options.operations = 500'000;
  };
  const bool understood = read_arguments(arguments, {{"--quick", quick}},
                                         {{"--n", into(options.counts)},
                                          {"--reps", repetitions_into(options.repetitions)},
                                          {"--csv", into(options.csv)}});
  if (!understood) usage();
  return options;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  using namespace detent::bench;
  measure_all(parse({argv + 1, argv + argc}));
}
