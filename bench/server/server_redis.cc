// Redis as a delay queue. A sorted set has the ids by due time, and a hash has the payloads. A
// transaction with one ZADD and one HSET writes many of them. A script moves due tasks to a set of
// leases. ZREM and HDEL finish tasks. In Redis a client cannot wait for a score, so workers poll
// every millisecond. Expired leases would need a second poller, which is left out.
#include <atomic>
#include <string>

#include "bench/server/server_peer.h"
#include "bench/server/server_socket.h"

namespace detent::bench {
namespace {

constexpr std::string_view kTake = R"(
local ids = redis.call('ZRANGEBYSCORE', 'due', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #ids == 0 then return {{}, {}} end
local leases = {}
for i, id in ipairs(ids) do
  leases[2 * i - 1] = ARGV[1]
  leases[2 * i] = id
end
redis.call('ZREM', 'due', unpack(ids))
redis.call('ZADD', 'leases', unpack(leases))
return {ids, redis.call('HMGET', 'tasks', unpack(ids))})";

/// An answer in RESP 2: a number, a text, or a list of answers.
struct RedisAnswer {
  std::int64_t number = 0;
  std::string text;
  std::vector<RedisAnswer> list;
};

class RedisClient final : public ServerClient {
 public:
  explicit RedisClient(std::uint16_t port) : socket_(port) {
    add({"SCRIPT", "LOAD", kTake});  // refused while the server still loads its tasks
    script_ = ask(1).text;
    static std::atomic<int> clients{0};
    prefix_ = std::to_string(clients.fetch_add(1)) + "-";
  }

  int descriptor() const override { return socket_.descriptor(); }

  void send_put(std::span<const std::int64_t> delays_ms) override {
    const std::int64_t now = wall_us();
    add({"MULTI"});
    begin(2 + 2 * delays_ms.size());
    add_part("ZADD");
    add_part("due");
    for (std::size_t i = 0; i < delays_ms.size(); ++i) {
      add_part(std::to_string(now + delays_ms[i] * 1'000));
      add_part(prefix_ + std::to_string(next_id_ + i));
    }
    begin(2 + 2 * delays_ms.size());
    add_part("HSET");
    add_part("tasks");
    for (std::size_t i = 0; i < delays_ms.size(); ++i) {
      std::string payload;
      append_payload(payload, now + delays_ms[i] * 1'000);
      add_part(prefix_ + std::to_string(next_id_ + i));
      add_part(payload);
    }
    next_id_ += delays_ms.size();
    add({"EXEC"});
    socket_.send(text_);
    text_.clear();
  }
  std::size_t receive_put() override { return done_in_transaction(); }

  TakenTasks take(std::size_t max, int wait_ms) override {
    return poll_until_due(wait_ms, [this, max] { return take_what_is_due(max); });
  }

  std::size_t finish(const std::vector<TakenTask>& tasks) override {
    add({"MULTI"});
    for (const std::string_view verb : {"ZREM leases", "HDEL tasks"}) {
      begin(2 + tasks.size());
      add_part(verb.substr(0, 4));
      add_part(verb.substr(5));
      for (const TakenTask& task : tasks) add_part(task.handle);
    }
    add({"EXEC"});
    socket_.send(text_);
    text_.clear();
    return done_in_transaction();
  }

  std::uint64_t count() override {
    add({"HLEN", "tasks"});
    return static_cast<std::uint64_t>(ask(1).number);
  }

 private:
  TakenTasks take_what_is_due(std::size_t max) {
    add({"EVALSHA", script_, "0", std::to_string(wall_us()), std::to_string(max)});
    const RedisAnswer answer = ask(1);
    TakenTasks taken{.received_us = wall_us(), .tasks = {}};
    const RedisAnswer& ids = answer.list.at(0);
    for (std::size_t i = 0; i < ids.list.size(); ++i) {
      const std::string& payload = answer.list.at(1).list.at(i).text;
      taken.tasks.push_back({ids.list[i].text, due_of_payload(payload)});
    }
    return taken;
  }

  void begin(std::size_t parts) { text_ += "*" + std::to_string(parts) + "\r\n"; }
  void add_part(std::string_view part) {
    text_ += '$';
    text_ += std::to_string(part.size());
    text_ += "\r\n";
    text_ += part;
    text_ += "\r\n";
  }
  void add(std::initializer_list<std::string_view> parts) {
    begin(parts.size());
    for (const std::string_view part : parts) add_part(part);
  }

  /// Sends the added commands, reads this number of answers and returns the last.
  RedisAnswer ask(int answers) {
    socket_.send(text_);
    text_.clear();
    for (int i = 1; i < answers; ++i) read_answer();
    return read_answer();
  }

  /// The number of members that both commands of a transaction report.
  std::size_t done_in_transaction() {
    for (int i = 0; i < 3; ++i) read_answer();
    const RedisAnswer answer = read_answer();
    const std::int64_t done = answer.list.at(0).number;
    if (answer.list.at(1).number != done) throw ServerError("a task without its payload");
    return static_cast<std::size_t>(done);
  }

  RedisAnswer read_answer() {
    const std::string line(socket_.read_line());
    RedisAnswer answer;
    const char kind = line.empty() ? '-' : line[0];
    if (kind == '-') throw ServerError(line);
    if (kind == '+') answer.text = line.substr(1);
    if (kind == ':' || kind == '$' || kind == '*') answer.number = std::stoll(line.substr(1));
    if (kind == '$' && answer.number >= 0) {
      const auto size = static_cast<std::size_t>(answer.number);
      answer.text = socket_.read(size + 2).substr(0, size);
    }
    for (std::int64_t i = 0; kind == '*' && i < answer.number; ++i) {
      answer.list.push_back(read_answer());
    }
    return answer;
  }

  Socket socket_;
  std::string script_;
  std::string prefix_;
  std::uint64_t next_id_ = 0;
  std::string text_;
};

class RedisServer final : public ServerPeer {
 public:
  using ServerPeer::ServerPeer;

  std::vector<std::string> command(const ServerPlace& place, Loading /*loading*/) const override {
    const bool is_synced = traits().promise == Promise::synced;
    return {find_program("redis-server").string(),
            "--port",
            std::to_string(place.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            place.folder.string(),
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            is_synced ? "always" : "everysec"};
  }
  std::unique_ptr<ServerClient> connect(std::uint16_t port) override {
    return std::make_unique<RedisClient>(port);
  }
};

}  // namespace

std::unique_ptr<ServerPeer> redis_server(Promise promise) {
  const bool is_synced = promise == Promise::synced;
  PeerTraits traits{.name = is_synced ? "Redis always" : "Redis everysec",
                    .form = "ZADD + HSET of 500 in MULTI; polls every 1 ms",
                    .promise = promise,
                    .batch = 500,
                    .can = {.waits = is_synced},
                    .missing = {}};
  if (find_program("redis-server").empty()) traits.missing = "redis-server is not installed";
  return std::make_unique<RedisServer>(std::move(traits));
}

}  // namespace detent::bench
