// runtime_bench: compares detent::Scheduler and detent::LocalScheduler with other timer runtimes.
//
//     runtime_bench [--n 100k] [--reps 3] [--only pairs,churn,short,cancel,refresh,late,busy,idle]
//                   [--box 0.3] [--samples 1000] [--csv FILE] [--quick]
//
//  - pairs   Schedule and cancel from 1, 2 and 8 threads, with delays of 1 … 60 s. Each thread
//            cancels the oldest of its 64 timers. n other timers are pending, spread over an hour.
//  - churn   Like pairs, but the n timers belong to the threads. So each timer is pending during n
//            schedules.
//  - short   Like pairs with delays of 10 … 100 ms, so a new timer is often due first.
//  - cancel  10 000 timers are cancelled by the thread that scheduled them, or by another thread.
//  - refresh A random timer of n pending timers moves to an hour from now.
//  - late    The time from deadline to callback. Timers of 0.2 … 3 ms follow one another, while n
//            other timers are pending.
//  - busy    Like late, while another thread uses the processor all the time.
//  - idle    n timers are due in an hour: the CPU time, and how often the process wakes up.
//
// Each runtime must first show that its timers fire, and that cancelled timers do not. After each
// run its own counts must agree. Then the repetitions of the runtimes are interleaved in each
// workload: one to warm up, and `reps` to measure. Times are wall time until the runtime has done
// all requests. Tables show medians. An "x" column has medians of the runtime's time divided by the
// Scheduler's time in the same repetition. A "+" column has the runtime's lateness minus the
// lateness of a bare timerfd.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/arguments.h"
#include "bench/results.h"
#include "bench/runtime/runtime_peer.h"

