// One beanstalk client as the engine sees it: its commands one after another, the queue it uses,
// those it watches, and the leases it holds.
//
// Commands come in batches, as many as had arrived; each is run at once and their replies go out
// together after the commit, so a client that sends ahead pays for one sync, not for one a command.
// A batch stops where a `reserve` has to wait, where its replies grow large, after a look at all
// queues, and between the steps of a verb over a whole queue; what was answered until then is sent
// first, and the rest goes on when the client has taken it. The verbs are in beanstalk_verbs.cc,
// what they tell of the server in beanstalk_stats.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "net/stream_server.h"
#include "protocol/beanstalk/command.h"
#include "protocol/beanstalk/reply_writer.h"
#include "server/beanstalk_hub.h"

namespace detent::server {

/// Confined to the engine's thread, has_more() apart. Lives as long as somebody may call it.
class BeanstalkSession final : public std::enable_shared_from_this<BeanstalkSession> {
 public:
  /// `hub` must outlive it.
  BeanstalkSession(BeanstalkHub& hub, std::weak_ptr<net::Stream> stream);

  void open();
  /// What the client takes from or, if it only puts, puts to. All that is posted for a client is
  /// posted with this: only what is posted changes it, so that runs in the order of the posts. On
  /// any thread.
  EngineThread::QueueOf queue() {
    return [self = shared_from_this()](const Engine& /*engine*/) {
      return self->is_worker_ ? self->reserve_.queue : self->used_;
    };
  }
  /// Requires: the batch before has been answered.
  void run(Engine& engine, std::vector<beanstalk::Input> inputs);
  /// After what was sent has been taken: the rest of the batch. Requires: has_more().
  void go_on(Engine& engine);
  /// The client will send no more: it waits for no task any longer.
  void end_waits(Engine& engine);
  /// The client has gone: the leases it holds are given back.
  void close(Engine& engine);

  /// On the I/O thread, when something was sent and until go_on(): whether there is more to answer.
  bool has_more() const noexcept { return has_more_; }

 private:
  /// What became of one command.
  enum class Step : std::uint8_t {
    answered,
    at_length,      // answered, with so much work that others come next
    after_sending,  // to be tried again when what was answered before has been sent
    waits,          // somebody will go on
  };
  /// A lease that this client holds.
  struct Held {
    LeaseToken lease;
    MonotonicTime until{};
    std::chrono::milliseconds length{0};
    std::string queue;
  };
  using Command = beanstalk::Command;
  using Word = beanstalk::Word;
  using Timeout = std::optional<std::chrono::seconds>;

  // The loop.
  Step answer(Engine& engine, const beanstalk::Input& input);
  Step answer(Engine& engine, const Command& command);
  Step go_on_later();
  void flush(Engine& engine);
  void send();
  Step say(Word word);
  Step say(const Error& error);
  void count(const Command& command);

  // reserve, and leases.
  Step reserve(Engine& engine, Timeout timeout);
  Step park(Engine& engine, Timeout timeout);
  void wake(Result<std::vector<LeasedTask>> tasks);
  void hold(const LeasedTask& leased);
  std::optional<MonotonicTime> deadline_soon();
  void count_waits(std::uint64_t change);
  void give_back_some(Engine& engine);

  // The other verbs.
  Step put(Engine& engine, const Command& command);
  Step reserve_job(Engine& engine, const Command& command);
  Step delete_job(Engine& engine, const Command& command);
  Step release(Engine& engine, const Command& command);
  Step bury(Engine& engine, const Command& command);
  Step touch(Engine& engine, const Command& command);
  Step use(const Command& command);
  Step watch(const Command& command);
  Step ignore(const Command& command);
  Step peek(Engine& engine, const Command& command);
  Step show(const Result<TaskSnapshot>& found);
  Step peek_delayed(Engine& engine);
  Step kick(Engine& engine, const Command& command);
  Step kick_job(Engine& engine, const Command& command);
  Step pause(Engine& engine, const Command& command);
  Step stats(Engine& engine);
  Step stats_job(Engine& engine, const Command& command);
  Step stats_queue(Engine& engine, const Command& command);
  Step list_queues(Engine& engine);
  bool exists(Engine& engine, const std::string& queue) const;
  std::vector<std::string> queue_names(const EngineStats& stats) const;

  BeanstalkHub& hub_;
  const std::weak_ptr<net::Stream> stream_;

  std::vector<beanstalk::Input> batch_;
  std::size_t next_ = 0;     // in batch_
  bool is_counted_ = false;  // that one, in the hub's commands
  bool has_more_ = false;    // handed over to the I/O thread and back with send() and go_on()
  std::string out_;          // answers that are not sent
  std::size_t answers_ = 0;  // in out_

  std::string used_ = "default";
  LeaseRequest reserve_;                          // its queues are those watched
  std::unordered_map<std::uint64_t, Held> held_;  // by task id
  bool is_producer_ = false;
  bool is_worker_ = false;
  bool is_closed_ = false;
  bool waits_ended_ = false;
  bool is_parked_ = false;
  Engine::WaitId wait_ = 0;
  std::optional<MonotonicTime> soon_;  // when the wait under way ends with DEADLINE_SOON

  /// Of the kick, or the search, that is under way.
  struct Progress {
    bool is_of_dead = false;
    QueueCursor cursor = {};
    std::uint64_t count = 0;
  };
  std::optional<Progress> kick_;
  std::optional<Place> search_;
};

}  // namespace detent::server
