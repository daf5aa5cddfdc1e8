#include "server/cluster/forwarded_request.h"

#include <chrono>
#include <utility>
#include <variant>

#include "detent/check.h"

namespace detent::server {
namespace {

void end(std::vector<ClusterFront::Abandon> questions) {
  for (ClusterFront::Abandon& one : questions) {
    if (one) one();
  }
}

}  // namespace

ClusterFront::ForwardedRequest::ForwardedRequest(ClusterFront& front, net::Responder responder,
                                                 AfterAnswer after)
    : front_(front),
      followers_(front.followers_),
      responder_(std::move(responder)),
      after_(after),
      begun_at_(front.clock_.now()) {}

ClusterFront::ForwardedRequest::~ForwardedRequest() {
  if (renewal_) followers_->remove(renewal_->queue, *this);
}

void ClusterFront::ForwardedRequest::start(gateway::Plan plan,
                                           const std::shared_ptr<const ShardMap>& map) {
  responder_.on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->abandon();
  });
  renewal_ = std::move(plan.renewal);
  ask(std::move(plan));
  if (!renewal_) return;
  followers_->add(renewal_->queue, weak_from_this());
  // The change was made before this wait, so no message about it will come.
  const std::string& queue = renewal_->queue;
  if (front_.shard_map()->places_of(queue) != map->places_of(queue)) renew();
}

void ClusterFront::ForwardedRequest::ask(gateway::Plan plan) {
  const std::size_t count = plan.parts.size();
  DETENT_CHECK(count > 0);
  std::vector<Abandon> before;
  std::uint64_t round = 0;  // no value: it continues to plan
  const bool is_in_turn = plan.in_turn.has_value();
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(is_to_renew_, false)) {
      is_planning_ = false;
      join_ = std::move(plan.join);
      wanted_ = plan.wanted;
      in_turn_.reset();
      if (is_in_turn) {
        in_turn_ = std::make_shared<const gateway::InTurn>(*std::move(plan.in_turn));
        parts_ = std::move(plan.parts);
      }
      asked_ = 0;
      slow_ = 0;
      is_slow_.assign(count, false);
      answers_.assign(count, {});
      missing_ = wanted_ == gateway::Wanted::first ? 1 : count;
      before.swap(abandons_);
      abandons_.resize(count);
      round = ++round_;
    }
  }
  if (round == 0) return plan_anew();
  end(std::move(before));
  if (is_in_turn) return ask_next(round);
  ask_at_once(round, std::move(plan.parts));
}

void ClusterFront::ForwardedRequest::ask_at_once(std::uint64_t round,
                                                 std::vector<gateway::Part> parts) {
  for (std::size_t i = 0; i < parts.size() && is_wanted(round); ++i) {
    Abandon abandon = front_.ask(std::move(parts[i]),
                                 [self = shared_from_this(), round, i](net::HttpResponse answer) {
                                   return self->answered(round, i, std::move(answer));
                                 });
    // If the part has been answered, this does nothing.
    if (!keep(round, i, abandon)) abandon();
  }
}

void ClusterFront::ForwardedRequest::ask_next(std::uint64_t round) {
  std::size_t index = 0;
  gateway::Part part;
  {
    const MutexLock lock(mutex_);
    if (!is_open(round) || asked_ == parts_.size()) return;
    index = asked_++;
    part = std::move(parts_[index]);
  }
  Abandon abandon = front_.ask(
      std::move(part),
      [self = shared_from_this(), round, index](net::HttpResponse answer) {
        return self->answered_in_turn(round, index, std::move(answer));
      },
      [self = shared_from_this(), round, index] { self->be_slow(round, index); });
  if (!keep(round, index, abandon)) abandon();
}

/// Whether answers of this round are still wanted.
bool ClusterFront::ForwardedRequest::is_wanted(std::uint64_t round) const {
  const MutexLock lock(mutex_);
  return is_open(round);
}

/// Returns false if the client no longer waits. The caller must then abandon the question.
bool ClusterFront::ForwardedRequest::keep(std::uint64_t round, std::size_t part, Abandon& abandon) {
  const MutexLock lock(mutex_);
  if (!is_open(round)) return false;
  abandons_[part] = std::move(abandon);
  return true;
}

/// Of parts in turn: all are asked, and the plan wants no more than has come.
bool ClusterFront::ForwardedRequest::waits_for_slow_only() const {
  return asked_ == parts_.size() && in_turn_->goes_on_without_slow && missing_ == slow_;
}

/// The answers that have come; it plans from now on.
std::vector<net::HttpResponse> ClusterFront::ForwardedRequest::end_round() {
  missing_ = 0;
  is_planning_ = true;
  std::vector<net::HttpResponse> answers;
  for (auto& answer : answers_) {
    if (answer) answers.push_back(*std::move(answer));
  }
  answers_.clear();
  return answers;
}

