// One beanstalk client of a node of a cluster: its commands one after another, each asked of the
// shard that has the job or the queue, on this node or another.
//
// Commands that follow one another and are of one shard go there together, and share a commit. A
// `reserve` over queues of one shard waits there. Over several it first asks all of them what they
// would hand out, and takes the most urgent; when none has a job it waits at all of them at once,
// the first that gives one wins, the others are told, and what still comes is given back at once.
// Nothing is asked again and again: a wait lasts a minute, and is then renewed.
//
// A shard that is away (it moves, its owner died) fails what is asked of it, INTERNAL_ERROR; but
// who waits for a job goes on waiting for it, too. Leases that end with their owner are unknown to
// the next: NOT_FOUND.
//
// The thread of the sessions is that of an engine without tasks; a wait there is a timer, which a
// stop of the node ends as all waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/stream_server.h"
#include "server/beanstalk_handler.h"
#include "server/beanstalk_hub.h"
#include "server/cluster_jobs.h"
#include "server/served_client.h"

namespace detent::server {

class ClusterSession final : public BeanstalkHandler,
                             public std::enable_shared_from_this<ClusterSession> {
 public:
  /// Waits at shards are renewed so often.
  static constexpr std::chrono::seconds kLongestTake{60};
  /// A shard that was away is asked again after so long.
  static constexpr std::chrono::milliseconds kAwayPause{200};
  /// Each time after twice as long, up to this: it may be asked by too many.
  static constexpr std::chrono::milliseconds kLongestAwayPause{5'000};
  /// What a shard that was away is to be given back is tried again after so long.
  static constexpr std::chrono::milliseconds kGiveBackPause{500};
  /// Who does not wait looks so often when others are faster.
  static constexpr int kMaxLooks = 3;

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
  using Answered = UniqueFunction<void(Engine&, std::optional<ShardAnswer>)>;

  /// Queues watched of one shard, and the take that waits for them there.
  struct Part {
    ShardNumber shard = 0;
    std::vector<std::string> queues;
    std::optional<std::uint64_t> take;
    std::chrono::milliseconds pause = kAwayPause;  // before the next, when it is away
  };
  /// The `reserve` under way.
  struct Reserve {
    std::uint64_t number = 0;  // of no other of this client
    std::vector<Part> parts;
    std::optional<MonotonicTime> until;  // none: without end
    Word in_vain = Word::timed_out;      // the reply then
    std::size_t open = 0;                // shards that have not told what is next there
    std::optional<ReadyHead> best;       // of those that have
    std::size_t best_part = 0;
    int looks = 0;
    bool is_waiting = false;
    Engine::WaitId timer = 0;
  };
  /// Leases of one shard that nobody works under any more.
  struct GiveBack {
    ShardNumber shard = 0;
    std::vector<LeaseToken> leases;
    int tries = 0;  // that are left
  };
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
  void ask(ShardNumber shard, const ShardAsk& ask, Answered answered);
  ShardNumber shard_of(const JobCall& call) const;

  // Calls.
  Step call(Command& first);
  bool joins(const Command& command, ShardNumber shard) const;
  void called(Engine& engine, std::vector<JobCall> calls, std::optional<ShardAnswer> answer);
  Step ask_all(beanstalk::Verb verb);

  // reserve.
  Step reserve(Engine& engine, Timeout timeout);
  std::vector<Part> parts_watched() const;
  bool is_over(std::uint64_t number) const { return !reserve_ || reserve_->number != number; }
  void look();
  void looked(Engine& engine, std::size_t part, const std::optional<ShardAnswer>& answer);
  void wait(Engine& engine);
  void take(std::size_t part, std::chrono::milliseconds wait);
  void took(Engine& engine, std::size_t part, MonotonicTime asked_at,
            std::optional<ShardAnswer> answer);
  void take_again(Engine& engine, std::size_t part, MonotonicTime asked_at);
  void finish(Engine& engine, std::string reply);
  void finish_in_vain(Engine& engine);
  std::chrono::milliseconds time_left() const;
  Engine::WaitId after(Engine& engine, std::chrono::milliseconds delay,
                       UniqueFunction<void(Engine&)> then);

  // Leases that nobody works under any more.
  void give_back(ShardNumber shard, std::vector<LeaseToken> leases);
  void give_back(GiveBack what);
  void give_back_later(Engine& engine, GiveBack what);
  void give_all_back();

  BeanstalkHub& hub_;
  JobShards& shards_;
  const std::weak_ptr<net::Stream> stream_;
  ServedClient client_;

  std::vector<beanstalk::Input> batch_;
  std::size_t next_ = 0;     // in batch_
  bool is_counted_ = false;  // that one, in the hub's commands
  bool has_more_ = false;    // handed over to the I/O thread and back with send() and go_on()
  std::string out_;          // answers that are not sent

  std::optional<Reserve> reserve_;
  std::uint64_t last_reserve_ = 0;
  bool is_closed_ = false;
  bool waits_ended_ = false;
};

}  // namespace detent::server
