#include "server/beanstalk/cluster_reserve.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "detent/check.h"

namespace detent::server {

using std::chrono::milliseconds;

ClusterReserve::ClusterReserve(NodeShards& shards, Options options, Events events)
    : shards_(shards),
      queues_(std::move(options.queues)),
      until_(options.until),
      may_wait_(options.may_wait),
      ends_in_time_(may_wait_ && (!until_ || shards.now() < *until_)),
      events_(std::move(events)),
      map_(shards_.map()),
      parts_(parts_now()) {
  DETENT_CHECK(!queues_.empty());
}

std::vector<ClusterReserve::Part> ClusterReserve::parts_now() const {
  std::map<ShardNumber, std::vector<std::string>> by_shard;
  for (const std::string& queue : queues_) {
    for (const ShardNumber shard : map_->places_of(queue)) by_shard[shard].push_back(queue);
  }
  std::vector<Part> parts;
  for (auto& [shard, queues] : by_shard) {
    parts.push_back({.shard = shard, .queues = std::move(queues)});
  }
  return parts;
}

void ClusterReserve::start() {
  if (parts_.size() > 1) return look();
  if (time_left() > milliseconds{0}) return wait();
  take(0, milliseconds{0});
}

/// How long it may still wait; never negative.
milliseconds ClusterReserve::time_left() const {
  if (!may_wait_) return milliseconds{0};
  if (!until_) return kMaxDelay;
  const auto left = std::chrono::ceil<milliseconds>(*until_ - shards_.now());
  return std::max(left, milliseconds{0});
}

/// Calls the method with the part that has been asked this and with the answer, unless the reserve
/// is over or the part has been asked again.
template <class Asked, class Method>
auto ClusterReserve::if_asked(Asked asked, std::uint64_t number, Method method) {
  return [self = shared_from_this(), asked, number, method](const auto&... answer) {
    const auto part = self->part_of(asked, number);
    if (part && !self->is_over_) std::invoke(method, *self, *part, answer...);
  };
}

/// The part that has been asked this, if it still is.
template <class Asked>
std::optional<std::size_t> ClusterReserve::part_of(Asked asked, std::uint64_t number) const {
  const auto it = std::ranges::find(parts_, number, asked);
  if (it == parts_.end()) return std::nullopt;
  return static_cast<std::size_t>(it - parts_.begin());
}

void ClusterReserve::look() {
  best_.reset();
  for (Part& part : parts_) {
    part.look = shards_.next_number();
    part.is_slow = false;
  }
  for (const Part& part : parts_) {
    shards_.ask(part.shard, {.kind = ShardAsk::Kind::next, .queues = part.queues},
                if_asked(&Part::look, *part.look, &ClusterReserve::looked),
                if_asked(&Part::look, *part.look, [](ClusterReserve& self, std::size_t slow) {
                  self.parts_[slow].is_slow = true;
                  self.choose();
                }));
  }
}

void ClusterReserve::looked(std::size_t part, const std::optional<ShardAnswer>& answer) {
  parts_[part].look.reset();
  if (answer && answer->head && (!best_ || *answer->head < *best_)) {
    best_ = answer->head;
    best_part_ = part;
  }
  choose();
}

/// Called when all shards have reported their next job. Slow shards are waited for only if no shard
/// has a job, and only by a reserve that never waited.
void ClusterReserve::choose() {
  const auto is_missing = [](const Part& part) { return part.look.has_value(); };
  const auto is_awaited = [](const Part& part) { return part.look && !part.is_slow; };
  if (std::ranges::any_of(parts_, is_awaited)) return;
  const bool is_missed = std::ranges::any_of(parts_, is_missing);
  if (!best_ && time_left() == milliseconds{0} && !ends_in_time_ && is_missed) return;
  for (Part& part : parts_) part.look.reset();
  if (best_) return take(best_part_, milliseconds{0});
  wait_or_end();
}

void ClusterReserve::wait_or_end() {
  if (time_left() > milliseconds{0}) return wait();
  end(std::nullopt);
}

/// Waits at every shard, no longer than may be.
void ClusterReserve::wait() {
  is_waiting_ = true;
  events_.on_wait();
  keep_watch();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].take) take(i, kLongestTake);
  }
}

/// Until its time is over.
void ClusterReserve::keep_watch() {
  timer_ = shards_.after(std::min(time_left(), kMapPeriod), [self = shared_from_this()] {
    if (self->is_over_) return;
    if (self->time_left() == milliseconds{0}) return self->end(std::nullopt);
    self->follow_queues();
    self->keep_watch();
  });
}

