// timers_bench: compares every queue of the library with the timers of event loops, a sorted map
// and an empty queue.
//
//     timers_bench [--n 10k,1m,10m] [--reps 3] [--only a,g] [--queues TimerWheel,libuv] [--box 1]
//                  [--sweep 100,1k,10k,100k,1m] [--huge] [--csv FILE] [--quick]
//     DETENT_TRACE=FILE timers_bench --n 1,100,1k,10k,100k,1m,10m     every size, also workload r
//
// timer_workloads.h describes the workloads, and timer_sweep.h describes --sweep. Each queue must
// first show that it fires in time. Then the repetitions of the queues are interleaved on one core:
// one to warm up, and `reps` to measure. The tables show medians, in nanoseconds of thread CPU
// time, and half of their 95 % confidence interval. With --huge, the timers and all memory from
// malloc are on pages of 2 MiB.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "bench/machine.h"
#include "bench/results.h"
#include "bench/stopwatch.h"
#include "bench/wheel/contender.h"
#include "bench/wheel/own_contenders.h"
#include "bench/wheel/peers.h"
#include "bench/wheel/recorded_delays.h"

namespace detent::bench {
namespace {

struct Options {
  std::vector<std::uint32_t> timer_counts{10'000, 1'000'000, 10'000'000};
  bool sweep = false;
  std::uint32_t repetitions = 3;
  std::set<std::string> only;
  std::set<std::string> queues;
  double box_seconds = 1;
  Pages pages = Pages::small;
  Tick verified_ticks = 150'000;
  std::vector<Tick> recorded_delays = bench::recorded_delays();
  std::string csv = "timers_bench.csv";
};

std::vector<Contender> contenders(const std::set<std::string>& wanted) {
  std::vector<Contender> all;
  for (const auto& some : {own_contenders(), peer_contenders(), baseline_contenders()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  if (!wanted.empty()) {
    std::erase_if(all, [&](const Contender& each) { return !wanted.contains(each.name); });
  }
  return all;
}

std::vector<std::string> names_of(const std::vector<Contender>& queues) {
  std::vector<std::string> names;
  for (const Contender& queue : queues) names.push_back(queue.name);
  return names;
}

void print_notes(const std::vector<Contender>& queues) {
  for (const Contender& queue : queues) {
    if (!queue.note.empty()) std::printf("%-18s %s\n", queue.name.c_str(), queue.note.c_str());
    if (queue.limits.span < Tick{1} << 36) {
      std::printf("%-18s sits out what goes beyond its span of %llu ticks\n", queue.name.c_str(),
                  static_cast<unsigned long long>(queue.limits.span));
    }
  }
  const std::string missing = missing_peers();
  if (!missing.empty()) {
    std::printf("left out, their packages were missing when this was built:%s\n", missing.c_str());
  }
  std::printf("\n");
}

// Reads, modifies and writes random 64-byte lines. The address of each line depends on the previous
// line, so the result is the full time of one cache miss on this machine. Other figures scale with
// it; limit_bench has more.
double dependent_line_nanoseconds(std::uint32_t line_count) {
  struct alignas(64) Line {
    std::uint64_t value = 0;
  };
  constexpr int kSteps = 1'000'000;
  std::vector<Line> lines(line_count);
  Rng random(1);
  std::uint64_t seen = 0;
  const Stopwatch watch;
  for (int i = 0; i < kSteps; ++i) {
    Line& line = lines[((random.next() + seen) >> 32) * line_count >> 32];
    seen = line.value++;
  }
  return watch.nanoseconds_each(kSteps);
}

/// Measures at one timer count. Queues that are too slow are removed from `queues`.
void run_all(const Options& options, std::uint32_t timer_count, std::vector<Contender>& queues,
             Results& results) {
  const std::vector<std::string> names = names_of(queues);
  const Stopwatch cpu;
  for (std::uint32_t repetition = 0; repetition <= options.repetitions; ++repetition) {
    const bool warming_up = repetition == 0;
    const RunOptions run{.capacity = {.timers = timer_count, .pages = options.pages},
                         .seed = repetition,
                         .box_seconds = options.box_seconds * (warming_up ? 0.25 : 1),
                         .only = options.only,
                         .recorded_delays = options.recorded_delays};
    std::erase_if(queues, [&](const Contender& queue) {
      const Record record = [&](const std::string& measure, double value) {
        if (!warming_up) results.add({timer_count, queue.name, measure, repetition, value});
      };
      const Outcome outcome = (options.sweep ? queue.sweep : queue.run)(run, record);
      if (outcome == Outcome::measured) return false;
      std::printf("%s sits out from n = %u on: filling it takes too long\n", queue.name.c_str(),
                  timer_count);
      return true;
    });
  }
  // CPU time and wall time show how much of the core other programs used. Their data fills the
  // caches.
  std::printf(
      "n = %u, median of %u ± half of its 95 %% interval, ns (bytes: bytes a timer; wake-ups: "
      "count), pages of %s\n",
      timer_count, options.repetitions, name_of(options.pages));
  std::printf("a dependent random line: %.1f ns; this process had %.0f %% of its core\n",
              dependent_line_nanoseconds(timer_count),
              100 * cpu.seconds() / std::max(cpu.wall_seconds(), 1e-9));
  results.print(timer_count, names);
}

bool verify(const Options& options, const std::vector<Contender>& queues) {
  bool all_right = true;
  for (const Contender& queue : queues) {
    if (!queue.limits.fires) continue;
    const std::uint64_t wrong = queue.count_wrong_firings(options.verified_ticks);
    std::printf("%-18s %llu ticks checked, %llu wrong firings\n", queue.name.c_str(),
                static_cast<unsigned long long>(options.verified_ticks),
                static_cast<unsigned long long>(wrong));
    std::fflush(stdout);
    all_right = all_right && wrong == 0;
  }
  return all_right;
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: timers_bench [--n 10k,1m,10m | --sweep 100,1k,10k,100k,1m] [--reps 3]"
               "\n                    [--only a,b,b1,b3,c,d,dL,e,f,g,r,t,w] [--queues NAME,NAME]"
               "\n                    [--box SECONDS] [--huge] [--csv FILE] [--quick]\nqueues:");
  for (const std::string& name : names_of(contenders({}))) {
    std::fprintf(stderr, " %s", name.c_str());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  const auto quick = [&] {
    options.timer_counts = {10'000};
    options.repetitions = 1;
    options.only = {"g"};
    options.box_seconds = 0.2;
    options.verified_ticks = 20'000;
  };
  const auto read_sweep = [&](const std::string& value) {
    options.sweep = true;
    return into(options.timer_counts)(value);
  };
  const bool understood = read_arguments(
      arguments, {{"--quick", quick}, {"--huge", [&] { options.pages = Pages::huge; }}},
      {{"--n", into(options.timer_counts, 1)},
       {"--sweep", read_sweep},
       {"--reps", repetitions_into(options.repetitions)},
       {"--only", into(options.only)},
       {"--queues", into(options.queues)},
       {"--box", into(options.box_seconds)},
       {"--csv", into(options.csv)}});
  std::ranges::sort(options.timer_counts);
  if (!understood || contenders(options.queues).empty()) usage();
  return options;
}

int run(const Options& options) {
  Results results(options.csv);
  if (options.pages == Pages::huge && !huge_pages_are_granted()) {
    std::printf("the kernel grants no pages of 2 MiB, so there is nothing to measure\n");
    return 0;
  }
  pin_to_one_core();
  std::vector<Contender> queues = contenders(options.queues);
  print_notes(queues);
  if (!verify(options, queues)) return 1;
  std::printf("\n");
  for (const std::uint32_t timer_count : options.timer_counts) {
    run_all(options, timer_count, queues, results);
  }
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  using namespace detent::bench;
  const Options options = parse({argv + 1, argv + argc});
  if (options.pages == Pages::huge) use_huge_pages_in_malloc(argv);
  return run(options);
}
