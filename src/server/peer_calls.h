// What a node asks the nodes that have the shards which it has not.
//
// A question goes to the node that has the shard as far as is known, with headers that only nodes
// know to write, and with those of the client's that a shard reads. It is answered once: by that
// node, or with 503 when the node cannot be reached, no longer has the shard, or is asked by too
// many already.
//
// An answer that nobody waits for any more may hold leases. So a request for leases is not cut off
// when its worker goes, or the shard moves: the node is told to end the wait, and what it may have
// handed out by then is given back at once, to whoever has the shard now.
//
// Who can do something else meanwhile is told when an answer is late. All shards of the node are
// suspect then: it may hang, and nothing shows that before its leases run out. When it answers a
// question about another shard, only the one that is late stays so, until it is answered for, or
// the node has it no more. A suspect shard gets one such question at a time, which finds out
// whether it answers, and who asks that is told at once that it is late; the others are answered
// 503 at once, so that nobody waits in vain. What only that shard can do is sent all the same.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "gateway/request_plan.h"
#include "net/http_caller.h"
#include "net/http_message.h"
#include "net/http_url.h"
#include "server/exposure.h"
#include "server/latest_ends.h"
#include "server/log_pace.h"
#include "server/peer_link.h"

namespace detent::server {

inline constexpr std::string_view kShardHeader = "detent-shard";
inline constexpr std::string_view kHostHeader = "detent-host";  // as the client gave it
inline constexpr std::string_view kPeerHeader = "detent-peer";  // the client's address
inline constexpr std::string_view kCallHeader = "detent-call";  // the name of a wait, to end it by
inline constexpr std::array<std::string_view, 5> kOfNodes{kShardHeader, kSecretHeader, kHostHeader,
                                                          kPeerHeader, kCallHeader};
/// Ends the wait that kCallHeader names, for which nobody waits any more.
inline constexpr std::string_view kEndWaitTarget = "/v1/cluster/end-wait";

struct PeerCallsOptions {
  std::string node;               // this one's name
  std::size_t max_calls = 4'096;  // under way to one node at a time, if it takes so many; half of
                                  // them may wait for tasks
  std::size_t max_all_calls = 16'384;               // to all nodes together; half of them may wait
  std::size_t node_connections = kMostConnections;  // what a node takes from all addresses
  std::chrono::milliseconds patience{1'000};        // an answer that takes longer is late
};

/// Thread-safe.
class PeerCalls {
 public:
  /// Takes the answer; false: nobody waits for it any more.
  using Answered = UniqueFunction<bool(net::HttpResponse)>;
  using Abandon = UniqueFunction<void()>;
  /// Told that the answer is late, at most once, on any thread; it may come yet, and may have come
  /// by the time this runs.
  using Late = UniqueFunction<void()>;
  using HasShard = std::function<bool(ShardNumber, const std::string& address)>;
  using IsMember = std::function<bool(const std::string& address)>;

  /// `link` and `clock` must outlive it; its caller must be ended before this is. `on_stray` runs,
  /// on any thread, when a node did not answer for a shard; `send_part` sends a request that nobody
  /// waits for to the shard's owner.
  PeerCalls(PeerCallsOptions options, const PeerLink& link, const Clock& clock,
            std::function<void()> on_stray, std::function<void(gateway::Part)> send_part);
  PeerCalls(const PeerCalls&) = delete;
  PeerCalls& operator=(const PeerCalls&) = delete;

  /// Asks. The answer comes on any thread, perhaps before this returns; what is returned ends the
  /// question. With `late` it is one that does not wait for tasks, and that may be put to others
  /// instead; of a suspect shard it may run before this returns.
  Abandon ask(const std::string& address, gateway::Part part, Answered answered, Late late = {})
      DETENT_EXCLUDES(mutex_);
  /// Where a node no longer has the shard, what it was asked is answered 503: it may be dead. What
  /// beanstalk clients asked only where it is dead: a shard that moves answers first, and nobody
  /// would be told of the leases in an answer that comes later. Costs a call of `has_shard` for
  /// each shard of each node that is asked.
  void update(const HasShard& has_shard, const IsMember& is_member) DETENT_EXCLUDES(mutex_);

 private:
  class Question;
  /// Under way to a node.
  struct Load {
    std::size_t calls = 0;
    std::size_t waits = 0;  // of them
  };
  using Target = std::pair<std::string, ShardNumber>;  // the node's address
  struct Questions {
    std::unordered_map<std::uint64_t, std::shared_ptr<Question>> by_number;
    std::size_t hasty = 0;  // of them: somebody is told when they are late
  };
  /// About a node, since an answer was late.
  struct Doubts {
    std::set<ShardNumber> shards;  // that are late, and were not answered for since
    bool is_of_all = false;        // its shards: it was asked about none of them since
    bool is_logged = false;
    LogPace pace;
  };

  /// What became of a question before it was sent.
  enum class Begun : std::uint8_t { ok, suspect, too_many, in_vain };
  Begun begin(const std::shared_ptr<Question>& question, std::size_t max_calls)
      DETENT_EXCLUDES(mutex_);
  static net::HttpResponse not_asked(const Question& question, Begun why);
  void call(const std::shared_ptr<Question>& question, net::HttpUrl url, net::HttpRequest request);
  bool is_suspect(const Target& target) const DETENT_REQUIRES(mutex_);
  void be_late(Question& question) DETENT_EXCLUDES(mutex_);
  void trust(const Question& question) DETENT_EXCLUDES(mutex_);
  void take(const std::shared_ptr<Question>& question, net::CallOutcome outcome);
  void end(Question& question) DETENT_EXCLUDES(mutex_);
  void abandon(Question& question);
  void give_back(const Question& question, const net::HttpResponse& answer);

  const PeerCallsOptions options_;
  const std::uint64_t run_;  // of no other node, and of none before in its place
  const PeerLink& link_;
  const Clock& clock_;
  const std::function<void()> on_stray_;
  const std::function<void(gateway::Part)> send_part_;

  Mutex mutex_;
  std::uint64_t last_number_ DETENT_GUARDED_BY(mutex_) = 0;
  std::map<Target, Questions> open_ DETENT_GUARDED_BY(mutex_);
  std::map<std::string, Load> loads_ DETENT_GUARDED_BY(mutex_);     // by address
  std::size_t calls_ DETENT_GUARDED_BY(mutex_) = 0;                 // of all loads
  std::size_t waits_ DETENT_GUARDED_BY(mutex_) = 0;                 // likewise
  std::map<std::string, Doubts> doubts_ DETENT_GUARDED_BY(mutex_);  // by address
};

/// The waits that this node keeps for others, by name. Thread-safe.
class PeerWaits {
 public:
  /// `end` runs, once, when the other node says that nobody waits; unless forget() was first.
  /// Before this returns when it has said so: ends come by other connections.
  void keep(std::string name, UniqueFunction<void()> end) DETENT_EXCLUDES(mutex_);
  void forget(const std::string& name) DETENT_EXCLUDES(mutex_);
  void end(const std::string& name) DETENT_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unordered_map<std::string, UniqueFunction<void()>> ends_ DETENT_GUARDED_BY(mutex_);
  LatestEnds<std::string> ended_ DETENT_GUARDED_BY(mutex_);  // that were not here
};

void drop_headers(net::HttpHeaders& headers, std::span<const std::string_view> names);
/// What a shard is answered for when its lease is not sure, or the node that had it is gone.
net::HttpResponse not_sure(ShardNumber shard);

}  // namespace detent::server
