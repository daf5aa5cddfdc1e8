// One `reserve` of a beanstalk client, over the queues that it watches, wherever their shards are.
//
// Over queues of one shard it waits there. Over several it first asks all of them what they would
// hand out, and takes the most urgent; when none has a job it waits at all of them at once, the
// first that gives one wins, the others are told, and what still comes is given back at once. A
// shard that takes long to tell, or to hand out what it told of, holds up nothing that others have,
// and no end: once the time is over, none that is late is waited for. Only who never waited is told
// of nothing before all have answered.
// Nothing is asked again and again: a wait lasts a minute, and is then renewed. A shard that is
// away is asked again after a pause; the wait at the others goes on. When a queue has been divided,
// or made anew, it goes on waiting where the queue is now.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "detent/unique_function.h"
#include "server/cluster_jobs.h"
#include "server/session_shards.h"

namespace detent::server {

/// Confined to the thread of the sessions. Keeps itself while it is asked about.
class ClusterReserve final : public std::enable_shared_from_this<ClusterReserve> {
 public:
  /// Waits at shards are renewed so often.
  static constexpr std::chrono::seconds kLongestTake{60};
  /// A shard that was away is asked again after so long.
  static constexpr std::chrono::milliseconds kAwayPause{200};
  /// Each time after twice as long, up to this: it may be asked by too many.
  static constexpr std::chrono::milliseconds kLongestAwayPause{5'000};
  /// Who waits looks so often whether the queues are where they were.
  static constexpr std::chrono::milliseconds kMapPeriod{1'000};
  /// Who does not wait looks so often when others are faster.
  static constexpr int kMaxLooks = 3;

  struct Options {
    std::vector<std::string> queues;     // at least one
    std::optional<MonotonicTime> until;  // none: it waits without end
    bool may_wait = true;                // false: as if `until` were now
  };
  struct Events {
    UniqueFunction<void()> on_wait;  // it begins to wait; once, if at all
    /// Once, never within start(): the job, or none was there in time, or nobody is to wait.
    UniqueFunction<void(Engine&, std::optional<JobAnswer>)> on_end;
  };

  ClusterReserve(SessionShards shards, Options options, Events events);

  void start(Engine& engine);
  /// Has it end without a job: at once when it waits, else if no shard hands one out right now;
  /// those that are late do not count.
  void end_wait(Engine& engine);
  /// Has it end now: nobody wants the job. One that a shard hands out yet is given back.
  void abandon(Engine& engine);
  bool is_waiting() const noexcept { return is_waiting_; }

 private:
  /// Queues of one shard, and the take that is under way for them there.
  struct Part {
    ShardNumber shard = 0;
    std::vector<std::string> queues;
    std::optional<std::uint64_t> look = {};  // what it was asked, and has not told
    bool is_late = false;                    // to tell, or to hand out
    std::optional<std::uint64_t> take = {};
    std::chrono::milliseconds pause = kAwayPause;  // before the next, when it is away
  };

  std::vector<Part> parts_now() const;
  void look();
  void looked(Engine& engine, std::size_t part, const std::optional<ShardAnswer>& answer);
  void choose(Engine& engine);
  void wait(Engine& engine);
  void wait_or_end(Engine& engine);
  void keep_watch(Engine& engine);
  void follow_queues();
  void take(std::size_t part, std::chrono::milliseconds wait);
  void take_at_others(Engine& engine);
  void end_when_late(Engine& engine);
  void end_takes();
  void took(Engine& engine, std::size_t part, MonotonicTime asked_at,
            std::optional<ShardAnswer> answer);
  void take_again(Engine& engine, std::size_t part, MonotonicTime asked_at);
  template <class Asked>
  std::optional<std::size_t> part_of(Asked asked, std::uint64_t number) const;
  void end(Engine& engine, std::optional<JobAnswer> got);
  std::chrono::milliseconds time_left() const;

  const SessionShards shards_;
  const std::vector<std::string> queues_;
  const std::optional<MonotonicTime> until_;
  bool may_wait_;
  bool ends_in_time_;  // without shards that are late; not who never waited: it wants their answers
  Events events_;
  std::shared_ptr<const ShardMap> map_;  // by which the parts are
  std::vector<Part> parts_;              // not changed before it waits

  std::optional<ReadyHead> best_;  // of the shards that have told what is next there
  std::size_t best_part_ = 0;
  int looks_ = 0;
  int moves_ = 0;  // how often the parts were changed
  bool is_waiting_ = false;
  bool is_over_ = false;
  Engine::WaitId timer_ = 0;  // of the wait
};

}  // namespace detent::server
