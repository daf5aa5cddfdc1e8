// Sends requests of this node to the nodes that own the other shards. Such a request is called a
// question.
//
// A question goes to the last known owner of the shard. It has headers that only nodes may set, and
// the client's headers that a shard reads. Each question gets exactly one answer: from the node, or
// 503. The answer is 503 if the node cannot be reached, if it no longer has the shard, or if it
// already has too many questions of this node.
//
// A question for leases is not cut off when its worker disconnects or the shard moves, because the
// answer may already contain leases. Instead, this node tells the other node to end the wait. If
// the answer still contains leases, this node releases them immediately, at the present owner of
// the shard.
//
// Some questions have an alternative: the caller can ask another shard instead. Such a caller is
// told when the answer is slow. From then on, all shards of the node are suspect. The node may
// hang, and the cluster notices that only when the shard leases of the node expire. If the node
// answers a question about another shard, only the slow shard stays suspect, until it answers or
// the node loses it.
//
// A suspect shard gets only one question with an alternative at a time. This question tests whether
// the shard answers, and its caller is told immediately that the answer is slow. Other questions
// with an alternative get 503 immediately, so that their callers ask elsewhere. Questions without
// an alternative are always sent.
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

#include "base/log/log_pace.h"
#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "gateway/request_plan.h"
#include "net/http_client/http_caller.h"
#include "net/message/http_message.h"
#include "net/message/http_url.h"
#include "server/access/exposure.h"
#include "server/cluster/latest_ends.h"
#include "server/cluster/peer_link.h"

namespace detent::server {

inline constexpr std::string_view kShardHeader = "detent-shard";
inline constexpr std::string_view kHostHeader = "detent-host";  // as the client gave it
inline constexpr std::string_view kPeerHeader = "detent-peer";  // the client's address
inline constexpr std::string_view kCallHeader = "detent-call";  // the name of a wait
inline constexpr std::array<std::string_view, 5> kOfNodes{kShardHeader, kSecretHeader, kHostHeader,
                                                          kPeerHeader, kCallHeader};
/// The target that ends the wait named in kCallHeader, after its client has gone.
inline constexpr std::string_view kEndWaitTarget = "/v1/cluster/end-wait";

struct PeerCallsOptions {
  std::string node;  // the name of this node
  // Questions that may be open at the same time. At most half of each number may wait for tasks.
  std::size_t max_calls = 4'096;       // to one node, if it accepts as many connections
  std::size_t max_all_calls = 16'384;  // to all nodes together
  std::size_t node_connections = kMostConnections;  // that one node accepts in total
  std::chrono::milliseconds patience{1'000};        // an answer that takes longer is slow
};

/// Thread-safe.
class PeerCalls {
 public:
  /// Takes the answer. Returns false if the client no longer waits for it.
  using Answered = UniqueFunction<bool(net::HttpResponse)>;
  using Abandon = UniqueFunction<void()>;
  /// Reports that the answer is slow. Runs at most once, on any thread. The answer can still come,
  /// and may already have come when this runs.
  using WhenSlow = UniqueFunction<void()>;
  using HasShard = std::function<bool(ShardNumber, const std::string& address)>;
  using IsMember = std::function<bool(const std::string& address)>;

  /// `link` and `clock` must outlive it; its caller must be ended before this is destroyed.
  /// `on_stray` runs, on any thread, when a node did not answer for a shard. `send_part` sends a
  /// request without a waiting client to the shard's owner.
  PeerCalls(PeerCallsOptions options, const PeerLink& link, const Clock& clock,
            std::function<void()> on_stray, std::function<void(gateway::Part)> send_part);
  PeerCalls(const PeerCalls&) = delete;
  PeerCalls& operator=(const PeerCalls&) = delete;

