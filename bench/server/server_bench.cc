// server_bench: compares `detent serve` with beanstalkd, Redis, PostgreSQL and NATS as servers of
// delayed tasks. Connections use the loopback device, and tasks have a payload of 100 bytes. Each
// row names the promise that its server keeps.
//
//     server_bench [--quick | --large] [--only accept,life,drain,waiting] [--servers NAME,NAME]
//                  [--reps 3] [--box 1.5] [--waiting 1m] [--firing 100k] [--backlog 300k]
//                  [--detent PROGRAM] [--folder DIR] [--csv FILE] [--json FILE]
//
//  - accept   Tasks that are due within an hour. First one connection, then 32 connections, each
//             with one task per request. Then batches on two connections, in the fastest form of
//             the protocol.
//  - life     Due tasks are put by 2 connections, and taken and finished by 2 workers, in batches.
//             A task counts when it is finished permanently.
//  - drain    2 workers take and finish an overdue backlog, while the server accepts 20 k/s.
//  - waiting  Tasks that are due long after the run: their memory and disk when the server is idle.
//             Then tasks that are due evenly over some seconds, 10 000 per second, with 4 waiting
//             workers: the lateness; no task may be early. Then kill -9: the time until the server
//             accepts the first task again.
//
// The baseline is the disk: appends of 128 bytes to a file with a sync after each, measured
// together with each accept. The repetitions of the servers are interleaved, one server at a time.
// Tables show medians. This program starts each server in a separate folder under --folder, and
// compares its count of tasks with the acknowledged tasks. If a server lost, refused or invented a
// task, its figure is an error. Clients and servers share all cores. --quick takes less than 2
// minutes, the default less than 15. --large runs once with 10 million waiting tasks. An interrupt
// ends the servers, but leaves the folder.
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/arguments.h"
#include "bench/results.h"
#include "bench/server/server_peer.h"
#include "bench/server/server_report.h"
#include "bench/server/server_socket.h"
#include "bench/server/server_workloads.h"
#include "bench/stopwatch.h"

namespace detent::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  ServerSizes sizes;
  std::uint32_t repetitions = 3;
  std::set<std::string> only;
  std::set<std::string> servers;
  fs::path program = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "detent";
  fs::path parent = fs::temp_directory_path();
  std::string csv = "server_bench.csv";
  std::string json;
};

struct Workload {
  std::string name;
  ServerFigures (*measure)(ServerPeer& peer, const ServerSizes& sizes);
};

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all{{"accept", &measure_accept},
                                         {"life", &measure_life},
                                         {"drain", &measure_drain},
                                         {"waiting", &measure_waiting}};
  return all;
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: server_bench [--quick | --large] [--only NAME,NAME] [--servers NAME,NAME]\n"
               "                    [--reps 3] [--box SECONDS] [--waiting 1m] [--firing 100k]\n"
               "                    [--backlog 300k] [--detent PROGRAM] [--folder DIR]\n"
               "                    [--csv FILE] [--json FILE]\n"
               "workloads: accept life drain waiting\n");
  std::exit(2);
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  const auto quick = [&] {
    options.sizes = {
        .box_seconds = 0.2, .waiting = 50'000, .firing = 10'000, .backlog = 40'000, .folder = {}};
  };
  const auto large = [&] {
    options.sizes.waiting = 10'000'000;
    options.repetitions = 1;
    options.only = {"waiting"};
  };
  const bool understood = read_arguments(arguments, {{"--quick", quick}, {"--large", large}},
                                         {{"--waiting", into(options.sizes.waiting)},
                                          {"--firing", into(options.sizes.firing)},
                                          {"--backlog", into(options.sizes.backlog)},
                                          {"--reps", repetitions_into(options.repetitions)},
                                          {"--box", into(options.sizes.box_seconds)},
                                          {"--only", into(options.only)},
                                          {"--servers", into(options.servers)},
                                          {"--detent", into(options.program)},
                                          {"--folder", into(options.parent)},
                                          {"--csv", into(options.csv)},
                                          {"--json", into(options.json)}});
  const bool all_known = std::ranges::all_of(options.only, [](const std::string& name) {
    return std::ranges::find(workloads(), name, &Workload::name) != workloads().end();
  });
  if (!understood || !all_known) usage();
  return options;
}

/// Prints the processor, and how much other programs use it. This affects every figure, because
/// they are wall time.
std::string machine_line() {
  std::string model = "unknown processor";
  std::ifstream processors("/proc/cpuinfo");
  for (std::string line; std::getline(processors, line);) {
    if (line.starts_with("model name")) model = line.substr(line.find(':') + 2);
  }
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  char text[300];
  std::snprintf(text, sizeof(text), "%u x %s, load of the last minute %.1f",
                std::thread::hardware_concurrency(), model.c_str(), load);
  return text;
}

/// "a, b, c". The separator is a comma and a space, because names can contain spaces.
std::string names_of(const ServerPeers& peers) {
  std::string names;
  for (const auto& peer : peers) names += (names.empty() ? "" : ", ") + peer->traits().name;
  return names;
}

