// Detent over HTTP with keep-alive. A batch is one request with 1 000 tasks, a lease takes up to
// 1 000 tasks, and one request completes them. Lateness is computed from `due_at` of the answer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "bench/server/http_socket.h"
#include "bench/server/server_peer.h"
#include "bench/server/server_socket.h"

namespace detent::bench {
namespace {

/// "2026-01-02T03:04:05.678Z" in microseconds since 1970.
std::int64_t parse_due(std::string_view text) {
  const std::string copy(text.substr(0, 24));
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int millisecond = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d.%3dZ", &year, &month, &day, &hour, &minute,
                  &second, &millisecond) != 7) {
    throw ServerError("no time: " + copy);
  }
  const std::chrono::sys_days date =
      std::chrono::year{year} / std::chrono::month{month} / std::chrono::day{day};
  const auto time = date + std::chrono::hours{hour} + std::chrono::minutes{minute} +
                    std::chrono::seconds{second} + std::chrono::milliseconds{millisecond};
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

class DetentClient final : public ServerClient {
 public:
  explicit DetentClient(std::uint16_t port) : socket_(port) { socket_.get("/readyz"); }

  int descriptor() const override { return socket_.descriptor(); }

  void send_put(std::span<const std::int64_t> delays_ms) override {
    const std::int64_t now = wall_us();
    body_.clear();
    if (delays_ms.size() > 1) body_ += '[';
    for (const std::int64_t delay : delays_ms) {
      body_ += R"({"queue":"bench","delay_ms":)" + std::to_string(delay) + R"(,"payload":")";
      append_payload(body_, now + delay * 1'000, 98);  // and its two quotes
      body_ += "\"},";
    }
    body_.pop_back();
    if (delays_ms.size() > 1) body_ += ']';
    socket_.send_post(delays_ms.size() > 1 ? "/v1/tasks/batch" : "/v1/tasks", body_);
  }
  std::size_t receive_put() override { return count_of(socket_.receive(), R"("id":")"); }

  TakenTasks take(std::size_t max, int wait_ms) override {
    body_ = R"({"max":)" + std::to_string(max) + R"(,"wait_ms":)" + std::to_string(wait_ms) + "}";
    const std::string_view answer = socket_.post("/v1/queues/bench/lease", body_);
    TakenTasks taken{.received_us = wall_us(), .tasks = {}};
    for (std::size_t at = 0;;) {
      const std::string_view lease = next_string(answer, R"("lease":")", at);
      if (at == std::string_view::npos) return taken;
      taken.tasks.push_back(
          {std::string(lease), parse_due(next_string(answer, R"("due_at":")", at))});
    }
  }

  std::size_t finish(const std::vector<TakenTask>& tasks) override {
    body_ = R"({"leases":[)";
    for (const TakenTask& task : tasks) body_ += '"' + task.handle + "\",";
    body_.back() = ']';
    body_ += '}';
    return count_of(socket_.post("/v1/leases/complete", body_), R"("status":"done")");
  }

  std::uint64_t count() override {
    std::string_view stats = socket_.get("/v1/stats");
    const std::size_t queues = stats.find(R"("queues":[)");
    stats.remove_prefix(std::min(queues, stats.size()));
    if (stats.find(R"("queue":)") == std::string_view::npos) return 0;
    std::int64_t sum = 0;
    for (const char* state : {R"("scheduled":)", R"("ready":)", R"("leased":)", R"("dead":)"}) {
      sum += number_after(stats, state);
    }
    return static_cast<std::uint64_t>(sum);
  }

 private:
  HttpSocket socket_;
  std::string body_;
};

class DetentServer final : public ServerPeer {
 public:
  DetentServer(const std::filesystem::path& program, const std::string& sync, PeerTraits traits)
      : ServerPeer(std::move(traits)), program_(program), sync_(sync) {}

  std::vector<std::string> command(const ServerPlace& place, Loading /*loading*/) const override {
    return {program_.string(), "serve",
            "--data",          (place.folder / "data").string(),
            "--http",          "127.0.0.1:" + std::to_string(place.port),
            "--beanstalk",     "off",
            "--sync",          sync_,
            "--log-level",     "warning"};
  }
  std::unique_ptr<ServerClient> connect(std::uint16_t port) override {
    return std::make_unique<DetentClient>(port);
  }

 private:
  const std::filesystem::path program_;
  const std::string sync_;
};

}  // namespace

std::unique_ptr<ServerPeer> detent_server(const std::filesystem::path& program,
                                          const std::string& sync) {
  const bool is_synced = sync == "always";
  PeerTraits traits{.name = is_synced ? "detent" : "detent interval",
                    .form = "HTTP batch of 1 000; waiting lease",
                    .promise = is_synced ? Promise::synced : Promise::interval,
                    .batch = 1'000,
                    .can = {.waits = is_synced},
                    .missing = {}};
  if (!std::filesystem::exists(program)) traits.missing = "no program " + program.string();
  return std::make_unique<DetentServer>(program, sync, std::move(traits));
}

}  // namespace detent::bench
