#include "server/cluster_reserve.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"

namespace detent::server {

using std::chrono::milliseconds;

ClusterReserve::ClusterReserve(SessionShards shards, Options options, Events events)
    : shards_(shards),
      until_(options.until),
      may_wait_(options.may_wait),
      events_(std::move(events)) {
  DETENT_CHECK(!options.queues.empty());
  for (auto& [shard, queues] : options.queues) {
    parts_.push_back({.shard = shard, .queues = std::move(queues)});
  }
}

void ClusterReserve::start(Engine& engine) {
  if (parts_.size() > 1) return look();
  if (time_left() > milliseconds{0}) return wait(engine);
  take(0, milliseconds{0});
}

/// How long it may still wait; never negative.
milliseconds ClusterReserve::time_left() const {
  if (!may_wait_) return milliseconds{0};
  if (!until_) return kMaxDelay;
  const auto left = std::chrono::ceil<milliseconds>(*until_ - shards_.now());
  return std::max(left, milliseconds{0});
}

void ClusterReserve::look() {
  open_ = parts_.size();
  best_.reset();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    shards_.ask(
        parts_[i].shard, {.kind = ShardAsk::Kind::next, .queues = parts_[i].queues},
        [self = shared_from_this(), i](Engine& engine, const std::optional<ShardAnswer>& answer) {
          if (!self->is_over_) self->looked(engine, i, answer);
        });
  }
}

void ClusterReserve::looked(Engine& engine, std::size_t part,
                            const std::optional<ShardAnswer>& answer) {
  if (answer && answer->head && (!best_ || *answer->head < *best_)) {
    best_ = answer->head;
    best_part_ = part;
  }
  if (--open_ > 0) return;
  if (best_) return take(best_part_, milliseconds{0});
  wait_or_end(engine);
}

void ClusterReserve::wait_or_end(Engine& engine) {
  if (time_left() > milliseconds{0}) return wait(engine);
  end(engine, std::nullopt);
}

/// Waits at every shard, no longer than may be.
void ClusterReserve::wait(Engine& engine) {
  is_waiting_ = true;
  events_.on_wait();
  timer_ = shards_.after(engine, time_left(), [self = shared_from_this()](Engine& later) {
    if (!self->is_over_) self->end(later, std::nullopt);
  });
  for (std::size_t i = 0; i < parts_.size(); ++i) take(i, kLongestTake);
}

void ClusterReserve::take(std::size_t part, milliseconds wait) {
  Part& of = parts_[part];
  of.take = shards_.next_number();
  shards_.ask(of.shard,
              {.kind = ShardAsk::Kind::take, .queues = of.queues, .wait = wait, .number = *of.take},
              [self = shared_from_this(), part, shard = of.shard, asked_at = shards_.now()](
                  Engine& engine, std::optional<ShardAnswer> answer) {
                if (!self->is_over_) return self->took(engine, part, asked_at, std::move(answer));
                if (!answer || answer->answers.empty()) return;
                self->shards_.give_back(shard, {answer->answers.front().taken.token});
              });
}

void ClusterReserve::took(Engine& engine, std::size_t part, MonotonicTime asked_at,
                          std::optional<ShardAnswer> answer) {
  parts_[part].take.reset();
  if (answer && !answer->answers.empty()) return end(engine, std::move(answer->answers.front()));
  if (is_waiting_) return take_again(engine, part, asked_at);
  // Somebody was faster.
  if (parts_.size() > 1 && ++looks_ < kMaxLooks) return look();
  wait_or_end(engine);
}

/// A wait that was over early was at a shard that is away, or moves.
void ClusterReserve::take_again(Engine& engine, std::size_t part, MonotonicTime asked_at) {
  milliseconds& pause = parts_[part].pause;
  if (shards_.now() - asked_at >= kLongestTake / 2) {
    pause = kAwayPause;
    return take(part, kLongestTake);
  }
  shards_.after(engine, std::exchange(pause, std::min(pause * 2, kLongestAwayPause)),
                [self = shared_from_this(), part](Engine&) {
                  if (!self->is_over_) self->take(part, kLongestTake);
                });
}

void ClusterReserve::end_wait(Engine& engine) {
  may_wait_ = false;
  if (is_waiting_ && !is_over_) end(engine, std::nullopt);
}

void ClusterReserve::abandon(Engine& engine) {
  if (!is_over_) end(engine, std::nullopt);
}

void ClusterReserve::end(Engine& engine, std::optional<JobAnswer> got) {
  is_over_ = true;
  if (is_waiting_) engine.abandon_wait(timer_);
  for (const Part& part : parts_) {
    if (!part.take) continue;
    shards_.ask(part.shard, {.kind = ShardAsk::Kind::end_take, .number = *part.take},
                [](Engine&, const std::optional<ShardAnswer>&) {});
  }
  const std::shared_ptr<ClusterReserve> kept = shared_from_this();  // who is told may let it go
  Events events = std::exchange(events_, {});
  events.on_end(engine, std::move(got));
}

}  // namespace detent::server