namespace detent::bench {
namespace {

using std::chrono::microseconds;

struct Options {
  std::uint32_t pending = 100'000;
  std::uint32_t repetitions = 3;
  std::set<std::string> only;
  double box_seconds = 0.3;
  double idle_seconds = 2;
  std::uint32_t samples = 1'000;
  std::string csv = "runtime_bench.csv";
};

/// The results of one runtime in one repetition, by measure, in the order of the columns.
using Values = std::vector<std::pair<std::string, double>>;

/// The values that the "x" and "+" columns of one repetition are compared with.
enum class Compared : std::uint8_t { not_at_all, with_ours, with_timerfd };

struct Workload {
  std::string name;
  std::string title;
  Compared compared;
  Values (*measure)(RuntimePeer& peer, const Options& options, std::uint64_t seed);
};

constexpr std::uint32_t kThreads[] = {1, 2, 8};

RuntimeLoad load_of(const Options& options, std::uint64_t seed) {
  return {.pending = options.pending,
          .shortest = std::chrono::seconds{1},
          .longest = std::chrono::seconds{60},
          .seconds = options.box_seconds,
          .samples = options.samples,
          .seed = seed};
}

/// The use of the pending timers: the threads share them equally, or they are only pending.
enum class Pending : std::uint8_t { in_windows, besides };

Values schedule_and_cancel(RuntimePeer& peer, RuntimeLoad load, Pending pending,
                           const std::string& name) {
  Values values;
  double alone = 0;
  const std::uint32_t timers = load.pending;
  if (pending == Pending::in_windows) load.pending = 0;
  for (const std::uint32_t threads : kThreads) {
    if (pending == Pending::in_windows) load.window = timers / threads;
    load.threads = threads;
    const std::optional<double> each = peer.schedule_and_cancel(load);
    if (!each) break;
    values.emplace_back(name + " " + std::to_string(threads), *each);
    if (threads == 1) alone = *each;
    if (threads == 2) values.emplace_back(name + " 1:2", alone / *each);
  }
  return values;
}

Values measure_pairs(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  return schedule_and_cancel(peer, load_of(options, seed), Pending::besides, "pairs");
}

Values measure_churn(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  return schedule_and_cancel(peer, load_of(options, seed), Pending::in_windows, "churn");
}

Values measure_short(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  RuntimeLoad load = load_of(options, seed);
  load.shortest = std::chrono::milliseconds{10};
  load.longest = std::chrono::milliseconds{100};
  return schedule_and_cancel(peer, load, Pending::besides, "short");
}

Values measure_cancel(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  const std::optional<CancelCost> cost = peer.cancel(load_of(options, seed));
  if (!cost) return {};
  return {{"cancel own", cost->own_thread},
          {"cancel other", cost->other_thread},
          {"cancel oth:own", cost->other_thread / cost->own_thread}};
}

Values measure_refresh(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  const std::optional<double> each = peer.refresh(load_of(options, seed));
  if (!each) return {};
  return {{"refresh ns", *each}};
}

Values measure_lateness(RuntimePeer& peer, const Options& options, std::uint64_t seed,
                        const std::string& name) {
  RuntimeLoad load = load_of(options, seed);
  load.shortest = microseconds{200};
  load.longest = microseconds{3'000};
  std::vector<double> late = peer.lateness(load);
  if (late.empty()) return {};
  std::ranges::sort(late);
  const auto quantile = [&late](double share) {
    const double rank = std::ceil(share * static_cast<double>(late.size())) - 1;
    return late[static_cast<std::size_t>(std::max(0.0, rank))] * 1e-3;
  };
  const auto early = std::ranges::lower_bound(late, 0.0) - late.begin();
  const double early_share = static_cast<double>(early) / static_cast<double>(late.size());
  return {{name + " p50", quantile(0.5)},
          {name + " p99", quantile(0.99)},
          {name + " max", quantile(1)},
          {name + " early %", 100 * early_share}};
}

Values measure_late(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  return measure_lateness(peer, options, seed, "late");
}

Values measure_busy(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  const std::jthread spinning([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
    }
  });
  return measure_lateness(peer, options, seed, "busy");
}

Values measure_idle(RuntimePeer& peer, const Options& options, std::uint64_t seed) {
  RuntimeLoad load = load_of(options, seed);
  load.seconds = options.idle_seconds;
  const std::optional<ProcessCost> cost = peer.idle(load);
  if (!cost) return {};
  return {{"idle wake-ups", cost->wakeups}, {"idle CPU us", cost->cpu_microseconds}};
}

std::vector<Workload> workloads(const std::set<std::string>& wanted) {
  std::vector<Workload> all{
      {"pairs",
       "schedule and cancel, n others pending, ns a pair (1:2 is what the 2nd thread gains)",
       Compared::with_ours, &measure_pairs},
      {"churn", "schedule and cancel, each of n pending in its turn, ns a pair",
       Compared::with_ours, &measure_churn},
      {"short", "schedule and cancel, delays of 10 to 100 ms, ns a pair", Compared::with_ours,
       &measure_short},
      {"cancel", "cancel by the thread that scheduled and by another, ns", Compared::not_at_all,
       &measure_cancel},
      {"refresh", "moving a pending timer to an hour from now, ns", Compared::with_ours,
       &measure_refresh},
      {"late", "lateness, us", Compared::with_timerfd, &measure_late},
      {"busy", "lateness beside a spinning thread, us", Compared::with_timerfd, &measure_busy},
      {"idle", "nothing due for an hour", Compared::not_at_all, &measure_idle}};
  if (!wanted.empty()) {
    std::erase_if(all, [&](const Workload& each) { return !wanted.contains(each.name); });
  }
  return all;
}

/// Adds, for each runtime, the values that `base` derives from its values.
void compare(const Workload& workload, const Values& base, Values& values) {
  if (workload.compared == Compared::not_at_all) return;
  const bool is_ratio = workload.compared == Compared::with_ours;
  const Values measured = values;
  for (const auto& [measure, value] : measured) {
    const auto same = std::ranges::find(base, measure, &Values::value_type::first);
    const bool is_time = !measure.ends_with("1:2") && !measure.ends_with("%");
    if (same == base.end() || !is_time || measure.ends_with("max")) continue;
    values.emplace_back(measure + (is_ratio ? " x" : " +"),
                        is_ratio ? value / same->second : value - same->second);
  }
}

/// Ends the process if a runtime does not finish its repetition. If a timer never fires, the
/// runtime waits for it forever.
void watch_turn(const Options& options) {
  std::signal(SIGALRM, [](int) {
    constexpr char kMessage[] = "runtime_bench: a runtime did not finish its turn\n";
    const auto ignored = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
    static_cast<void>(ignored);
    _exit(1);
  });
  const double seconds = 60 + 20 * options.box_seconds + 0.05 * options.samples;
  alarm(static_cast<unsigned>(seconds));
}

/// A quarter of the load, to warm up.
Options less_of(Options options) {
  options.box_seconds /= 4;
  options.idle_seconds /= 4;
  options.samples /= 4;
  return options;
}

/// One repetition of each runtime in one workload. Returns the runtimes that took part.
std::vector<std::string> take_turns(const Workload& workload, const RuntimePeers& peers,
                                    const Options& options, std::uint32_t repetition,
                                    Results& results) {
  const bool is_warming_up = repetition == 0;
  const Options sizes = is_warming_up ? less_of(options) : options;
  std::vector<std::string> names;
  std::vector<Values> turns;
  Values base;
  for (const auto& peer : peers) {
    watch_turn(sizes);
    turns.push_back(workload.measure(*peer, sizes, repetition + 1));
    if (!turns.back().empty()) names.push_back(peer->name());
    const bool is_ours = peer == peers.front();
    const bool is_timerfd = peer == peers.back();
    if (workload.compared == Compared::with_ours ? is_ours : is_timerfd) base = turns.back();
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (is_warming_up) break;
    compare(workload, base, turns[i]);
    for (const auto& [measure, value] : turns[i]) {
      results.add({options.pending, peers[i]->name(), measure, repetition, value});
    }
  }
  return names;
}

bool verify(const RuntimePeers& peers, const Options& options) {
  bool all_right = true;
  for (const auto& peer : peers) {
    watch_turn(options);
    const std::uint64_t wrong = peer->count_wrong();
    std::printf("%-18s %llu wrong firings; %s\n", peer->name().c_str(),
                static_cast<unsigned long long>(wrong), peer->note().c_str());
    std::fflush(stdout);
    all_right = all_right && wrong == 0;
  }
  const std::string missing = missing_runtime_peers(peers);
  if (!missing.empty()) {
    std::printf("left out, their packages were missing when this was built:%s\n", missing.c_str());
  }
  return all_right;
}

/// Prints how much other programs use the cores. This affects every figure, because they are wall
/// time.
std::string machine_load() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  char text[100];
  std::snprintf(text, sizeof(text), "load of the machine in the last minute: %.1f on %u cores",
                load, std::thread::hardware_concurrency());
  return text;
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: runtime_bench [--n 100k] [--reps 3] [--box SECONDS] [--samples 1000]\n"
               "                     [--only NAME,NAME] [--csv FILE] [--quick]\nworkloads:");
  for (const Workload& each : workloads({})) std::fprintf(stderr, " %s", each.name.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  const auto quick = [&] {
    options.repetitions = 1;
    options.box_seconds = 0.05;
    options.idle_seconds = 0.3;
    options.samples = 120;
  };
  const auto read_box = [&](const std::string& value) {
    const bool understood = into(options.box_seconds)(value);
    options.idle_seconds = std::min(options.idle_seconds, 20 * options.box_seconds);
    return understood;
  };
  const bool understood = read_arguments(arguments, {{"--quick", quick}},
                                         {{"--n", into(options.pending)},
                                          {"--samples", into(options.samples)},
                                          {"--reps", repetitions_into(options.repetitions)},
                                          {"--only", into(options.only)},
                                          {"--box", read_box},
                                          {"--csv", into(options.csv)}});
  if (!understood) usage();
  if (!options.only.empty() && workloads(options.only).size() != options.only.size()) usage();
  return options;
}

int run(const Options& options) {
  const RuntimePeers peers = runtime_peers();
  Results results(options.csv);
  if (!verify(peers, options)) return 1;
  std::printf("%s\n", machine_load().c_str());
  for (const Workload& workload : workloads(options.only)) {
    std::vector<std::string> names;
    for (std::uint32_t repetition = 0; repetition <= options.repetitions; ++repetition) {
      names = take_turns(workload, peers, options, repetition, results);
    }
    std::printf("\n%s: %s; n = %u, median of %u\n", workload.name.c_str(), workload.title.c_str(),
                options.pending, options.repetitions);
    results.print(options.pending, names, workload.name + " ");
  }
  std::printf("%s\n", machine_load().c_str());
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  using namespace detent::bench;
  return run(parse({argv + 1, argv + argc}));
}
