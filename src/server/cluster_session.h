// One beanstalk client of a node of a cluster: its commands one after another, each asked of the
// shard that has the job or the queue, on this node or another.
//
// Commands that follow one another and are of one shard go there together, and share a commit. A
// `reserve` is a conversation of its own with the shards of its queues (cluster_reserve.h).
//
// A shard that is away (it moves, its owner died) fails what is asked of it, INTERNAL_ERROR; but
// who waits for a job goes on waiting for it, too. Leases that end with their owner are unknown to
// the next: NOT_FOUND.
//
// The thread of the sessions is that of an engine without tasks (session_shards.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/stream_server.h"
#include "server/beanstalk_handler.h"
#include "server/beanstalk_hub.h"
#include "server/cluster_jobs.h"
#include "server/cluster_reserve.h"
#include "server/served_client.h"
#include "server/session_shards.h"
#include "server/tube_replies.h"

namespace detent::server {

class ClusterSession final : public BeanstalkHandler,
                             public std::enable_shared_from_this<ClusterSession> {
 public:
  /// Both must outlive it.
  ClusterSession(BeanstalkHub& hub, JobShards& shards, std::weak_ptr<net::Stream> stream);

  /// Its engine has no queues.
  EngineThread::QueueOf queue() override { return {}; }
  void open() override { client_.open(); }
  void run(Engine& engine, std::vector<beanstalk::Input> inputs) override;
  void go_on(Engine& engine) override;
  void end_waits(Engine& engine) override;
  void close(Engine& engine) override;
  bool has_more() const noexcept override { return has_more_; }

 private:
  enum class Step : std::uint8_t {
    answered,
    after_sending,  // to be tried again when what was answered before has been sent
    waits,          // somebody will go on
  };
  using Command = beanstalk::Command;
  using Word = beanstalk::Word;
  using Timeout = std::optional<std::chrono::seconds>;

  /// `stats` or `list-tubes`, under way.
  struct Gathering {
    beanstalk::Verb verb = beanstalk::Verb::stats;
    std::size_t open = 0;
    bool is_whole = true;
    AllJobs all = {};
  };

  // The loop.
  Step answer(Engine& engine);
  Step say(Word word);
  void next(Engine& engine);
  void send();
  ShardNumber shard_of(const JobCall& call) const;
  ShardNumber shard_of_job(std::uint64_t id) const;

  // Calls.
  Step call(Command& first);
  bool joins(const Command& command, ShardNumber shard) const;
  void called(Engine& engine, std::vector<JobCall> calls, std::optional<ShardAnswer> answer);
  Step ask_all(beanstalk::Verb verb);
  void ask_tube(TubeReplies replies, std::vector<ShardNumber> places);

  // reserve.
  Step reserve(Engine& engine, Timeout timeout);
  std::vector<std::string> queues_watched() const;
  void reserved(Engine& engine, std::optional<JobAnswer> got, Word in_vain);

  void give_all_back();

  BeanstalkHub& hub_;
  const SessionShards shards_;
  const std::weak_ptr<net::Stream> stream_;
  ServedClient client_;

  std::vector<beanstalk::Input> batch_;
  std::size_t next_ = 0;     // in batch_
  bool is_counted_ = false;  // that one, in the hub's commands
  bool has_more_ = false;    // handed over to the I/O thread and back with send() and go_on()
  std::string out_;          // answers that are not sent

  std::shared_ptr<ClusterReserve> reserve_;  // under way, with what it asks; null: none
  bool is_closed_ = false;
  bool waits_ended_ = false;
};

}  // namespace detent::server
