// One client's request on its way through the front of a node. An ForwardedRequest asks the
// questions of a plan (gateway/request_plan.h), and the questions that follow from their answers,
// until it can answer the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "gateway/request_plan.h"
#include "net/http_server/http_server.h"
#include "server/cluster/cluster_front.h"

namespace detent::server {

/// Whether the node reads the table again after it has answered a request.
enum class AfterAnswer : bool { nothing, look_again };

/// Thread-safe. Questions under way keep it alive.
///
/// 1. At any time it is planning, or waits for the answers of its latest round of questions, or is
///    finished.
/// 2. It rejects answers to questions of earlier rounds, and the leases in them are given back.
class ClusterFront::ForwardedRequest final : public std::enable_shared_from_this<ForwardedRequest> {
 public:
  /// `front` must outlive its questions.
  ForwardedRequest(ClusterFront& front, net::Responder responder, AfterAnswer after);
  ~ForwardedRequest();
  ForwardedRequest(const ForwardedRequest&) = delete;
  ForwardedRequest& operator=(const ForwardedRequest&) = delete;

  /// Carries out the plan. The plan must have been made with `map`.
  void start(gateway::Plan plan, const std::shared_ptr<const ShardMap>& map);
  /// The queue that it waits for has moved to another place: it continues its wait there.
  void renew();

 private:
  void ask(gateway::Plan plan);
  void ask_at_once(std::uint64_t round, std::vector<gateway::Part> parts);
  void ask_next(std::uint64_t round);
  bool answered(std::uint64_t round, std::size_t part, net::HttpResponse answer);
  bool answered_in_turn(std::uint64_t round, std::size_t part, net::HttpResponse answer);
  void be_slow(std::uint64_t round, std::size_t part);
  void plan_anew();
  bool go_on(gateway::Step next);
  bool finish(net::HttpResponse answer);
  void abandon();

  // Returns true if `round` is the latest round.
  bool is_open(std::uint64_t round) const DETENT_REQUIRES(mutex_) {
    return !is_abandoned_ && round == round_ && missing_ > 0;
  }
  bool is_wanted(std::uint64_t round) const;
  bool keep(std::uint64_t round, std::size_t part, Abandon& abandon);
  bool waits_for_slow_only() const DETENT_REQUIRES(mutex_);
  std::vector<net::HttpResponse> end_round() DETENT_REQUIRES(mutex_);

  ClusterFront& front_;
  const std::shared_ptr<Followers> followers_;  // see ClusterFront
  const net::Responder responder_;
  const AfterAnswer after_;
  const MonotonicTime begun_at_;
  // Set by start().
  std::optional<gateway::Renewal> renewal_;
  // Set before a round of questions is sent. Called by the thread that ends the round, or that may
  // end it.
  std::function<gateway::Step(std::vector<net::HttpResponse>)> join_;

  mutable Mutex mutex_;
  std::uint64_t round_ DETENT_GUARDED_BY(mutex_) = 0;  // of questions
  gateway::Wanted wanted_ DETENT_GUARDED_BY(mutex_) = gateway::Wanted::all;
  std::shared_ptr<const gateway::InTurn> in_turn_ DETENT_GUARDED_BY(mutex_);  // and the function
                                                                              // that judges the
                                                                              // answers
  std::vector<gateway::Part> parts_ DETENT_GUARDED_BY(mutex_);  // in turn: the questions
  std::size_t asked_ DETENT_GUARDED_BY(mutex_) = 0;             // of them
  std::vector<bool> is_slow_ DETENT_GUARDED_BY(mutex_);         // by part
  std::size_t slow_ DETENT_GUARDED_BY(mutex_) = 0;              // that are missing
  std::vector<std::optional<net::HttpResponse>> answers_ DETENT_GUARDED_BY(mutex_);
  std::size_t missing_ DETENT_GUARDED_BY(mutex_) = 0;        // answers; 0: the round is over
  std::vector<Abandon> abandons_ DETENT_GUARDED_BY(mutex_);  // by part; empty: answered
  bool is_planning_ DETENT_GUARDED_BY(mutex_) = false;
  bool is_to_renew_ DETENT_GUARDED_BY(mutex_) = false;  // when it has planned
  bool is_over_ DETENT_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ DETENT_GUARDED_BY(mutex_) = false;
};

/// Requests that wait for tasks of a queue. Thread-safe.
class ClusterFront::Followers {
 public:
  void add(const std::string& queue, std::weak_ptr<ForwardedRequest> forwarded)
      DETENT_EXCLUDES(mutex_);
  void remove(const std::string& queue, const ForwardedRequest& forwarded) DETENT_EXCLUDES(mutex_);
  std::vector<std::shared_ptr<ForwardedRequest>> of(const std::string& queue) const
      DETENT_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::map<const ForwardedRequest*, std::weak_ptr<ForwardedRequest>>>
      requests_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server