/// Returns false if the answer is not needed: the client has gone, or another answer was first.
bool ClusterFront::ForwardedRequest::answered(std::uint64_t round, std::size_t part,
                                              net::HttpResponse answer) {
  std::vector<net::HttpResponse> answers;
  std::vector<Abandon> others;
  {
    const MutexLock lock(mutex_);
    if (!is_open(round)) return false;
    abandons_[part] = {};
    answers_[part] = std::move(answer);
    if (--missing_ > 0) return true;
    answers = end_round();
    if (wanted_ == gateway::Wanted::first) others.swap(abandons_);
  }
  end(std::move(others));
  return go_on(join_(std::move(answers)));
}

bool ClusterFront::ForwardedRequest::answered_in_turn(std::uint64_t round, std::size_t part,
                                                      net::HttpResponse answer) {
  std::shared_ptr<const gateway::InTurn> in_turn;
  {
    const MutexLock lock(mutex_);
    if (!is_open(round)) return false;
    in_turn = in_turn_;
  }
  const bool will_do = in_turn->will_do(answer);
  net::HttpResponse result;  // if it will do
  std::vector<net::HttpResponse> answers;
  std::vector<Abandon> others;
  bool is_last = false;
  {
    const MutexLock lock(mutex_);
    if (!is_open(round)) return false;
    abandons_[part] = {};
    --missing_;
    if (is_slow_[part]) --slow_;
    if (will_do) {
      result = std::move(answer);
    } else {
      answers_[part] = std::move(answer);
    }
    is_last = missing_ == 0 || waits_for_slow_only();
    if (will_do || is_last) answers = end_round();
    if (will_do) others.swap(abandons_);
    if (!will_do && !is_last && is_slow_[part]) return true;  // the next has been asked
  }
  end(std::move(others));
  if (will_do) return finish(std::move(result));
  if (is_last) return go_on(join_(std::move(answers)));
  ask_next(round);
  return true;
}

void ClusterFront::ForwardedRequest::be_slow(std::uint64_t round, std::size_t part) {
  std::vector<net::HttpResponse> answers;
  bool is_last = false;
  {
    const MutexLock lock(mutex_);
    if (!is_open(round) || answers_[part] || is_slow_[part]) return;
    is_slow_[part] = true;
    ++slow_;
    is_last = waits_for_slow_only();
    if (is_last) answers = end_round();
  }
  if (is_last) {
    // If the client has gone, go_on() returns false, and the forwarded request ends here.
    (void)go_on(join_(std::move(answers)));
  } else {
    ask_next(round);
  }
}

void ClusterFront::ForwardedRequest::renew() {
  {
    const MutexLock lock(mutex_);
    if (is_over_ || is_abandoned_) return;
    if (is_planning_) {
      is_to_renew_ = true;
      return;
    }
    (void)end_round();  // its questions are ended when there are others
  }
  plan_anew();
}

void ClusterFront::ForwardedRequest::plan_anew() {
  const auto after = front_.clock_.now() - begun_at_;
  // If the client has gone, go_on() returns false, and the forwarded request ends here.
  (void)go_on(renewal_->plan(*front_.shard_map(),
                             std::chrono::duration_cast<std::chrono::milliseconds>(after)));
}

/// Returns false if the client does not take the answer.
bool ClusterFront::ForwardedRequest::go_on(gateway::Step next) {
  if (auto* const plan = std::get_if<gateway::Plan>(&next)) {
    ask(std::move(*plan));
    return true;
  }
  return finish(std::get<net::HttpResponse>(std::move(next)));
}

bool ClusterFront::ForwardedRequest::finish(net::HttpResponse answer) {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  if (after_ == AfterAnswer::look_again) front_.note_change(answer);
  return responder_.offer(std::move(answer));
}

void ClusterFront::ForwardedRequest::abandon() {
  std::vector<Abandon> abandons;
  {
    const MutexLock lock(mutex_);
    is_abandoned_ = true;
    abandons.swap(abandons_);
  }
  end(std::move(abandons));
}

void ClusterFront::Followers::add(const std::string& queue,
                                  std::weak_ptr<ForwardedRequest> forwarded) {
  const std::shared_ptr<ForwardedRequest> kept = forwarded.lock();
  const MutexLock lock(mutex_);
  requests_[queue].emplace(kept.get(), std::move(forwarded));
}

void ClusterFront::Followers::remove(const std::string& queue, const ForwardedRequest& forwarded) {
  const MutexLock lock(mutex_);
  const auto of_queue = requests_.find(queue);
  if (of_queue == requests_.end()) return;
  of_queue->second.erase(&forwarded);
  if (of_queue->second.empty()) requests_.erase(of_queue);
}

std::vector<std::shared_ptr<ClusterFront::ForwardedRequest>> ClusterFront::Followers::of(
    const std::string& queue) const {
  std::vector<std::shared_ptr<ForwardedRequest>> requests;
  const MutexLock lock(mutex_);
  const auto of_queue = requests_.find(queue);
  if (of_queue == requests_.end()) return requests;
  for (const auto& [address, weak] : of_queue->second) {
    if (std::shared_ptr<ForwardedRequest> forwarded = weak.lock())
      requests.push_back(std::move(forwarded));
  }
  return requests;
}

}  // namespace detent::server
