// timers_bench: TimerWheel beside an indexed heap, a sorted map and an empty driver.
//
//     timers_bench [--n 10k,1m,10m] [--reps 3] [--only a,g] [--queues TimerWheel,heap] [--box 3]
//                  [--csv FILE] [--quick]
//
// timer_workloads.h says what is measured. Every queue first shows that it fires on time. Then the
// queues take turns, once to warm up and `reps` times to measure, on one core; the table shows the
// median, in nanoseconds of thread CPU time, and how many times ours each other queue takes.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/stopwatch.h"
#include "bench/timer_queues.h"
#include "bench/timer_workloads.h"

namespace detent::bench {
namespace {

struct Options {
  std::vector<std::uint32_t> timer_counts{10'000, 1'000'000, 10'000'000};
  std::uint32_t repetitions = 3;
  std::set<std::string> only;
  std::set<std::string> queues;
  double box_seconds = 3;
  std::string csv = "timers_bench.csv";
};

struct Contender {
  std::string name;
  bool fires;
  std::uint64_t (*count_wrong_firings)();
  void (*run)(const WorkloadOptions&, const Record&);
};

template <class Queue>
Contender contender() {
  using Slow = Outlined<Queue>;
  return {.name = Queue::kName,
          .fires = Queue::kFires,
          .count_wrong_firings = &count_wrong_firings<Slow>,
          .run = [](const WorkloadOptions& options, const Record& record) {
            Workloads<Slow>(options, record).run();
          }};
}

std::vector<Contender> contenders(const std::set<std::string>& wanted) {
  std::vector<Contender> all{contender<WheelQueue>(), contender<HeapQueue>(),
                             contender<MultimapQueue>(), contender<NullQueue>()};
  if (!wanted.empty()) {
    std::erase_if(all, [&](const Contender& each) { return !wanted.contains(each.name); });
  }
  return all;
}

// Values by measure and queue, one for each repetition.
using Results = std::map<std::string, std::map<std::string, std::vector<double>>>;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print_table(const std::vector<Contender>& queues, const Results& results) {
  std::printf("%-18s", "");
  for (const Contender& queue : queues) std::printf(" %11s", queue.name.c_str());
  for (std::size_t i = 1; i < queues.size(); ++i) std::printf(" %10s ×", queues[i].name.c_str());
  std::printf("\n");
  for (const auto& [measure, values] : results) {
    std::printf("%-18s", measure.c_str());
    const auto value_of = [&by_queue = values](const Contender& queue) {
      const auto found = by_queue.find(queue.name);
      return found == by_queue.end() ? -1.0 : median(found->second);
    };
    for (const Contender& queue : queues) {
      if (value_of(queue) < 0) {
        std::printf(" %11s", "-");
      } else {
        std::printf(" %11.1f", value_of(queue));
      }
    }
    const double ours = value_of(queues.front());
    for (std::size_t i = 1; i < queues.size(); ++i) {
      if (ours <= 0 || value_of(queues[i]) < 0) {
        std::printf(" %12s", "-");
      } else {
        std::printf(" %12.2f", value_of(queues[i]) / ours);
      }
    }
    std::printf("\n");
  }
  std::printf("\n");
}

// Read-modify-write of random 64-byte lines, the address of each depending on the one before: what
// this machine takes for one cache miss that nothing hides. Figures scale with it.
double dependent_line_nanoseconds(std::uint32_t line_count) {
  struct alignas(64) Line {
    std::uint64_t value = 0;
  };
  constexpr int kSteps = 2'000'000;
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

void run_all(const Options& options, std::uint32_t timer_count, std::FILE* csv) {
  const std::vector<Contender> queues = contenders(options.queues);
  Results results;
  const Stopwatch cpu;
  for (std::uint32_t repetition = 0; repetition <= options.repetitions; ++repetition) {
    for (const Contender& queue : queues) {
      const WorkloadOptions workload{.timer_count = timer_count,
                                     .seed = repetition,
                                     .box_seconds = options.box_seconds,
                                     .only = options.only};
      queue.run(workload, [&](const std::string& measure, double value) {
        if (repetition == 0) return;  // it warmed up
        results[measure][queue.name].push_back(value);
        std::fprintf(csv, "%u,%s,%s,%u,%.2f\n", timer_count, queue.name.c_str(), measure.c_str(),
                     repetition, value);
      });
    }
  }
  // CPU time against wall time tells how much of the core others had, whose data fill the caches.
  std::printf("n = %u, median of %u, ns (bytes: bytes a timer; wake-ups: count)\n", timer_count,
              options.repetitions);
  std::printf("a dependent random line: %.1f ns; this process had %.0f %% of its core\n",
              dependent_line_nanoseconds(timer_count),
              100 * cpu.seconds() / std::max(cpu.wall_seconds(), 1e-9));
  print_table(queues, results);
  std::fflush(stdout);
}

bool verify(const Options& options) {
  bool all_right = true;
  for (const Contender& queue : contenders(options.queues)) {
    if (!queue.fires) continue;
    const std::uint64_t wrong = queue.count_wrong_firings();
    std::printf("verify %-12s 150000 ticks, %llu wrong\n", queue.name.c_str(),
                static_cast<unsigned long long>(wrong));
    all_right = all_right && wrong == 0;
  }
  std::fflush(stdout);
  return all_right;
}

// To the last core this process may use: the first one serves most interrupts.
void pin_to_one_core() {
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

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: timers_bench [--n 10k,1m,10m] [--reps 3] [--only a,b,b1,b3,c,d,dL,e,f,g]"
               "\n                    [--queues TimerWheel,heap,multimap,null] [--box SECONDS]"
               "\n                    [--csv FILE] [--quick]\n");
  std::exit(2);
}

std::uint32_t parse_count(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (unit == "k") value *= 1e3;
  if (unit == "m") value *= 1e6;
  if ((!unit.empty() && unit != "k" && unit != "m") || value < 1'000 || value > 1e9) usage();
  return static_cast<std::uint32_t>(value);
}

void read_option(Options& options, const std::string& name, const std::string& value) {
  const std::vector<std::string> parts = split(value);
  if (name == "--n") {
    options.timer_counts.clear();
    for (const std::string& part : parts) options.timer_counts.push_back(parse_count(part));
  } else if (name == "--reps") {
    options.repetitions = static_cast<std::uint32_t>(std::max(1, std::atoi(value.c_str())));
  } else if (name == "--only") {
    options.only = {parts.begin(), parts.end()};
  } else if (name == "--queues") {
    options.queues = {parts.begin(), parts.end()};
  } else if (name == "--box") {
    options.box_seconds = std::atof(value.c_str());
  } else if (name == "--csv") {
    options.csv = value;
  } else {
    usage();
  }
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--quick") {
      options.timer_counts = {10'000};
      options.repetitions = 1;
      options.only = {"g"};
    } else if (i + 1 < arguments.size()) {
      read_option(options, arguments[i], arguments[i + 1]);
      ++i;
    } else {
      usage();
    }
  }
  if (contenders(options.queues).empty()) usage();
  return options;
}

int run(const Options& options) {
  std::FILE* const csv = std::fopen(options.csv.c_str(), "w");
  if (csv == nullptr) {
    std::perror(options.csv.c_str());
    return 1;
  }
  std::fprintf(csv, "timers,queue,measure,repetition,value\n");
  pin_to_one_core();
  const bool all_right = verify(options);
  if (all_right) {
    for (const std::uint32_t timer_count : options.timer_counts) run_all(options, timer_count, csv);
  }
  std::fclose(csv);
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  return detent::bench::run(detent::bench::parse({argv + 1, argv + argc}));
}
