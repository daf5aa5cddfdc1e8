// Questions of this node to the nodes that own the other shards.
//
// A question goes to the last known owner of the shard. It carries headers that only nodes can
// write, and the headers of the client that a shard reads. Each question is answered once: by that
// node, or with 503. The answer is 503 if the node cannot be reached, if it no longer has the
// shard, or if it already has too many questions.
//
// An answer may hold leases after its client has gone. A request for leases is therefore not cut
// off when its worker disconnects or the shard moves. Instead, the node is told to end the wait,
// and leases that it has granted by then are given back immediately, to the present owner of the
// shard.
//
// A caller with an alternative is told when an answer is late. All shards of that node are then
// suspect, because a hanging node is not visible until its leases expire. If the node answers a
// question about another shard, only the late shard stays suspect, until it answers or the node
// loses it.
//
// A suspect shard gets only one question with an alternative at a time. This question tests whether
// the shard answers, and its caller is told immediately that it is late. Further questions of this
// kind are answered with 503 immediately, so their callers do not wait in vain. Questions that only
// this shard can answer are sent in any case.
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
/// The target that ends the wait named in kCallHeader, after its client has gone.
inline constexpr std::string_view kEndWaitTarget = "/v1/cluster/end-wait";

struct PeerCallsOptions {
  std::string node;                    // the name of this node
  std::size_t max_calls = 4'096;       // at one time to one node, if it accepts so many; half of
                                       // them may wait for tasks
  std::size_t max_all_calls = 16'384;  // to all nodes together; half of them may wait
  std::size_t node_connections = kMostConnections;  // the connections that a node accepts from all
                                                    // addresses
  std::chrono::milliseconds patience{1'000};        // an answer that takes longer is late
};

/// Thread-safe.
class PeerCalls {
 public:
  /// Takes the answer. Returns false if the client no longer waits for it.
  using Answered = UniqueFunction<bool(net::HttpResponse)>;
  using Abandon = UniqueFunction<void()>;
  /// Reports that the answer is late. Runs at most once, on any thread. The answer can still come,
  /// and may already have come when this runs.
  using Late = UniqueFunction<void()>;
  using HasShard = std::function<bool(ShardNumber, const std::string& address)>;
  using IsMember = std::function<bool(const std::string& address)>;

  /// `link` and `clock` must outlive it; its caller must be ended before this is destroyed.
  /// `on_stray` runs, on any thread, when a node did not answer for a shard. `send_part` sends a
  /// request without a waiting client to the shard's owner.
  PeerCalls(PeerCallsOptions options, const PeerLink& link, const Clock& clock,
            std::function<void()> on_stray, std::function<void(gateway::Part)> send_part);
  PeerCalls(const PeerCalls&) = delete;
  PeerCalls& operator=(const PeerCalls&) = delete;

  /// Asks. The answer can come on any thread, even before this returns. Calling the returned
  /// function ends the question. Give `late` only for a question that does not wait for tasks and
  /// that other shards could answer. If the shard is suspect, `late` may run before this returns.
  Abandon ask(const std::string& address, gateway::Part part, Answered answered, Late late = {})
      DETENT_EXCLUDES(mutex_);
  /// Answers open questions with 503 if their node no longer has the shard, because the node may be
  /// dead. Questions of beanstalk clients end only if the node is dead: an owner answers before it
  /// hands its shard over, and the leases in a later answer would be lost. Costs a call of
  /// `has_shard` for each shard of each asked node.
  void update(const HasShard& has_shard, const IsMember& is_member) DETENT_EXCLUDES(mutex_);

 private:
  class Question;
  /// The open questions to one node.
  struct Load {
    std::size_t calls = 0;
    std::size_t waits = 0;  // of them
  };
  using Target = std::pair<std::string, ShardNumber>;  // the node's address
  struct Questions {
    std::unordered_map<std::uint64_t, std::shared_ptr<Question>> by_number;
    std::size_t hasty = 0;  // of them: somebody is told when they are late
  };
  /// The state of a node after a late answer.
  struct Doubts {
    std::set<ShardNumber> shards;  // that are late, and were not answered for since
    bool is_of_all = false;  // all its shards: it has not been asked about any of them since then
    bool is_logged = false;
    LogPace pace;
  };

  /// The outcome of a question before it is sent.
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
  const std::uint64_t run_;  // differs from every other node, and from every earlier process of
                             // this node
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

/// The waits at this node for other nodes, by name. Thread-safe.
class PeerWaits {
 public:
  /// Runs `end` once, when the other node says that its client no longer waits, unless forget() was
  /// called first. Runs it before this returns if that message has already arrived; such messages
  /// use other connections.
  void keep(std::string name, UniqueFunction<void()> end) DETENT_EXCLUDES(mutex_);
  void forget(const std::string& name) DETENT_EXCLUDES(mutex_);
  void end(const std::string& name) DETENT_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unordered_map<std::string, UniqueFunction<void()>> ends_ DETENT_GUARDED_BY(mutex_);
  LatestEnds<std::string> ended_ DETENT_GUARDED_BY(mutex_);  // that were not here
};

void drop_headers(net::HttpHeaders& headers, std::span<const std::string_view> names);
/// The answer for a shard whose lease is not certain, or whose owner is gone.
net::HttpResponse not_sure(ShardNumber shard);

}  // namespace detent::server
