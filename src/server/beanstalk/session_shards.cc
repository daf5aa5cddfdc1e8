#include "server/beanstalk/session_shards.h"

#include <algorithm>
#include <utility>

namespace detent::server {
namespace {

/// A shard that is away may be so for a lease and longer; then the time to run ends leases.
constexpr int kGiveBackTries = 60;

}  // namespace

void SessionShards::ask(ShardNumber shard, const ShardAsk& ask, Answered answered,
                        Late late) const {
  JobShards::Late tell_late;
  if (late) {
    tell_late = [hub = hub_, late = std::move(late)]() mutable {
      hub->engine.post_end([late = std::move(late)](Engine& engine) mutable { late(engine); });
    };
  }
  shards_->ask(
      shard, ask,
      [hub = hub_, answered = std::move(answered)](std::optional<ShardAnswer> answer) mutable {
        hub->engine.post_end([answered = std::move(answered), answer = std::move(answer)](
                                 Engine& engine) mutable { answered(engine, std::move(answer)); });
      },
      std::move(tell_late));
}

/// `engine` has no tasks, so a wait always lasts until its end.
Engine::WaitId SessionShards::after(Engine& engine, std::chrono::milliseconds delay,
                                    UniqueFunction<void(Engine&)> then) const {
  return engine.lease_or_wait(
      job_lease_request(), delay,
      [hub = hub_, then = std::move(then)](const Result<std::vector<LeasedTask>>&) mutable {
        // The end of a wait must not call a verb (Engine::lease_or_wait), so it posts the call.
        hub->engine.post_end([then = std::move(then)](Engine& later) mutable { then(later); });
      });
}

void SessionShards::give_back(ShardNumber shard, std::vector<LeaseToken> leases) const {
  ++hub_->give_backs;
  give_back({.shard = shard, .leases = std::move(leases), .tries = kGiveBackTries});
}

/// Gives back as many leases as fit in one question; the rest follows after the answer.
void SessionShards::give_back(GiveBack what) const {
  const auto count = std::min(what.leases.size(), ShardAsk::kMostLeases);
  const auto end = what.leases.begin() + static_cast<std::ptrdiff_t>(count);
  const ShardAsk asked{.kind = ShardAsk::Kind::give_back, .leases = {what.leases.begin(), end}};
  const ShardNumber shard = what.shard;
  ask(shard, asked,
      [self = *this, what = std::move(what), count](
          Engine& engine, const std::optional<ShardAnswer>& answer) mutable {
        if (answer) {
          const auto begin = what.leases.begin();
          what.leases.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
          what.tries = kGiveBackTries + 1;
        }
        if (what.leases.empty() || --what.tries == 0) {
          --self.hub_->give_backs;
        } else if (answer) {
          self.give_back(std::move(what));
        } else {
          self.give_back_later(engine, std::move(what));
        }
      });
}

void SessionShards::give_back_later(Engine& engine, GiveBack what) const {
  after(engine, kGiveBackPause,
        [self = *this, due = now() + kGiveBackPause, what = std::move(what)](Engine&) mutable {
          if (self.now() >= due) return self.give_back(std::move(what));
          // All waits have been ended. A new attempt without a pause would use up all attempts
          // immediately.
          self.hub_->tries.emplace_back(
              [self, what = std::move(what)]() mutable { self.give_back(std::move(what)); });
        });
}

}  // namespace detent::server
