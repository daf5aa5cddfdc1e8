#include "server/beanstalk/beanstalk_server.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "net/input_buffer.h"
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
  Connection(BeanstalkHub& hub, net::Stream& stream, std::shared_ptr<BeanstalkHandler> session)
      : hub_(hub), stream_(stream), session_(std::move(session)), parser_(kMaxPayloadBytes) {
    has_opened_ =
        hub_.engine.post([session = session_](Engine&) { session->open(); }, session_->queue());
  }

  void on_bytes(std::string_view bytes) override { pump(bytes); }
  void on_sent() override {
    if (!session_->has_more()) return pump({});
    post([session = session_](Engine& engine) { session->go_on(engine); });
  }
  void on_end() override {
    post([session = session_](Engine& engine) { session->end_waits(engine); });
  }
  void on_closed() override {
    if (!has_opened_) return;
    hub_.engine.post_end([session = session_](Engine& engine) { session->close(engine); },
                         session_->queue());
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
      return post([session = session_, batch = std::move(batch)](Engine& engine) mutable {
        session->run(engine, std::move(batch));
      });
    }
    if (has_quit_) return stream_.close();
    if (parser_.is_idle()) return stream_.read({});
    const MonotonicTime now = hub_.clock.now();
    if (!command_end_) command_end_ = now + kCommandTimeout;
    if (now >= *command_end_) return stream_.close();  // however often a byte of it comes
    stream_.read(std::chrono::ceil<std::chrono::milliseconds>(*command_end_ - now));
  }

  /// Any web page can make a browser send a POST to this port, and its body would be read as
  /// commands.
  bool is_from_a_page(std::string_view fresh) {
    return !fresh.empty() && !std::exchange(has_begun_, true) && fresh.starts_with("POST ");
  }

  void post(EngineThread::Command command) {
    if (!hub_.engine.post(std::move(command), session_->queue())) stream_.close();
  }

  BeanstalkHub& hub_;
  net::Stream& stream_;
  const std::shared_ptr<BeanstalkHandler> session_;
  CommandParser parser_;
  net::InputBuffer input_;
  std::optional<MonotonicTime> command_end_;  // of the incomplete command
  bool has_opened_ = false;
  bool has_begun_ = false;
  bool has_quit_ = false;
};

}  // namespace

BeanstalkServer::BeanstalkServer(EngineThread& engine, const Clock& clock, AnswerBy answer_by)
    : hub_{.engine = engine, .clock = clock, .id = random_id()}, answer_by_(std::move(answer_by)) {}

void BeanstalkServer::give_back_again() {
  // Refused only when the engine stops: its leases end with it, or are kept.
  (void)hub_.engine.post([this](Engine&) {
    for (auto& one : std::exchange(hub_.tries, {})) one();
  });
}

Result<std::unique_ptr<BeanstalkServer>> BeanstalkServer::start(net::StreamServerOptions options,
                                                                EngineThread& engine,
                                                                const Clock& clock) {
  const auto by_session = [](BeanstalkHub& hub, const std::shared_ptr<net::Stream>& stream) {
    return std::make_shared<BeanstalkSession>(hub, stream);
  };
  return start(std::move(options), engine, clock, by_session);
}

Result<std::unique_ptr<BeanstalkServer>> BeanstalkServer::start(net::StreamServerOptions options,
                                                                EngineThread& engine,
                                                                const Clock& clock,
                                                                AnswerBy answer_by) {
  std::unique_ptr<BeanstalkServer> server(new BeanstalkServer(engine, clock, std::move(answer_by)));
  const auto accept = [self = server.get()](const std::shared_ptr<net::Stream>& stream) {
    return std::make_unique<Connection>(self->hub_, *stream, self->answer_by_(self->hub_, stream));
  };
  ASSIGN_OR_RETURN(server->streams_, net::StreamServer::start(std::move(options), accept));
  return server;
}

}  // namespace detent::server
