// growth_bench: how the cost of a task in `detent serve` changes with the number of waiting tasks,
// connections, bytes and queues. The aim is a flat line.
//
//     growth_bench [--waiting 1k,10k,100k,1m,10m] [--connections 1,10,100,1k,10k]
//                  [--payload 0,64,1k,4k,16k,64k] [--queues 1,10,100,1k,10k,100k]
//                  [--cycles 10,20] [--rounds 40] [--quick] [--detent PROGRAM] [--folder DIR]
//                  [--csv FILE]
//
//  - waiting      One server holds more and more tasks that are due in hours. At each number,
//                 batches of 1 000 due tasks are put, leased and completed. Batches of tasks that
//                 are due in two days are put and cancelled. Also the memory, and the disk per
//                 task.
//  - connections  All connections work at the same time. Each puts a task, waits for the answer,
//                 and repeats.
//  - payload      Such batches with payloads of this number of bytes. A batch has at most 4 MB.
//  - queues       Such batches over random queues. Each queue is leased by its own request.
//  - cycles       200 000 tasks are leased and released with a short delay, this number of times.
//                 The disk space after that, divided by the space of tasks without such cycles.
//
// An empty list leaves out its measurement. Figures are microseconds of the server's CPU time per
// task, or per request if each task has its own request. CPU time comes from the kernel and hardly
// depends on other programs. Figures with "/s" are rates of wall time, with one or two clients on
// the same machine. --quick takes half a minute. --waiting 100m needs 16 GB of disk.
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "bench/results.h"
#include "bench/server/http_socket.h"
#include "bench/server/running_server.h"
#include "bench/server/server_peer.h"
#include "bench/stopwatch.h"

namespace detent::bench {
namespace {

namespace fs = std::filesystem;
using Sizes = std::vector<std::uint32_t>;

constexpr std::size_t kBatch = 1'000;
constexpr std::int64_t kDayMs = 86'400'000;

struct Options {
  Sizes waiting{1'000, 10'000, 100'000, 1'000'000, 10'000'000};
  Sizes connections{1, 10, 100, 1'000, 10'000};
  Sizes payload{0, 64, 1'024, 4'096, 16'384, 65'535};
  Sizes queues{1, 10, 100, 1'000, 10'000, 100'000};
  Sizes cycles{10, 20};
  std::uint32_t rounds = 40;
  fs::path program = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "detent";
  fs::path parent = fs::temp_directory_path();
  std::string csv = "growth_bench.csv";
};

/// "1,10,64k" → the numbers. In payload sizes, k means 1 024; elsewhere 1 000. Returns nullopt if a
/// part is not a number. "" gives an empty list.
std::optional<Sizes> read_sizes(const std::string& text, double thousand) {
  Sizes sizes;
  for (const std::string& part : split(text)) {
    const std::optional<double> value = parse_number(part, thousand);
    if (!value || *value < 0 || *value > 1e9) return std::nullopt;
    sizes.push_back(static_cast<std::uint32_t>(*value));
  }
  return sizes;
}

struct TaskShape {
  std::string queue = "growth";
  std::int64_t delay_ms = 0;
  std::size_t payload = 100;  ///< bytes, with the quotes of a JSON string; 0: no payload
};

void append_task(std::string& body, const TaskShape& shape) {
  body += R"({"queue":")" + shape.queue + R"(","delay_ms":)" + std::to_string(shape.delay_ms);
  if (shape.payload > 0) {
    body += R"(,"payload":")";
    body.append(std::max<std::size_t>(shape.payload, 2) - 2, 'x');
    body += '"';
  }
  body += "},";
}

/// `shape_of(i)` for each of `count` tasks.
template <class ShapeOf>
std::string batch_of(std::size_t count, ShapeOf shape_of) {
  std::string body = "[";
  for (std::size_t i = 0; i < count; ++i) append_task(body, shape_of(i));
  body.back() = ']';
  return body;
}

/// The values after each `name` in an answer, as a JSON list for a request: ["a","b"].
std::string list_of(std::string_view answer, std::string_view name) {
  std::string list = "[";
  for (std::size_t at = 0;;) {
    const std::string_view value = next_string(answer, name, at);
    if (at == std::string_view::npos) break;
    list += '"' + std::string(value) + "\",";
  }
  if (list.size() > 1) list.pop_back();
  return list + "]";
}

void expect(std::size_t count, std::size_t wanted, const char* what) {
  if (count == wanted) return;
  throw ServerError(std::to_string(count) + " of " + std::to_string(wanted) + " tasks " + what);
}

/// The cost of one kind of request so far.
class Cost {
 public:
  explicit Cost(const RunningServer& server) : server_(server) {}