void ClusterReserve::follow_queues() {
  std::shared_ptr<const ShardMap> map = shards_.map();
  if (map == map_) return;
  map_ = std::move(map);
  std::vector<Part> parts = parts_now();
  const auto is_same = [](const Part& one, const Part& other) {
    return one.shard == other.shard && one.queues == other.queues;
  };
  if (std::ranges::equal(parts, parts_, is_same)) return;
  ++moves_;
  end_takes();
  parts_ = std::move(parts);
  for (std::size_t i = 0; i < parts_.size(); ++i) take(i, kLongestTake);
}

void ClusterReserve::take(std::size_t part, milliseconds wait) {
  Part& of = parts_[part];
  of.take = shards_.next_number();
  of.is_slow = false;
  NodeShards::WhenSlow slow;
  if (wait == milliseconds{0} && parts_.size() > 1) {
    slow = if_asked(&Part::take, *of.take, [](ClusterReserve& self, std::size_t slow_part) {
      self.parts_[slow_part].is_slow = true;
      self.take_at_others();
    });
  }
  shards_.ask(
      of.shard,
      {.kind = ShardAsk::Kind::take, .queues = of.queues, .wait = wait, .number = *of.take},
      [self = shared_from_this(), number = *of.take, shard = of.shard,
       asked_at = shards_.now()](std::optional<ShardAnswer> answer) {
        if (const auto asked = self->part_of(&Part::take, number)) {
          return self->took(*asked, asked_at, std::move(answer));
        }
        if (!answer || answer->answers.empty()) return;
        self->shards_.give_back(shard, {answer->answers.front().taken.token});
      },
      std::move(slow));
}

/// The shard that was asked for a job is slow: the first that gives one wins.
void ClusterReserve::take_at_others() {
  if (is_waiting_) return;
  if (time_left() > milliseconds{0}) return wait();
  if (ends_in_time_) return end_when_slow();
  if (looks_ >= kMaxLooks) return;
  looks_ = kMaxLooks;  // once: all are asked now
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].take) take(i, milliseconds{0});
  }
}

void ClusterReserve::took(std::size_t part, MonotonicTime asked_at,
                          std::optional<ShardAnswer> answer) {
  parts_[part].take.reset();
  if (answer && !answer->answers.empty()) return end(std::move(answer->answers.front()));
  if (is_waiting_) return take_again(part, asked_at);
  // Another that was slow, or was asked because of that.
  if (std::ranges::any_of(parts_, [](const Part& other) { return other.take.has_value(); })) {
    if (ends_in_time_) end_when_slow();
    return;
  }
  // Somebody was faster.
  if (parts_.size() > 1 && ++looks_ < kMaxLooks) return look();
  wait_or_end();
}

/// A wait that was over early was at a shard that is away, or moves.
void ClusterReserve::take_again(std::size_t part, MonotonicTime asked_at) {
  milliseconds& pause = parts_[part].pause;
  if (shards_.now() - asked_at >= kLongestTake / 2) {
    pause = kAwayPause;
    return take(part, kLongestTake);
  }
  const auto again = [self = shared_from_this(), part, moves = moves_] {
    const bool is_wanted = !self->is_over_ && moves == self->moves_;
    if (is_wanted) self->take(part, kLongestTake);
  };
  shards_.after(std::exchange(pause, std::min(pause * 2, kLongestAwayPause)), again).release();
}

/// Its time is over: it ends unless a shard that was asked may yet answer in time.
void ClusterReserve::end_when_slow() {
  const auto is_awaited = [](const Part& part) {
    return (part.look || part.take) && !part.is_slow;
  };
  if (std::ranges::none_of(parts_, is_awaited)) end(std::nullopt);
}

void ClusterReserve::end_wait() {
  may_wait_ = false;
  ends_in_time_ = true;
  if (is_over_) return;
  if (is_waiting_) return end(std::nullopt);
  end_when_slow();
}

void ClusterReserve::abandon() {
  if (!is_over_) end(std::nullopt);
}

/// Ends the waits at the shards. Jobs that still arrive are given back.
void ClusterReserve::end_takes() {
  for (Part& part : parts_) {
    if (!part.take) continue;
    shards_.ask(part.shard,
                {.kind = ShardAsk::Kind::end_take, .number = *std::exchange(part.take, {})},
                [](const std::optional<ShardAnswer>&) {});
  }
}

void ClusterReserve::end(std::optional<JobAnswer> got) {
  // The timer or a callback may have the last reference.
  const std::shared_ptr<ClusterReserve> kept = shared_from_this();
  is_over_ = true;
  timer_.cancel();
  end_takes();
  Events events = std::exchange(events_, {});
  events.on_end(std::move(got));
}

}  // namespace detent::server
