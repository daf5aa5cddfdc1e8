// One beanstalk client. Its commands run one after another, on the thread of the sessions. The
// shards with the jobs are behind an interface: a server alone has one shard, on this thread; a
// node of a cluster asks the shards of all nodes (job_shards.h).
//
// A batch contains all commands that had arrived. The session runs each command and sends the
// replies together after the commit. A client that sends several commands without waiting therefore
// pays for one sync instead of one sync per command. A batch pauses in these cases: a `reserve` has
// to wait, the replies grow large, or a command has read all queues. The session then sends the
// replies so far, and continues after the client has taken them.
//
// On a node of a cluster, the answers of shards come later. The session then sends consecutive
// commands for the same shard in one message, and they share a commit. If a shard is not available
// (it moves, or its owner died), commands for it fail with INTERNAL_ERROR. A client that waits for
// a job keeps waiting for this shard too. A new owner of a shard does not know the leases of the
// previous owner and answers NOT_FOUND.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/socket/stream_server.h"
#include "protocol/beanstalk/command.h"
#include "protocol/beanstalk/reply_writer.h"
#include "server/beanstalk/beanstalk_client_state.h"
#include "server/beanstalk/beanstalk_hub.h"
#include "server/beanstalk/job_shards.h"
#include "server/beanstalk/tube_replies.h"

namespace detent::server {

/// Lives until no caller can reach it. Confined to the thread of the sessions, except the first two
/// methods.
class BeanstalkSession final : public std::enable_shared_from_this<BeanstalkSession> {
 public:
  /// Both references must outlive it.
  BeanstalkSession(BeanstalkHub& hub, JobShards& shards, std::weak_ptr<net::Stream> stream);

  // ---- On the I/O thread ----

  /// Takes the next batch. Post run() then. Requires: the previous batch has been answered.
  void receive(std::vector<beanstalk::Input> inputs) { received_ = std::move(inputs); }
  /// Returns true if the batch has more commands to answer. Call it between a send and go_on().
  bool has_more() const noexcept { return has_more_; }

  // ---- Steps: post them with JobShards::post() ----

  void open() { client_.open(); }
  /// Answers the batch that was received.
  void run();
  /// Answers the rest of the batch, once the client has taken the replies sent so far. Requires:
  /// has_more().
  void go_on();
  /// The client will send no more commands, so its waits for jobs end.
  void end_waits();
  /// The client has disconnected: the leases that it holds are released.
  void close();

  // ---- For the shards ----

  /// The queue for everything that is posted for this client. It keeps the order of the posts.
  std::string queue() const { return client_.queue(); }
  const LeaseRequest& wanted() const noexcept { return client_.wanted(); }
  /// A reserve begins to wait.
  void waits();
  /// A reserve has ended, and its result is committed. Runs no verb.
  void reserved(const Reserved& result);
  /// The changes of all replies so far are durable, or it is unknown whether they took effect.
  void committed(bool is_durable);

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
    bool is_counted = false;  // the next command, in the hub's counters

    bool has_next() const noexcept { return next < inputs.size(); }
    void go_to_next() noexcept {
      ++next;
      is_counted = false;
    }
  };
  /// A running `stats` or `list-tubes`.
  struct Gathering {
    beanstalk::Verb verb = beanstalk::Verb::stats;
    std::size_t open = 0;
    bool is_whole = true;
    AllJobs all = {};
  };
  using Command = beanstalk::Command;
  using Word = beanstalk::Word;
  using Timeout = std::optional<std::chrono::seconds>;

  // The loop.
  Step answer(beanstalk::Input& input);
  Step answer(Command& command);
  void answered();
  void flush();
  void send();
  Step say(Word word);
  void add_reply(std::string_view reply);

  // Calls, and questions to their shards.
  Step call(Command& command);
  Step ask(JobCall call);
  Step ask_tube(const JobCall& call);
  void ask_partition(TubeReplies replies, std::vector<ShardNumber> places);
  Step ask_all(beanstalk::Verb verb);
  void gather(Gathering& gathering, std::optional<ShardAnswer> answer);
  Step outcome() const noexcept;
  void called(const std::vector<JobCall>& calls, const std::optional<ShardAnswer>& answer);
  void note(const JobCall& call, const JobAnswer& answer);
  ShardNumber shard_of(const JobCall& call) const;
  ShardNumber shard_of_job(std::uint64_t id) const;
  bool joins(const Command& command, ShardNumber shard) const;

  // The reserve command, and leases.
  Step reserve(Timeout timeout);
  Step add_reserved(const Reserved& result);
  Word word_in_vain() const;
  void count_end_of_wait();
  void give_all_back();

  BeanstalkHub& hub_;
  JobShards& shards_;
  const std::weak_ptr<net::Stream> stream_;
  BeanstalkClientState client_;

  // Passed from the I/O thread with run(), and to it and back with send() and go_on().
  std::vector<beanstalk::Input> received_;
  bool has_more_ = false;

  Batch batch_;
  std::string out_;            // replies that are not sent
  std::size_t replies_ = 0;    // in out_
  bool is_answering_ = false;  // answer() runs
  bool is_answered_ = false;   // the answer to its question came at once
  bool is_reserving_ = false;  // a reserve is running
  bool is_waiting_ = false;    // and waits
  JobShards::ReserveNumber reserve_ = 0;
  std::optional<MonotonicTime> soon_;  // when the reserve ends with DEADLINE_SOON
  bool is_closed_ = false;
  bool waits_ended_ = false;
};

}  // namespace detent::server
