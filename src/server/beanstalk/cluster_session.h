// One beanstalk client of a node of a cluster. Its commands run one after another. Each command is
// sent to the shard that has the job or the queue, on this node or on another node.
//
// Consecutive commands for the same shard are sent together and share a commit. A `reserve`
// exchanges several messages with the shards of its queues (cluster_reserve.h).
//
// If a shard is not available (it moves, or its owner died), commands for it fail with
// INTERNAL_ERROR. A client that waits for a job keeps waiting for this shard too. A new owner of a
// shard does not know the leases of the previous owner and answers NOT_FOUND.
//
// The sessions run on the thread of an engine without tasks (session_shards.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/stream_server.h"
#include "server/beanstalk/beanstalk_client_state.h"
#include "server/beanstalk/beanstalk_handler.h"
#include "server/beanstalk/beanstalk_hub.h"
#include "server/beanstalk/cluster_jobs.h"
#include "server/beanstalk/cluster_reserve.h"
#include "server/beanstalk/session_shards.h"
#include "server/beanstalk/tube_replies.h"

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
    after_sending,  // must be tried again after the earlier replies have been sent
    waits,          // somebody will go on
  };
  using Command = beanstalk::Command;
  using Word = beanstalk::Word;
  using Timeout = std::optional<std::chrono::seconds>;

  /// A running `stats` or `list-tubes`.
  struct Gathering {
    beanstalk::Verb verb = beanstalk::Verb::stats;
    std::size_t open = 0;
    bool is_whole = true;
    AllJobs all = {};
  };

  // The main loop.
  Step answer(Engine& engine);
  Step say(Word word);
  void next(Engine& engine);
  void send();
  ShardNumber shard_of(const JobCall& call) const;
  ShardNumber shard_of_job(std::uint64_t id) const;

  // Sends calls to their shard.
  Step call(Command& first);
  bool joins(const Command& command, ShardNumber shard) const;
  void called(Engine& engine, std::vector<JobCall> calls, std::optional<ShardAnswer> answer);
  Step ask_all(beanstalk::Verb verb);
  void ask_tube(TubeReplies replies, std::vector<ShardNumber> places);

  // The reserve command.
  Step reserve(Engine& engine, Timeout timeout);
  std::vector<std::string> queues_watched() const;
  void reserved(Engine& engine, std::optional<JobAnswer> got, Word in_vain);

  void give_all_back();

  BeanstalkHub& hub_;
  const SessionShards shards_;
  const std::weak_ptr<net::Stream> stream_;
  BeanstalkClientState client_;

  std::vector<beanstalk::Input> batch_;
  std::size_t next_ = 0;     // in batch_
  bool is_counted_ = false;  // the current command, in the hub's counters
  bool has_more_ = false;    // passed to the I/O thread and back with send() and go_on()
  std::string out_;          // answers that are not sent

  std::shared_ptr<ClusterReserve> reserve_;  // the running reserve with its questions; null: no
                                             // reserve is running
  bool is_closed_ = false;
  bool waits_ended_ = false;
};

}  // namespace detent::server
