#include "server/beanstalk/beanstalk_server.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "net/message/input_buffer.h"
#include "protocol/beanstalk/command_parser.h"
#include "server/beanstalk/beanstalk_session.h"
#include "task/request.h"

namespace detent::server {
namespace {

using beanstalk::CommandParser;

/// The most commands in one batch. Further commands wait as bytes, which take less memory.
constexpr std::size_t kMaxBatch = 256;
/// For a client to send the rest of a command that it has begun.
constexpr std::chrono::seconds kCommandTimeout{60};

std::string random_id() {
  constexpr std::string_view kHex = "0123456789abcdef";
  Rng rng(random_seed());
  std::string id(16, '0');
  for (char& digit : id) digit = kHex[rng.below(16)];
  return id;
}

/// The I/O side of a client. Confined to the I/O thread.
class Connection final : public net::StreamHandler {
 public:
  Connection(BeanstalkHub& hub, JobShards& shards, const std::shared_ptr<net::Stream>& stream)
      : clock_(hub.clock),
        shards_(shards),
        stream_(*stream),
        session_(std::make_shared<BeanstalkSession>(hub, shards, stream)),
        parser_(kMaxPayloadBytes),
        has_opened_(shards.post(session_, &BeanstalkSession::open)) {}

  void on_bytes(std::string_view bytes) override { pump(bytes); }
  void on_sent() override {
    if (!session_->has_more()) return pump({});
    post(&BeanstalkSession::go_on);
  }
  void on_end() override { post(&BeanstalkSession::end_waits); }
  void on_closed() override {
    if (has_opened_) shards_.post_end(session_, &BeanstalkSession::close);
  }

 private:
  /// Hands on the commands that are whole, or reads on.
  void pump(std::string_view fresh) {
    if (!has_opened_ || is_from_a_page(fresh)) return stream_.close();
    std::vector<beanstalk::Input> batch;
    const std::string_view bytes = input_.join(fresh);
    std::size_t taken = 0;
    while (taken < bytes.size() && batch.size() < kMaxBatch && !has_quit_) {
      taken += parser_.parse(bytes.substr(taken));
      if (!parser_.is_complete()) break;
      command_end_.reset();
      beanstalk::Input input = parser_.take();
      const auto* const command = std::get_if<beanstalk::Command>(&input);
      has_quit_ = command != nullptr && command->verb == beanstalk::Verb::quit;
      if (!has_quit_) batch.push_back(std::move(input));
    }
    input_.drop(bytes, taken);
    if (!batch.empty()) {
      session_->receive(std::move(batch));
      return post(&BeanstalkSession::run);
    }
    if (has_quit_) return stream_.close();
    if (parser_.is_idle()) return stream_.read({});
    const MonotonicTime now = clock_.now();
    if (!command_end_) command_end_ = now + kCommandTimeout;
    if (now >= *command_end_) return stream_.close();  // however often a byte of it comes
    stream_.read(std::chrono::ceil<std::chrono::milliseconds>(*command_end_ - now));
  }

  /// Any web page can make a browser send a POST to this port, and its body would be read as
  /// commands.
  bool is_from_a_page(std::string_view fresh) {
    return !fresh.empty() && !std::exchange(has_begun_, true) && fresh.starts_with("POST ");
  }

  void post(JobShards::Step step) {
    if (!shards_.post(session_, step)) stream_.close();
  }

  const Clock& clock_;
  JobShards& shards_;
  net::Stream& stream_;
  const std::shared_ptr<BeanstalkSession> session_;
  CommandParser parser_;
  net::InputBuffer input_;
  std::optional<MonotonicTime> command_end_;  // of the incomplete command
  const bool has_opened_;
  bool has_begun_ = false;
  bool has_quit_ = false;
};

}  // namespace

BeanstalkServer::BeanstalkServer(const Clock& clock) : hub_{.clock = clock, .id = random_id()} {}

Result<std::unique_ptr<BeanstalkServer>> BeanstalkServer::start(net::StreamServerOptions options,
                                                                JobShards& shards,
                                                                const Clock& clock) {
  std::unique_ptr<BeanstalkServer> server(new BeanstalkServer(clock));
  const auto accept = [&hub = server->hub_, &shards](const std::shared_ptr<net::Stream>& stream) {
    return std::make_unique<Connection>(hub, shards, stream);
  };
  ASSIGN_OR_RETURN(server->streams_, net::StreamServer::start(std::move(options), accept));
  return server;
}

}  // namespace detent::server
