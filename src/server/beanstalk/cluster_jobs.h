// The questions that a node asks a shard for its beanstalk clients, and the answers: as values, and
// as the bytes that nodes exchange.
//
// The node with the client's connection keeps the whole state of the client, including its leases.
// Its questions carry all input, so a shard keeps no state of clients except the running waits.
// Nodes of two versions that cannot understand each other do not answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/shard_map.h"
#include "detent/unique_function.h"
#include "server/beanstalk/beanstalk_jobs.h"
#include "store/lease_table.h"

namespace detent::server {

struct ShardAsk {
  /// The most leases in one give-back.
  static constexpr std::size_t kMostLeases = 256;

  enum class Kind : std::uint8_t {
    calls,      // carry these out, one after the other, in one commit
    next,       // which job would `take` hand out?
    take,       // hand out a job of these queues, or wait for one so long
    end_take,   // ends the wait of the take with this number, which may not have arrived yet
    give_back,  // gives these leases back; the client no longer works on them
    all,        // the figures for `stats` and `list-tubes`
  };

  Kind kind = Kind::calls;
  std::vector<JobCall> calls = {};
  std::vector<std::string> queues = {};  // next, take: at least one
  std::chrono::milliseconds wait{0};
  std::uint64_t number = 0;             // take, end_take: of no other take in the cluster
  std::vector<LeaseToken> leases = {};  // give_back: at most kMostLeases

  friend bool operator==(const ShardAsk&, const ShardAsk&) = default;
};

struct ShardAnswer {
  std::vector<JobAnswer> answers = {};  // calls: one answer each; take: one answer, or an empty
                                        // list if it got no job
  std::optional<ReadyHead> head = {};   // next
  AllJobs all = {};

  friend bool operator==(const ShardAnswer&, const ShardAnswer&) = default;
};

/// Errors of all decode functions: data_loss.
std::string encode(const ShardAsk& ask);
Result<ShardAsk> decode_ask(std::string_view bytes);
std::string encode(const ShardAnswer& answer);
Result<ShardAnswer> decode_answer(std::string_view bytes);

/// Asks the shards of the cluster, on this node or elsewhere. Thread-safe.
class ShardAsker {
 public:
  using Done = UniqueFunction<void(std::optional<ShardAnswer>)>;
  using WhenSlow = UniqueFunction<void()>;

  virtual ~ShardAsker() = default;
  /// The shards, and the queues that are on several shards.
  virtual std::shared_ptr<const ShardMap> map() const = 0;
  /// Asks a shard. `done` runs once, on any thread, perhaps before this call returns. It gets no
  /// value if the shard could not be asked or did not answer; the question may still have been
  /// carried out. `slow` runs at most once, when the answer takes long, perhaps immediately. Leave
  /// `slow` empty if the caller cannot use the time. A question with `slow` must not be a wait.
  virtual void ask(ShardNumber shard, const ShardAsk& ask, Done done, WhenSlow slow) = 0;
  /// For a take, and to choose one of several shards.
  virtual std::uint64_t next_number() = 0;
};

}  // namespace detent::server
