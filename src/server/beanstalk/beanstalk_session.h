// One beanstalk client of a single server. Its commands run one after another on the engine, which
// has all jobs.
//
// A batch contains all commands that had arrived. The session runs each command immediately and
// sends all replies together after the commit. A client that sends several commands without waiting
// therefore pays for one sync instead of one sync per command. A batch pauses in these cases: a
// `reserve` has to wait, the replies grow large, a command has read all queues, or a verb over a
// whole queue has done one step. The session then sends the replies so far, and continues after the
// client has taken them. The verbs are in beanstalk_jobs.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "net/stream_server.h"
#include "protocol/beanstalk/command.h"
#include "protocol/beanstalk/reply_writer.h"
#include "server/beanstalk/beanstalk_client_state.h"
#include "server/beanstalk/beanstalk_handler.h"
#include "server/beanstalk/beanstalk_hub.h"

namespace detent::server {

/// Lives until no caller can reach it.
class BeanstalkSession final : public BeanstalkHandler,
                               public std::enable_shared_from_this<BeanstalkSession> {
 public:
  /// `hub` must outlive it.
  BeanstalkSession(BeanstalkHub& hub, std::weak_ptr<net::Stream> stream);

  void open() override { client_.open(); }
  EngineThread::QueueOf queue() override {
    return [self = shared_from_this()](const Engine& /*engine*/) { return self->client_.queue(); };
  }
  void run(Engine& engine, std::vector<beanstalk::Input> inputs) override;
  void go_on(Engine& engine) override;
  void end_waits(Engine& engine) override;
  void close(Engine& engine) override;
  bool has_more() const noexcept override { return has_more_; }

 private:
  /// The outcome of one command.
  enum class Step : std::uint8_t {
    answered,
    at_length,      // answered, with so much work that others come next
    after_sending,  // must be tried again after the earlier replies have been sent
    waits,          // somebody will go on
  };
  /// Commands that arrived together, and how many of them are answered.
  struct Batch {
    std::vector<beanstalk::Input> inputs;
    std::size_t next = 0;
    bool is_counted = false;      // the next command, in the hub's counters
    std::optional<JobCall> call;  // the call of the next command

    bool has_next() const noexcept { return next < inputs.size(); }
    void go_to_next() noexcept {
      ++next;
      is_counted = false;
    }
  };
  using Command = beanstalk::Command;
  using Word = beanstalk::Word;
  using Timeout = std::optional<std::chrono::seconds>;

  // The loop.
  Step answer(Engine& engine, beanstalk::Input& input);
  Step answer(Engine& engine, Command& command);
  Step answer_call(Engine& engine);
  bool go_on_later();
  void flush(Engine& engine);
  void send();
  Step say(Word word);

  // The reserve command, and leases.
  Step reserve(Engine& engine, Timeout timeout);
  Step park(Engine& engine, Timeout timeout);
  void wake(Result<std::vector<LeasedTask>> tasks);
  void hold(const LeasedTask& leased);
  void give_back_some(Engine& engine);

  BeanstalkHub& hub_;
  const std::weak_ptr<net::Stream> stream_;
  BeanstalkClientState client_;
  JobVerbs verbs_;

  Batch batch_;
  bool has_more_ = false;    // passed to the I/O thread and back with send() and go_on()
  std::string out_;          // answers that are not sent
  std::size_t answers_ = 0;  // in out_

  bool is_closed_ = false;
  bool waits_ended_ = false;
  bool is_parked_ = false;
  Engine::WaitId wait_ = 0;
  std::optional<MonotonicTime> soon_;  // when the wait under way ends with DEADLINE_SOON
};

}  // namespace detent::server
