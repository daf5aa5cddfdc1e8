// One beanstalk client of a server alone: its commands one after another, on the engine that has
// everything.
//
// Commands come in batches, as many as had arrived; each is run at once and their replies go out
// together after the commit, so a client that sends ahead pays for one sync, not for one a command.
// A batch stops where a `reserve` has to wait, where its replies grow large, after a look at all
// queues, and between the steps of a verb over a whole queue; what was answered until then is sent
// first, and the rest goes on when the client has taken it. The verbs are in beanstalk_jobs.cc.
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
#include "server/beanstalk_handler.h"
#include "server/beanstalk_hub.h"
#include "server/served_client.h"

namespace detent::server {

/// Lives as long as somebody may call it.
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
  /// What became of one command.
  enum class Step : std::uint8_t {
    answered,
    at_length,      // answered, with so much work that others come next
    after_sending,  // to be tried again when what was answered before has been sent
    waits,          // somebody will go on
  };
  /// Commands that came together, and how far they are answered.
  struct Batch {
    std::vector<beanstalk::Input> inputs;
    std::size_t next = 0;
    bool is_counted = false;      // the next one, in the hub's commands
    std::optional<JobCall> call;  // the next one, on its way

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

  // reserve, and leases.
  Step reserve(Engine& engine, Timeout timeout);
  Step park(Engine& engine, Timeout timeout);
  void wake(Result<std::vector<LeasedTask>> tasks);
  void hold(const LeasedTask& leased);
  void give_back_some(Engine& engine);

  BeanstalkHub& hub_;
  const std::weak_ptr<net::Stream> stream_;
  ServedClient client_;
  JobVerbs verbs_;

  Batch batch_;
  bool has_more_ = false;    // handed over to the I/O thread and back with send() and go_on()
  std::string out_;          // answers that are not sent
  std::size_t answers_ = 0;  // in out_

  bool is_closed_ = false;
  bool waits_ended_ = false;
  bool is_parked_ = false;
  Engine::WaitId wait_ = 0;
  std::optional<MonotonicTime> soon_;  // when the wait under way ends with DEADLINE_SOON
};

}  // namespace detent::server