  /// Sends a question. `answered` can run on any thread, even before this returns. The caller calls
  /// the returned function if it no longer needs the answer. Give `slow` only for a question that
  /// has an alternative and does not wait for tasks. If the shard is suspect, `slow` may run before
  /// this returns.
  Abandon ask(const std::string& address, gateway::Part part, Answered answered, WhenSlow slow = {})
      DETENT_EXCLUDES(mutex_);
  /// Answers open questions with 503 if their node no longer has the shard, because the node may be
  /// dead. A question of a beanstalk client ends only if the node is not a member of the cluster
  /// any more: a living owner answers before it hands its shard over, and the leases in its answer
  /// would be lost. Cost: one call of `has_shard` for each shard with open questions.
  void update(const HasShard& has_shard, const IsMember& is_member) DETENT_EXCLUDES(mutex_);

 private:
  class Question;
  /// The open questions to one node.
  struct Load {
    std::size_t calls = 0;
    std::size_t waits = 0;  // the calls that may wait for tasks
  };
  using Target = std::pair<std::string, ShardNumber>;  // the node's address
  struct Questions {
    std::unordered_map<std::uint64_t, std::shared_ptr<Question>> by_number;
    std::size_t with_alternative = 0;  // the questions with an alternative
  };
  /// Which shards of a node are suspect.
  struct SlowPeer {
    std::set<ShardNumber> shards;  // shards with a slow answer and no answer since
    bool is_of_all = false;        // all shards, because the node has not answered since
    bool is_logged = false;        // the log says that the node is slow
    LogPace pace;
  };

  /// The outcome of a question before it is sent.
  enum class Begun : std::uint8_t { ok, suspect, too_many, in_vain };
  Begun begin(const std::shared_ptr<Question>& question, std::size_t max_calls)
      DETENT_EXCLUDES(mutex_);
  static net::HttpResponse not_asked(const Question& question, Begun why);
  void call(const std::shared_ptr<Question>& question, net::HttpUrl url, net::HttpRequest request);
  bool is_suspect(const Target& target) const DETENT_REQUIRES(mutex_);
  void be_slow(Question& question) DETENT_EXCLUDES(mutex_);
  void trust(const Question& question) DETENT_EXCLUDES(mutex_);
  void take(const std::shared_ptr<Question>& question, net::CallOutcome outcome);
  void end(Question& question) DETENT_EXCLUDES(mutex_);
  void abandon(Question& question);
  void give_back(const Question& question, const net::HttpResponse& answer);

  const PeerCallsOptions options_;
  const std::uint64_t run_;  // differs from every other node, and from every earlier process of
                             // this node
  const PeerLink& link_;
  const Clock& clock_;
  const std::function<void()> on_stray_;
  const std::function<void(gateway::Part)> send_part_;

  Mutex mutex_;
  std::uint64_t last_number_ DETENT_GUARDED_BY(mutex_) = 0;
  std::map<Target, Questions> open_ DETENT_GUARDED_BY(mutex_);
  std::map<std::string, Load> loads_ DETENT_GUARDED_BY(mutex_);           // by address
  std::size_t calls_ DETENT_GUARDED_BY(mutex_) = 0;                       // sum over all loads
  std::size_t waits_ DETENT_GUARDED_BY(mutex_) = 0;                       // sum over all loads
  std::map<std::string, SlowPeer> slow_peers_ DETENT_GUARDED_BY(mutex_);  // by address
};

/// Requests of other nodes that wait for tasks at this node, by the name of the wait. Thread-safe.
class PeerWaits {
 public:
  /// Runs `end` once, when the other node reports that its client no longer waits. This report uses
  /// another connection, so it may arrive before the request. Then `end` runs before this returns.
  void keep(std::string name, UniqueFunction<void()> end) DETENT_EXCLUDES(mutex_);
  /// The wait is over: `end` will not run.
  void forget(const std::string& name) DETENT_EXCLUDES(mutex_);
  /// The other node reports that the client of this wait has gone.
  void end(const std::string& name) DETENT_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unordered_map<std::string, UniqueFunction<void()>> ends_ DETENT_GUARDED_BY(mutex_);
  LatestEnds<std::string> ended_ DETENT_GUARDED_BY(mutex_);  // reports for unknown waits
};

void drop_headers(net::HttpHeaders& headers, std::span<const std::string_view> names);
/// The answer 503 if the owner of the shard may have changed while the request ran.
net::HttpResponse not_sure(ShardNumber shard);

}  // namespace detent::server
