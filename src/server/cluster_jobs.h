// What a node asks a shard of the cluster for its beanstalk clients, and what it is answered: as
// values, and as the bytes that go between nodes.
//
// The node that has the client's connection keeps all that there is of the client, its leases
// included; what it asks carries all that is needed, so a shard keeps nothing of any client but the
// waits under way. Nodes of two versions understand each other or do not answer at all.
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
#include "server/beanstalk_jobs.h"
#include "store/lease_table.h"

namespace detent::server {

struct ShardAsk {
  /// That are given back at once.
  static constexpr std::size_t kMostLeases = 256;

  enum class Kind : std::uint8_t {
    calls,      // carry these out, one after the other, in one commit
    next,       // what would `take` hand out?
    take,       // hand out a job of these queues, or wait for one so long
    end_take,   // the take of this number, which may not have come yet, waits no more
    give_back,  // nobody works under these leases any more
    all,        // what `stats` and `list-tubes` tell
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
  std::vector<JobAnswer> answers = {};  // calls: one each; take: one, or none when it got no job
  std::optional<ReadyHead> head = {};   // next
  AllJobs all = {};

  friend bool operator==(const ShardAnswer&, const ShardAnswer&) = default;
};

/// Errors of all that decode: data_loss.
std::string encode(const ShardAsk& ask);
Result<ShardAsk> decode_ask(std::string_view bytes);
std::string encode(const ShardAnswer& answer);
Result<ShardAnswer> decode_answer(std::string_view bytes);

/// The shards of the cluster, wherever they are. Thread-safe.
class JobShards {
 public:
  using Done = UniqueFunction<void(std::optional<ShardAnswer>)>;
  using Late = UniqueFunction<void()>;

  virtual ~JobShards() = default;
  /// Which they are, and which queues are on several.
  virtual std::shared_ptr<const ShardMap> map() const = 0;
  /// `done` runs once, on any thread, perhaps before this returns; with nothing when the shard
  /// could not be asked, or did not answer: what was asked may have been done. `late` runs, too,
  /// when that takes long, at most once and perhaps at once; empty where nothing else can be done
  /// meanwhile. With it, what is asked must not wait.
  virtual void ask(ShardNumber shard, const ShardAsk& ask, Done done, Late late) = 0;
  /// For a take.
  virtual std::uint64_t next_number() = 0;
};

}  // namespace detent::server
