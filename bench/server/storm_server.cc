#include "bench/server/storm_server.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/wall_time.h"
#include "bench/server/http_socket.h"
#include "bench/server/running_server.h"
#include "bench/server/server_peer.h"
#include "detent/clock.h"

namespace detent::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBatch = 1'000;
constexpr std::size_t kCalmMax = 10;
constexpr std::size_t kStormMax = 1'000;

WallInstant wall_now() { return SystemClock().wall_now(); }

/// Puts `count` tasks that are due in sequence from `from` on, spread over the time `over`.
void load(std::uint16_t port, const std::string& queue, std::size_t count, WallTime from,
          milliseconds over) {
  HttpSocket socket(port);
  const std::string begin = R"({"queue":")" + queue + R"(","due_at":")";
  const std::string end_of_task = R"(","payload":")" + std::string(98, 'x') + "\"},";  // 100 B
  std::string body;
  for (std::size_t done = 0; done < count; done += kBatch) {
    body = "[";
    const std::size_t end = std::min(done + kBatch, count);
    for (std::size_t i = done; i < end; ++i) {
      const milliseconds at{over.count() * static_cast<std::int64_t>(i) /
                            static_cast<std::int64_t>(count)};
      body += begin;
      body += format_rfc3339(from + at);
      body += end_of_task;
    }
    body.back() = ']';
    if (count_of(socket.post("/v1/tasks/batch", body), R"("id":")") != end - done) {
      throw ServerError("a task was refused");
    }
  }
}

/// Leases and completes until the time is over. Calls `see` with the due time of each task.
void work(std::uint16_t port, const std::string& queue, std::size_t max, WallTime end,
          const std::function<void(WallTime due, WallInstant now)>& see) {
  HttpSocket socket(port);
  const std::string path = "/v1/queues/" + queue + "/lease";
  std::string leases;
  while (wall_now() < end) {
    const std::string_view answer =
        socket.post(path, R"({"max":)" + std::to_string(max) + R"(,"wait_ms":500})");
    const WallInstant now = wall_now();
    leases = R"({"leases":[)";
    for (std::size_t at = 0;;) {
      const std::string_view lease = next_string(answer, R"("lease":")", at);
      if (at == std::string_view::npos) break;
      leases += '"' + std::string(lease) + "\",";
      see(parse_rfc3339(next_string(answer, R"("due_at":")", at)).value(), now);
    }
    if (leases.back() == '[') continue;
    leases.back() = ']';
    leases += '}';
    socket.post("/v1/leases/complete", leases);
  }
}

}  // namespace

std::vector<Seen> storm_over_http(const std::filesystem::path& program,
                                  const std::filesystem::path& folder, std::size_t storm_tasks,
                                  int storm_workers) {
  const std::unique_ptr<ServerPeer> detent = detent_server(program, "always");
  if (!detent->traits().missing.empty()) throw ServerError(detent->traits().missing);
  std::filesystem::create_directories(folder);
  const RunningServer server(*detent, folder);
  const std::uint16_t port = server.port();
  const auto start = std::chrono::ceil<milliseconds>(wall_now());
  const WallTime end = start + kCalmFor;
  if (storm_tasks > 0) load(port, "storm", storm_tasks, start + kStormAfter, kStormFor);
  // Loading takes a while. The measurement begins after it.
  const auto calm = std::chrono::ceil<milliseconds>(wall_now());
  if (calm >= start + kStormAfter) throw ServerError("the storm broke before it was loaded");
  load(port, "calm", static_cast<std::size_t>((end - calm).count()), calm, end - calm);

  std::vector<std::vector<Seen>> seen(kCalmWorkers);
  std::vector<std::function<void()>> bodies;
  for (std::vector<Seen>& mine : seen) {
    bodies.emplace_back([&mine, port, start, end] {
      work(port, "calm", kCalmMax, end, [&mine, start](WallTime due, WallInstant now) {
        if (now < due) throw ServerError("a task came early");
        mine.push_back({due - start, now - due});
      });
    });
  }
  for (int i = 0; i < storm_workers; ++i) {
    bodies.emplace_back([port, end] {
      work(port, "storm", kStormMax, end, [](WallTime /*due*/, WallInstant /*now*/) {});
    });
  }
  Progress progress;
  run_threads(bodies, progress);
  std::vector<Seen> all;
  for (const std::vector<Seen>& mine : seen) all.insert(all.end(), mine.begin(), mine.end());
  return all;
}

}  // namespace detent::bench
