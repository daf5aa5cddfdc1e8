#include "bench/server/server_workloads.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "base/rng.h"
#include "bench/server/running_server.h"
#include "bench/server/server_socket.h"
#include "detent/check.h"

namespace detent::bench {
namespace {

constexpr std::size_t kWorkers = 2;  // for full life and drain; the same number of connections put
constexpr std::size_t kFiringWorkers = 4;     // a worker does not wait while it completes
constexpr std::uint64_t kMostAhead = 20'000;  // tasks that wait for workers in full life
constexpr double kDrainAcceptRate = 20'000;
constexpr double kFiringRate = 10'000;

/// Uniform between two delays.
class Delays {
 public:
  Delays(std::int64_t shortest_ms, std::int64_t longest_ms, std::uint64_t seed)
      : shortest_ms_(shortest_ms),
        span_(static_cast<std::uint32_t>(longest_ms - shortest_ms + 1)),
        rng_(seed) {}

  std::span<const std::int64_t> next(std::size_t count) {
    delays_.resize(count);
    for (std::int64_t& delay : delays_) delay = shortest_ms_ + rng_.below(span_);
    return delays_;
  }

 private:
  const std::int64_t shortest_ms_;
  const std::uint32_t span_;
  Rng rng_;
  std::vector<std::int64_t> delays_;
};

Delays within_an_hour(std::uint64_t seed) { return {1'000, 3'600'000, seed}; }
Delays due_at_once() { return {0, 0, 0}; }
/// Uniform in the hour after the workload.
Delays long_after(const ServerSizes& sizes, std::uint64_t seed) {
  const std::int64_t first = 300'000 + sizes.waiting / 20;
  return {first, first + 3'600'000, seed};
}

void put_all(ServerClient& client, std::span<const std::int64_t> delays, Progress& progress) {
  const std::size_t accepted = client.put(delays);
  if (accepted != delays.size()) throw ServerError("some puts of a batch were refused");
  progress.accepted.fetch_add(accepted, std::memory_order_relaxed);
}

/// One task at a time on each connection, all on this thread, for this number of seconds. Returns
/// tasks per second.
double put_singly(const RunningServer& server, std::size_t connections, double seconds,
                  Progress& progress) {
  Delays delays = within_an_hour(connections);
  std::vector<std::unique_ptr<ServerClient>> clients;
  std::vector<pollfd> sockets;
  for (std::size_t i = 0; i < connections; ++i) {
    clients.push_back(server.connect());
    sockets.push_back({.fd = clients[i]->descriptor(), .events = POLLIN, .revents = 0});
  }
  std::size_t accepted = 0;
  const Stopwatch watch;
  for (const auto& client : clients) client->send_put(delays.next(1));
  for (std::size_t busy = connections; busy > 0;) {
    if (connections > 1 && ::poll(sockets.data(), sockets.size(), 90'000) <= 0) {
      throw ServerError("no answer");
    }
    for (std::size_t i = 0; i < connections; ++i) {
      if (connections > 1 && (sockets[i].fd < 0 || sockets[i].revents == 0)) continue;
      accepted += clients[i]->receive_put();
      if (watch.wall_seconds() < seconds) {
        clients[i]->send_put(delays.next(1));
      } else {
        sockets[i].fd = -1;  // poll leaves it out
        --busy;
      }
    }
  }
  progress.accepted.fetch_add(accepted, std::memory_order_relaxed);
  return static_cast<double>(accepted) / watch.wall_seconds();
}

/// Batches on two connections, with a thread each, until `is_enough`. Returns tasks per second.
template <class IsEnough>
double put_batches(const RunningServer& server, const std::vector<Delays>& delays,
                   Progress& progress, IsEnough is_enough) {
  const std::uint64_t before = progress.accepted.load(std::memory_order_relaxed);
  const Stopwatch watch;
  std::vector<std::function<void()>> bodies;
  for (const Delays& each : delays) {
    bodies.emplace_back([&server, &progress, &is_enough, mine = each]() mutable {
      const auto client = server.connect();
      const std::size_t batch = server.peer().traits().batch;
      while (!is_enough()) put_all(*client, mine.next(batch), progress);
    });
  }
  run_threads(bodies, progress);
  const std::uint64_t accepted = progress.accepted.load(std::memory_order_relaxed) - before;
  return static_cast<double>(accepted) / watch.wall_seconds();
}

/// Puts exactly `count` tasks. Returns tasks per second.
double put_count(const RunningServer& server, const std::vector<Delays>& delays,
                 std::uint32_t count, Progress& progress) {
  std::atomic<std::int64_t> left{count};
  const auto batch = static_cast<std::int64_t>(server.peer().traits().batch);
  return put_batches(server, delays, progress, [&left, batch] {
    return left.fetch_sub(batch, std::memory_order_relaxed) <= 0;
  });
}

void finish_all(ServerClient& client, const TakenTasks& taken, Progress& progress) {
  const std::size_t finished = client.finish(taken.tasks);
  if (finished != taken.tasks.size()) throw ServerError("a task could not be finished");
  progress.finished.fetch_add(finished, std::memory_order_relaxed);
}

/// Takes and finishes one round. Returns false if there were no tasks. It first asks without
/// waiting, because a peer without batches can pipeline only requests that do not wait.
bool work_once(ServerClient& client, std::size_t max, Progress& progress) {
  TakenTasks taken = client.take(max, 0);
  if (taken.tasks.empty()) taken = client.take(max, 50);
  if (taken.tasks.empty()) return false;
  finish_all(client, taken, progress);
  return true;
}

void pause_us(std::int64_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds{std::max<std::int64_t>(0, microseconds)});
}

/// Puts chunks of `chunk` tasks at a steady rate until `is_enough`.
template <class IsEnough>
void put_steadily(ServerClient& client, Delays delays, std::size_t chunk, double rate,
                  Progress& progress, IsEnough is_enough) {
  const Stopwatch watch;
  for (std::uint64_t put = 0; !is_enough(put); put += chunk) {
    const double due = static_cast<double>(put) / rate;
    pause_us(static_cast<std::int64_t>((due - watch.wall_seconds()) * 1e6));
    put_all(client, delays.next(chunk), progress);
  }
}

/// Milliseconds from the due time to the worker. Throws ServerError if a value is negative.
ServerFigures lateness_of(std::vector<double> late_ms) {
  std::ranges::sort(late_ms);
  if (late_ms.front() < 0) {
    throw ServerError("a task came " + std::to_string(-late_ms.front()) + " ms early");
  }
  const auto quantile = [&late_ms](double share) {
    const double rank = std::ceil(share * static_cast<double>(late_ms.size())) - 1;
    return late_ms[static_cast<std::size_t>(rank)];
  };
  return {{"late p50", quantile(0.5)}, {"late p99", quantile(0.99)}, {"late max", quantile(1)}};
}

/// Tasks that become due at a steady rate while workers wait for them.
ServerFigures fire(const RunningServer& server, const ServerSizes& sizes) {
  const auto span_ms = static_cast<std::int64_t>(1e3 * sizes.firing / kFiringRate);
  constexpr std::int64_t kLead = 1'000;  // ms: they are put during the first second
  Progress progress;
  std::vector<std::vector<double>> late(kFiringWorkers);
  std::vector<std::function<void()>> bodies;
  bodies.emplace_back([&] {
    put_steadily(*server.connect(), Delays(kLead, kLead + span_ms, 7), sizes.firing / 100,
                 sizes.firing, progress, [&](std::uint64_t put) { return put >= sizes.firing; });
    progress.has_all.store(true, std::memory_order_release);
  });
  for (std::vector<double>& mine : late) {
    bodies.emplace_back([&] {
      const auto client = server.connect();
      while (!progress.is_over(60 + static_cast<double>(span_ms) / 1e3)) {
        const TakenTasks taken = client->take(1'000, 500);
        if (taken.tasks.empty()) continue;
        for (const TakenTask& task : taken.tasks) {
          mine.push_back(static_cast<double>(taken.received_us - task.due_us) / 1e3);
        }
        finish_all(*client, taken, progress);
      }
    });
  }
  run_threads(bodies, progress);
  std::vector<double> all;
  for (const std::vector<double>& mine : late) all.insert(all.end(), mine.begin(), mine.end());
  if (all.size() != progress.accepted.load()) {
    throw ServerError(std::to_string(all.size()) + " tasks were taken, " +
                      std::to_string(progress.accepted.load()) + " were put");
  }
  return lateness_of(std::move(all));
}

/// The rate of appending 128 bytes to a file with a sync, per second. One connection cannot exceed
/// this rate if an answer means "on disk".
double fdatasync_rate(const ServerSizes& sizes) {
  const std::filesystem::path path = sizes.folder / "fdatasync";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  DETENT_CHECK(file >= 0);
  const std::string record(128, 'x');
  double count = 0;
  const Stopwatch watch;
  for (; watch.wall_seconds() < sizes.box_seconds; ++count) {
    DETENT_CHECK(::write(file, record.data(), record.size()) == 128);
    DETENT_CHECK(::fdatasync(file) == 0);
  }
  const double rate = count / watch.wall_seconds();
  ::close(file);
  std::filesystem::remove(path);
  return rate;
}

}  // namespace

void try_server(ServerPeer& peer, const ServerSizes& sizes) {
  const RunningServer server(peer, sizes.folder);
}

ServerFigures measure_accept(ServerPeer& peer, const ServerSizes& sizes) {
  const RunningServer server(peer, sizes.folder);
  Progress progress;
  const std::vector<Delays> delays{within_an_hour(1), within_an_hour(2)};
  const auto for_seconds = [](double seconds) {
    return [seconds, watch = Stopwatch()] { return watch.wall_seconds() >= seconds; };
  };
  put_batches(server, delays, progress, for_seconds(sizes.box_seconds / 4));  // to warm up
  const double disk = fdatasync_rate(sizes);
  const double one = put_singly(server, 1, sizes.box_seconds, progress);
  const double many = put_singly(server, 32, sizes.box_seconds, progress);
  const double batched = put_batches(server, delays, progress, for_seconds(sizes.box_seconds));
  server.expect_count(progress.accepted.load());
  return {{"accept 1", one},
          {"accept fdatasync", disk},
          {"accept of disk", 100 * one / disk},
          {"accept 32", many},
          {"accept batches", batched}};
}

ServerFigures measure_life(ServerPeer& peer, const ServerSizes& sizes) {
  const RunningServer server(peer, sizes.folder);
  Progress progress;
  std::atomic<std::size_t> putting{kWorkers};
  std::vector<double> ended(kWorkers);  // seconds: when each worker finished its last task
  std::vector<std::function<void()>> bodies;
  const auto put = [&] {
    const auto client = server.connect();
    Delays delays = due_at_once();
    while (progress.watch.wall_seconds() < sizes.box_seconds && !progress.has_failed.load()) {
      if (progress.accepted.load() > progress.finished.load() + kMostAhead) {
        pause_us(200);
      } else {
        put_all(*client, delays.next(peer.traits().batch), progress);
      }
    }
    if (putting.fetch_sub(1) == 1) progress.has_all.store(true, std::memory_order_release);
  };
  const auto work = [&](double& end) {
    const auto client = server.connect();
    while (!progress.is_over(60 + sizes.box_seconds)) {
      if (work_once(*client, peer.traits().batch, progress)) end = progress.watch.wall_seconds();
    }
  };
  for (double& end : ended) {
    bodies.emplace_back(put);
    bodies.emplace_back([&work, &end] { work(end); });
  }
  run_threads(bodies, progress);
  const double seconds = std::ranges::max(ended);
  server.expect_count(0);
  return {{"life", static_cast<double>(progress.finished.load()) / seconds}};
}

ServerFigures measure_drain(ServerPeer& peer, const ServerSizes& sizes) {
  if (!peer.traits().can.drains) return {};
  const RunningServer server(peer, sizes.folder);
  Progress backlog;
  put_count(server, {due_at_once(), due_at_once()}, sizes.backlog, backlog);
  Progress progress;
  progress.accepted.store(backlog.accepted.load());
  std::atomic<bool> is_drained{false};
  double seconds = 0;  // both are written once, by the worker that sets is_drained
  double accept_rate = 0;
  std::vector<std::function<void()>> bodies;
  bodies.emplace_back([&] {
    put_steadily(*server.connect(), due_at_once(), 200, kDrainAcceptRate, progress,
                 [&](std::uint64_t) { return is_drained.load() || progress.has_failed.load(); });
    progress.has_all.store(true, std::memory_order_release);
  });
  const auto work = [&] {
    const auto client = server.connect();
    while (!progress.is_over(120)) {
      work_once(*client, peer.traits().batch, progress);
      const bool is_first =
          progress.finished.load() >= backlog.accepted.load() && !is_drained.exchange(true);
      if (!is_first) continue;
      seconds = progress.watch.wall_seconds();
      accept_rate = static_cast<double>(progress.accepted.load() - backlog.accepted.load());
      accept_rate /= seconds;
    }
  };
  for (std::size_t i = 0; i < kWorkers; ++i) bodies.emplace_back(work);
  run_threads(bodies, progress);
  server.expect_count(0);
  return {{"drain", static_cast<double>(backlog.accepted.load()) / seconds},
          {"drain accepts", accept_rate}};
}

ServerFigures measure_waiting(ServerPeer& peer, const ServerSizes& sizes) {
  const Abilities& can = peer.traits().can;
  if (!can.waits) return {};
  const Loading loading = can.fires ? Loading::as_promised : Loading::unsynced;
  RunningServer server(peer, sizes.folder, loading);
  const auto empty_disk = static_cast<double>(server.disk_bytes());
  Progress progress;
  ServerFigures figures;
  const double rate =
      put_count(server, {long_after(sizes, 1), long_after(sizes, 2)}, sizes.waiting, progress);
  if (loading == Loading::as_promised) figures.emplace_back("load", rate);
  server.expect_count(progress.accepted.load());
  pause_us(static_cast<std::int64_t>(sizes.box_seconds * 1e6));
  server.let_rest();  // let background work finish
  const double disk = static_cast<double>(server.disk_bytes()) - empty_disk;
  if (can.counts_memory) {
    figures.emplace_back("memory", static_cast<double>(server.memory_bytes()) / 1e6);
  }
  if (can.survives && disk > 0) {  // otherwise the data still fits into existing files
    figures.emplace_back("disk", disk / static_cast<double>(progress.accepted.load()));
  }
  if (can.fires) {
    const ServerFigures late = fire(server, sizes);
    figures.insert(figures.end(), late.begin(), late.end());
    server.expect_count(progress.accepted.load());
  }
  if (can.survives) {
    figures.emplace_back("ready", server.crash_and_restart());
    server.expect_count(progress.accepted.load() + 1);
  }
  return figures;
}

}  // namespace detent::bench