/// All servers that are installed and start. Prints the names of the others.
ServerPeers servers_at_hand(const Options& options) {
  ServerPeers all;
  all.push_back(detent_server(options.program, "always"));
  all.push_back(detent_server(options.program, "interval=10ms"));
  all.push_back(detent_by_beanstalk(options.program));
  all.push_back(beanstalkd_server(Promise::memory));
  all.push_back(beanstalkd_server(Promise::synced));
  all.push_back(redis_server(Promise::synced));
  all.push_back(redis_server(Promise::interval));
  all.push_back(postgres_server());
  all.push_back(nats_server());
  for (const std::string& name : options.servers) {
    const auto has_name = [&name](const auto& peer) { return peer->traits().name == name; };
    if (std::ranges::none_of(all, has_name)) {
      throw ServerError("no server is called " + name + "; there are " + names_of(all));
    }
  }
  ServerPeers here;
  for (std::unique_ptr<ServerPeer>& peer : all) {
    const PeerTraits& traits = peer->traits();
    if (!options.servers.empty() && !options.servers.contains(traits.name)) continue;
    std::string missing = traits.missing;
    try {
      if (missing.empty()) try_server(*peer, options.sizes);
    } catch (const std::exception& error) {
      missing = error.what();
    }
    std::printf("%-15s %-14s %s%s\n", traits.name.c_str(), name_of(traits.promise),
                missing.empty() ? traits.form.c_str() : "left out: ", missing.c_str());
    if (missing.empty()) here.push_back(std::move(peer));
  }
  return here;
}

/// The share of the machine's time since then that other programs used: without this process and
/// without ended servers.
double foreign_share(const CpuUse& before, const Stopwatch& watch) {
  const CpuUse now = cpu_use();
  const double foreign = (now.everybody - before.everybody) - (now.ours - before.ours);
  return std::max(0.0, foreign) / watch.wall_seconds() / std::thread::hardware_concurrency();
}

class Bench {
 public:
  Bench(const Options& options, const ServerPeers& peers)
      : options_(options),
        peers_(peers),
        csv_(options.csv),
        report_(columns(peers), options.sizes.waiting) {}

  void run() {
    const Stopwatch watch;
    const CpuUse before = cpu_use();
    for (std::uint32_t repetition = 1; repetition <= options_.repetitions; ++repetition) {
      for (const Workload& workload : workloads()) {
        if (!options_.only.empty() && !options_.only.contains(workload.name)) continue;
        for (const auto& peer : peers_) take_turn(workload, *peer, repetition);
      }
    }
    foreign_share_ = foreign_share(before, watch);
  }

  /// Returns the exit status.
  int print() const {
    report_.print();
    std::printf("others used %.0f %% of the machine meanwhile; %s\n", 100 * foreign_share_,
                machine_line().c_str());
    if (!options_.json.empty() && !report_.write_json(options_.json, json_head())) {
      std::perror(options_.json.c_str());
      return 1;
    }
    return report_.is_clean() ? 0 : 1;
  }

 private:
  static std::vector<Column> columns(const ServerPeers& peers) {
    std::vector<Column> columns;
    for (const auto& peer : peers) {
      const PeerTraits& traits = peer->traits();
      columns.push_back({traits.name, traits.promise, traits.can.delays});
    }
    return columns;
  }

  void add(const std::string& measure, const std::string& server, std::uint32_t repetition,
           double value) {
    report_.add(measure, server, value);
    csv_.add({options_.sizes.waiting, server, measure, repetition, value});
  }

  void take_turn(const Workload& workload, ServerPeer& peer, std::uint32_t repetition) {
    const std::string& name = peer.traits().name;
    const Stopwatch watch;
    const CpuUse before = cpu_use();
    std::fprintf(stderr, "%u %-8s %-15s", repetition, workload.name.c_str(), name.c_str());
    try {
      for (const auto& [measure, value] : workload.measure(peer, options_.sizes)) {
        add(measure, name, repetition, value);
      }
    } catch (const std::exception& error) {
      report_.add_error(workload.name, name, error.what());
      std::fprintf(stderr, " %s", error.what());
    }
    std::fprintf(stderr, " %5.1f s, others used %2.0f %%\n", watch.wall_seconds(),
                 100 * foreign_share(before, watch));
  }

  std::string json_head() const {
    char numbers[300];
    std::snprintf(numbers, sizeof(numbers),
                  "  \"repetitions\": %u, \"box_seconds\": %g, \"waiting\": %u, \"firing\": %u, "
                  "\"backlog\": %u,\n  \"foreign_share\": %.3f,\n",
                  options_.repetitions, options_.sizes.box_seconds, options_.sizes.waiting,
                  options_.sizes.firing, options_.sizes.backlog, foreign_share_);
    return "  \"machine\": \"" + machine_line() + "\",\n" + numbers;
  }

  const Options& options_;
  const ServerPeers& peers_;
  Results csv_;
  ServerReport report_;
  double foreign_share_ = 0;
};

int run(Options options) {
  std::string folder = options.parent / "detent-server-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  options.sizes.folder = folder;
  fs::permissions(folder, fs::perms{0711});  // a server may run as another user
  std::printf("%s; clients and servers share these cores\n", machine_line().c_str());
  int status = 1;
  try {
    const ServerPeers peers = servers_at_hand(options);
    std::printf("n = %u waiting, median of %u, rates over %g s\n", options.sizes.waiting,
                options.repetitions, options.sizes.box_seconds);
    std::fflush(stdout);
    if (!peers.empty()) {
      Bench bench(options, peers);
      bench.run();
      status = bench.print();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  fs::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  using namespace detent::bench;
  return run(parse({argv + 1, argv + argc}));
}