  template <class Work>
  void add(std::size_t count, Work work) {
    const ProcessCost before = server_.cost();
    const Stopwatch watch;
    work();
    seconds_ += watch.wall_seconds();
    microseconds_ += (server_.cost() - before).cpu_microseconds;
    count_ += static_cast<double>(count);
  }

  double microseconds_each() const { return microseconds_ / count_; }
  double per_second() const { return count_ / seconds_; }

 private:
  const RunningServer& server_;
  double microseconds_ = 0;
  double seconds_ = 0;
  double count_ = 0;
};

/// Puts, leases and completes batches in sequence on one connection.
class Rounds {
 public:
  explicit Rounds(const RunningServer& server)
      : http_(server.port()), put_(server), lease_(server), complete_(server), cancel_(server) {}

  void live(const std::string& body, std::size_t count) {
    put_.add(count, [&] { expect(count_of(http_.post(kPut, body), R"("id":")"), count, "put"); });
    for (std::size_t left = count; left > 0;) {  // an answer may have fewer tasks than requested
      std::string leases;
      std::size_t got = 0;
      lease_.add(0, [&] {
        const std::string max = R"({"wait_ms":5000,"max":)" + std::to_string(left) + "}";
        const std::string_view answer = http_.post("/v1/queues/growth/lease", max);
        got = count_of(answer, R"("lease":")");
        leases = R"({"leases":)" + list_of(answer, R"("lease":")") + "}";
      });
      expect(got, std::clamp<std::size_t>(got, 1, left), "leased");
      lease_.add(got, [] {});
      complete_.add(got, [&] {
        const std::string_view answer = http_.post("/v1/leases/complete", leases);
        expect(count_of(answer, R"("status":"done")"), got, "completed");
      });
      left -= got;
    }
  }

  void cancel(const std::string& body, std::size_t count) {
    const std::string ids = R"({"ids":)" + list_of(http_.post(kPut, body), R"("id":")") + "}";
    cancel_.add(count, [&] {
      const std::string_view answer = http_.post("/v1/tasks/cancel", ids);
      expect(count_of(answer, R"("state":"cancelled")"), count, "cancelled");
    });
  }

  const Cost& put() const { return put_; }
  const Cost& lease() const { return lease_; }
  const Cost& complete() const { return complete_; }
  const Cost& cancelling() const { return cancel_; }

 private:
  static constexpr const char* kPut = "/v1/tasks/batch";

  HttpSocket http_;
  Cost put_;
  Cost lease_;
  Cost complete_;
  Cost cancel_;
};

/// `count` tasks due between 3 and 27 hours from now, put on two connections.
void fill(const RunningServer& server, std::uint32_t count, std::uint64_t seed) {
  Progress progress;
  std::vector<std::function<void()>> bodies;
  for (std::uint32_t half = 0; half < 2; ++half) {
    bodies.emplace_back([&server, count, half, random = Rng(seed * 2 + half)]() mutable {
      HttpSocket http(server.port());
      const auto far = [&random](std::size_t) {
        return TaskShape{.delay_ms = kDayMs / 8 + random.below(kDayMs)};
      };
      for (std::size_t left = half == 0 ? count / 2 : count - count / 2; left > 0;) {
        const std::size_t some = std::min(left, kBatch);
        expect(count_of(http.post("/v1/tasks/batch", batch_of(some, far)), R"("id":")"), some,
               "put");
        left -= some;
      }
    });
  }
  run_threads(bodies, progress);
}

/// The connections of one thread. Each always has an open request, for half a second or for two
/// rounds.
void keep_busy(std::vector<std::unique_ptr<HttpSocket>>& sockets, int poll, Cost& cost) {
  std::string task;
  append_task(task, {.delay_ms = kDayMs});
  task.pop_back();
  const auto limit = std::max<std::size_t>(2'000, sockets.size() * 2);
  std::size_t sent = 0;
  std::size_t answered = 0;
  cost.add(0, [&] {
    for (; sent < sockets.size(); ++sent) sockets[sent]->send_post("/v1/tasks", task);
    std::vector<epoll_event> events(512);
    for (const Stopwatch watch; answered < sent;) {
      const int ready = ::epoll_wait(poll, events.data(), 512, 30'000);
      if (ready <= 0) throw ServerError("no answer");
      for (int i = 0; i < ready; ++i) {
        HttpSocket& socket = *sockets[events[static_cast<std::size_t>(i)].data.u64];
        expect(count_of(socket.receive(), R"("id":")"), 1, "put");
        ++answered;
        if (sent >= limit && watch.wall_seconds() > 0.5) continue;
        socket.send_post("/v1/tasks", task);
        ++sent;
      }
    }
  });
  cost.add(answered, [] {});
}

class Growth {
 public:
  Growth(const Options& options, ServerPeer& peer, const fs::path& folder)
      : options_(options), peer_(peer), folder_(folder), results_(options.csv) {}

  void run() {
    if (!options_.waiting.empty()) grow_waiting();
    for (const std::uint32_t count : options_.connections) measure_connections(count);
    for (const std::uint32_t bytes : options_.payload) measure_payload(bytes);
    for (const std::uint32_t count : options_.queues) measure_queues(count);
    if (!options_.cycles.empty()) measure_cycles();
  }

 private:
  void add(const char* axis, std::uint32_t size, const char* measure, double value) {
    results_.add({size, axis, measure, 1, value});
    std::printf("%-12s %10u  %-14s %12.2f\n", axis, size, measure, value);
    std::fflush(stdout);
  }

  void add_life(const char* axis, std::uint32_t size, const Rounds& rounds) {
    add(axis, size, "put us", rounds.put().microseconds_each());
    add(axis, size, "lease us", rounds.lease().microseconds_each());
    add(axis, size, "complete us", rounds.complete().microseconds_each());
  }

  void grow_waiting() {
    RunningServer server(peer_, folder_);
    const auto now = [](std::size_t) { return TaskShape{}; };
    const auto far = [](std::size_t) { return TaskShape{.delay_ms = 2 * kDayMs}; };
    const auto empty_disk = static_cast<double>(server.disk_bytes());
    std::uint32_t held = 0;
    for (const std::uint32_t count : options_.waiting) {
      fill(server, count - held, count);
      held = count;
      server.let_rest();
      add("waiting", count, "memory MB", static_cast<double>(server.memory_bytes()) / 1e6);
      const double disk = static_cast<double>(server.disk_bytes()) - empty_disk;
      add("waiting", count, "disk B", disk / count);
      Rounds rounds(server);
      for (std::uint32_t i = 0; i < options_.rounds; ++i) {
        rounds.live(batch_of(kBatch, now), kBatch);
        rounds.cancel(batch_of(kBatch, far), kBatch);
      }
      add_life("waiting", count, rounds);
      add("waiting", count, "cancel us", rounds.cancelling().microseconds_each());
    }
    server.expect_count(held);
    add("waiting", held, "ready s", server.crash_and_restart());
  }

  void measure_connections(std::uint32_t count) {
    const RunningServer server(peer_, folder_);
    const auto empty = static_cast<double>(server.memory_bytes());
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<std::unique_ptr<HttpSocket>> sockets;
    for (std::uint32_t i = 0; i < count; ++i) {
      sockets.push_back(std::make_unique<HttpSocket>(server.port()));
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      ::epoll_ctl(poll, EPOLL_CTL_ADD, sockets.back()->descriptor(), &event);
    }
    Cost warm(server);
    keep_busy(sockets, poll, warm);
    Cost cost(server);
    keep_busy(sockets, poll, cost);
    ::close(poll);
    const double memory = static_cast<double>(server.memory_bytes()) - empty;
    add("connections", count, "put us", cost.microseconds_each());
    add("connections", count, "put /s", cost.per_second());
    add("connections", count, "memory kB", memory / 1e3 / count);
  }

  void measure_payload(std::uint32_t bytes) {
    const RunningServer server(peer_, folder_);
    const std::size_t count = std::clamp<std::size_t>(4'000'000 / (bytes + 1), 1, kBatch);
    const std::string body =
        batch_of(count, [bytes](std::size_t) { return TaskShape{.payload = bytes}; });
    Rounds rounds(server);
    for (std::uint32_t i = 0; i < options_.rounds; ++i) rounds.live(body, count);
    add_life("payload", bytes, rounds);
  }

  void measure_queues(std::uint32_t count) {
    const RunningServer server(peer_, folder_);
    const auto queue = [](std::size_t number) { return "growth" + std::to_string(number); };
    HttpSocket http(server.port());
    for (std::size_t first = 0; first < count; first += kBatch) {  // each queue has a waiting task
      const std::size_t some = std::min<std::size_t>(kBatch, count - first);
      http.post("/v1/tasks/batch", batch_of(some, [&](std::size_t i) {
                  return TaskShape{.queue = queue(first + i), .delay_ms = kDayMs};
                }));
    }
    server.let_rest();
    add("queues", count, "memory MB", static_cast<double>(server.memory_bytes()) / 1e6);
    Cost put(server);
    Cost lease(server);
    Rng random(count);
    for (std::uint32_t i = 0; i < options_.rounds; ++i) {
      std::vector<std::string> chosen(kBatch);
      for (std::string& each : chosen) each = queue(random.below(count));
      const std::string body =
          batch_of(kBatch, [&](std::size_t n) { return TaskShape{.queue = chosen[n]}; });
      put.add(kBatch, [&] {
        expect(count_of(http.post("/v1/tasks/batch", body), R"("id":")"), kBatch, "put");
      });
      const std::size_t asked = kBatch / 10;
      lease.add(asked, [&] {
        for (std::size_t n = 0; n < asked; ++n) {
          const std::string_view answer =
              http.post("/v1/queues/" + chosen[n] + "/lease", R"({"wait_ms":5000})");
          expect(count_of(answer, R"("lease":")"), 1, "leased");
        }
      });
    }
    add("queues", count, "put us", put.microseconds_each());
    add("queues", count, "lease us", lease.microseconds_each());
  }

  void measure_cycles() {
    constexpr std::uint32_t kTasks = 200'000;
    const double live = disk_at_rest(kTasks);
    RunningServer server(peer_, folder_);
    const auto empty = static_cast<double>(server.disk_bytes());
    HttpSocket http(server.port());
    for (std::size_t put = 0; put < kTasks; put += kBatch) {
      http.post("/v1/tasks/batch", batch_of(kBatch, [](std::size_t) { return TaskShape{}; }));
    }
    std::uint32_t done = 0;
    Cost release(server);
    for (const std::uint32_t cycles : options_.cycles) {
      for (; done < cycles; ++done) release_all(http, kTasks, release);
      server.let_rest();
      const double disk = static_cast<double>(server.disk_bytes()) - empty;
      add("cycles", cycles, "disk of live", disk / live);
      add("cycles", cycles, "release us", release.microseconds_each());
    }
  }

  /// The disk space of this number of tasks without cycles.
  double disk_at_rest(std::uint32_t count) {
    const RunningServer server(peer_, folder_);
    const auto empty = static_cast<double>(server.disk_bytes());
    fill(server, count, 1);
    server.let_rest();
    return static_cast<double>(server.disk_bytes()) - empty;
  }

  static void release_all(HttpSocket& http, std::uint32_t count, Cost& release) {
    for (std::uint32_t released = 0; released < count;) {
      const std::string_view answer =
          http.post("/v1/queues/growth/lease", R"({"wait_ms":5000,"max":1000})");
      const std::size_t got = count_of(answer, R"("lease":")");
      expect(got, std::clamp<std::size_t>(got, 1, kBatch), "leased");
      const std::string back =
          R"({"leases":)" + list_of(answer, R"("lease":")") + R"(,"delay_ms":10})";
      release.add(got, [&] { http.post("/v1/leases/release", back); });
      released += static_cast<std::uint32_t>(got);
    }
  }

  const Options& options_;
  ServerPeer& peer_;
  const fs::path folder_;
  Results results_;
};

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: growth_bench [--waiting 1k,…] [--connections 1,…] [--payload 0,…]\n"
               "                    [--queues 1,…] [--cycles 10,…] [--rounds 40] [--quick]\n"
               "                    [--detent PROGRAM] [--folder DIR] [--csv FILE]\n");
  std::exit(2);
}

ReadValue sizes_into(Sizes& sizes, double thousand) {
  return [&sizes, thousand](const std::string& value) {
    std::optional<Sizes> read = read_sizes(value, thousand);
    if (!read) return false;
    sizes = std::move(*read);
    return true;
  };
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  const auto quick = [&] {
    options.waiting = {1'000, 10'000, 100'000, 1'000'000};
    options.connections = {1, 100, 10'000};
    options.payload = {0, 1'024, 65'535};
    options.queues = {1, 1'000, 100'000};
    options.cycles = {5};
    options.rounds = 10;
  };
  const bool understood = read_arguments(arguments, {{"--quick", quick}},
                                         {{"--waiting", sizes_into(options.waiting, 1'000)},
                                          {"--connections", sizes_into(options.connections, 1'000)},
                                          {"--payload", sizes_into(options.payload, 1'024)},
                                          {"--queues", sizes_into(options.queues, 1'000)},
                                          {"--cycles", sizes_into(options.cycles, 1'000)},
                                          {"--rounds", repetitions_into(options.rounds)},
                                          {"--detent", into(options.program)},
                                          {"--folder", into(options.parent)},
                                          {"--csv", into(options.csv)}});
  if (!understood) usage();
  for (std::uint32_t& bytes : options.payload) bytes = std::min(bytes, 65'535U);
  return options;
}

int run(const Options& options) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // the server inherits the limit
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::string folder = options.parent / "detent-growth-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  int status = 0;
  try {
    const auto peer = detent_server(options.program, "always");
    Growth(options, *peer, folder).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "growth_bench: %s\n", error.what());
    status = 1;
  }
  fs::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  return detent::bench::run(detent::bench::parse({argv + 1, argv + argc}));
}
