// NATS JetStream with a stream on disk as a work queue. Messages are published in sequence, and the
// stream acknowledges them. Workers fetch batches, acknowledge each message and get a confirmation.
// The version of Debian 12 has no delays, so every task is due immediately. It syncs its files
// every two minutes.
//
// The protocol: https://docs.nats.io/reference/reference-protocols/nats-protocol, and the subjects
// of JetStream: https://docs.nats.io/reference/reference-protocols/nats_api_reference
#include <algorithm>
#include <atomic>
#include <string>

#include "bench/server/server_peer.h"
#include "bench/server/server_socket.h"

namespace detent::bench {
namespace {

constexpr std::string_view kStream =
    R"({"name":"bench","subjects":["tasks"],"retention":"workqueue","storage":"file"})";
constexpr std::string_view kConsumer =
    R"({"stream_name":"bench","config":{"durable_name":"workers","ack_policy":"explicit",)"
    R"("max_ack_pending":100000}})";

struct NatsMessage {
  std::string reply;      ///< the subject of its acknowledgement
  std::string status;     ///< "404", "408" …: no message; empty for a message
  std::string_view text;  ///< valid until the next read
};

class NatsClient final : public ServerClient {
 public:
  explicit NatsClient(std::uint16_t port) : socket_(port) {
    static std::atomic<int> clients{0};
    inbox_ = "_INBOX." + std::to_string(clients.fetch_add(1));
    text_ = R"(CONNECT {"verbose":false,"headers":true,"no_responders":true})"
            "\r\nSUB " +
            inbox_ + " 1\r\n";
    request("$JS.API.STREAM.CREATE.bench", kStream);
    request("$JS.API.CONSUMER.DURABLE.CREATE.bench.workers", kConsumer);
  }

  int descriptor() const override { return socket_.descriptor(); }

  void send_put(std::span<const std::int64_t> delays_ms) override {
    const std::int64_t now = wall_us();
    std::string payload;
    for (const std::int64_t delay : delays_ms) {
      payload.clear();
      append_payload(payload, now + delay * 1'000);
      publish("tasks", payload);
    }
    put_count_ = delays_ms.size();
    flush();
  }
  std::size_t receive_put() override {
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < put_count_; ++i) accepted += count_of(receive().text, R"("seq":)");
    return accepted;
  }

  TakenTasks take(std::size_t max, int wait_ms) override {
    const std::size_t asked = wait_ms == 0 ? max : 1;
    const std::string patience =
        wait_ms == 0 ? R"("no_wait":true})" : R"("expires":)" + std::to_string(wait_ms) + "000000}";
    publish("$JS.API.CONSUMER.MSG.NEXT.bench.workers",
            R"({"batch":)" + std::to_string(asked) + "," + patience);
    flush();
    TakenTasks taken;
    while (taken.tasks.size() < asked) {
      const NatsMessage message = receive();
      if (message.status == "404" || message.status == "408") break;
      if (!message.status.empty()) throw ServerError("fetch: status " + message.status);
      taken.tasks.push_back({message.reply, due_of_payload(message.text)});
    }
    taken.received_us = wall_us();
    return taken;
  }

  std::size_t finish(const std::vector<TakenTask>& tasks) override {
    for (const TakenTask& task : tasks) publish(task.handle, "+ACK");
    flush();
    std::size_t finished = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (receive().status.empty()) ++finished;
    }
    return finished;
  }

  std::uint64_t count() override {
    return static_cast<std::uint64_t>(
        number_after(request("$JS.API.STREAM.INFO.bench", ""), R"("messages":)"));
  }

 private:
  void publish(std::string_view subject, std::string_view text) {
    text_ += "PUB ";
    text_ += subject;
    text_ += ' ' + inbox_ + ' ' + std::to_string(text.size()) + "\r\n";
    text_ += text;
    text_ += "\r\n";
  }
  void flush() {
    socket_.send(text_);
    text_.clear();
  }
  /// Throws ServerError unless the answer means success.
  std::string_view request(std::string_view subject, std::string_view text) {
    publish(subject, text);
    flush();
    const NatsMessage answer = receive();
    if (!answer.status.empty() || answer.text.find(R"("error":)") != std::string_view::npos) {
      throw ServerError(std::string(subject) + ": " + answer.status + std::string(answer.text));
    }
    return answer.text;
  }

  /// MSG subject sid [reply] size; HMSG subject sid [reply] head-size size.
  NatsMessage receive() {
    for (;;) {
      const std::string line(socket_.read_line());
      if (line.starts_with("-ERR")) throw ServerError(line);
      if (line == "PING") socket_.send("PONG\r\n");
      const bool has_head = line.starts_with("HMSG ");
      if (!has_head && !line.starts_with("MSG ")) continue;
      std::vector<std::string> words{""};
      for (const char c : line) {
        if (c == ' ') {
          words.emplace_back();
        } else {
          words.back() += c;
        }
      }
      const std::size_t with_reply = has_head ? 6 : 5;
      NatsMessage message;
      if (words.size() == with_reply) message.reply = words[3];
      const std::size_t size = std::stoul(words.back());
      message.text = socket_.read(size + 2).substr(0, size);
      if (has_head && message.text.starts_with("NATS/1.0 ")) {
        message.status = message.text.substr(9, 3);
      }
      return message;
    }
  }

  Socket socket_;
  std::string inbox_;
  std::string text_;
  std::size_t put_count_ = 0;
};

class NatsServer final : public ServerPeer {
 public:
  using ServerPeer::ServerPeer;

  std::vector<std::string> command(const ServerPlace& place, Loading /*loading*/) const override {
    return {find_program("nats-server", {"/usr/sbin"}).string(),
            "-a",
            "127.0.0.1",
            "-p",
            std::to_string(place.port),
            "-js",
            "-sd",
            place.folder.string()};
  }
  std::unique_ptr<ServerClient> connect(std::uint16_t port) override {
    return std::make_unique<NatsClient>(port);
  }
};

}  // namespace

std::unique_ptr<ServerPeer> nats_server() {
  PeerTraits traits{.name = "NATS",
                    .form = "JetStream, 500 publishes pipelined; no delays, so no lateness",
                    .promise = Promise::interval,
                    .batch = 500,
                    .can = {.delays = false, .fires = false},
                    .missing = {}};
  if (find_program("nats-server", {"/usr/sbin"}).empty()) {
    traits.missing = "nats-server is not installed";
  }
  return std::make_unique<NatsServer>(std::move(traits));
}

}  // namespace detent::bench
