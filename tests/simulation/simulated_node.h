// A node of a simulated cluster: a real shard keeper, and a real engine for each shard that the
// node owns. It has its own clock and its own connection to the database.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/rng.h"
#include "cluster/shard_keeper.h"
#include "detent/clock.h"
#include "engine/engine.h"
#include "tests/simulation/cluster_simulation.h"
#include "tests/simulation/simulated_contract.h"
#include "tests/simulation/simulated_database.h"

namespace detent {

/// Thread-compatible.
class SimulatedNode final : public ShardHost {
 public:
  SimulatedNode(SimulatedDatabase& database, DeliveryContract& contract, Member me, Rng& rng,
                const SimulationOptions& options, WallInstant wall)
      : contract_(contract),
        me_(std::move(me)),
        rng_(rng),
        clock_(wall),
        rate_(1 + kMostDrift * (2 * rng.unit() - 1)),
        answers_before_commit_(options.answers_before_commit),
        forgets_leases_(options.forgets_leases),
        connection_(database, rng.next()),
        leases_(connection_) {
    start();
  }

  void start() {
    is_retiring_ = false;
    me_.incarnation = rng_.next();
    keeper_ = std::make_unique<ShardKeeper>(leases_, *this, clock_, me_, rng_.next());
  }
  /// Crashes: all that is only in memory is lost.
  void kill() {
    for (const auto& [shard, served] : served_) contract_.engine_gone(served.lease, false);
    served_.clear();
    keeper_.reset();
  }
  bool is_up() const noexcept { return keeper_ != nullptr; }
  Connection& connection() noexcept { return connection_; }
  /// Gives up all shards, leaves the cluster and stops.
  void retire() {
    is_retiring_ = true;
    keeper_->retire();
  }

  void advance(std::chrono::nanoseconds by) {
    elapsed_ += by;
    const std::chrono::nanoseconds shown(
        static_cast<std::int64_t>(static_cast<double>(elapsed_.count()) * rate_));
    clock_.advance(shown - (clock_.now() - MonotonicTime{}));
  }
  WallTime wall_now() const {
    return std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
  }
  /// The true time until the node has work.
  std::chrono::nanoseconds until_next() const {
    MonotonicTime next = keeper_->next_step();
    for (const auto& [shard, served] : served_) {
      if (!served.engine) continue;
      if (const auto wakeup = served.engine->next_wakeup()) next = std::min(next, *wakeup);
    }
    const std::chrono::nanoseconds left = next - clock_.now();
    if (left <= std::chrono::nanoseconds{0}) return std::chrono::nanoseconds{0};
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(left.count()) / rate_) + 1);
  }
  /// The keeper and the engines have their own threads in a real node, so their order is random.
  void run() {
    const bool is_keeper_first = rng_.below(2) == 0;
    if (is_keeper_first) step_keeper();
    run_engines();
    if (!is_keeper_first) step_keeper();
  }
  void step_keeper() {
    if (keeper_ == nullptr || clock_.now() < keeper_->next_step()) return;
    static_cast<void>(keeper_->step());
    if (!is_retiring_ || !keeper_->is_empty()) return;
    static_cast<void>(leases_.leave(me_));
    kill();
  }
  void run_engines() {
    for (auto& [shard, served] : served_) {
      if (!served.engine) continue;
      const auto wakeup = served.engine->next_wakeup();
      if (wakeup && *wakeup <= clock_.now()) turn(served);
    }
  }

  /// Lets the engine of `shard` carry out `verb`. Calls `answer` with the result after the change
  /// is durable, if this node still owns the shard then. Otherwise calls `refuse(may_be)`; `may_be`
  /// tells whether the change may have been carried out.
  template <class Verb, class Answer, class Refuse>
  void serve(ShardNumber shard, Verb verb, Answer answer, Refuse refuse) {
    const auto it = served_.find(shard);
    if (it == served_.end() || !it->second.engine || !is_sure_of(it->second.lease)) {
      return refuse(false);
    }
    Served& served = it->second;
    served.engine->catch_up();
    auto result = verb(*served.engine);
    if (answers_before_commit_) {
      answer(served.lease, result);
      return turn(served);
    }
    served.engine->after_commit([this, lease = served.lease, result = std::move(result), answer,
                                 refuse](const Result<void>& committed) mutable {
      if (!committed || !is_sure_of(lease)) return refuse(true);
      answer(lease, result);
    });
    turn(served);
  }

  // ---- called by the keeper ----
  void open(const ShardLease& lease) override {
    Served& served = served_[lease.shard];
    served = {.lease = lease, .store = std::make_unique<ConnectedStore>(connection_, lease)};
    auto engine = Engine::open(*served.store, clock_,
                               {.window = std::chrono::seconds{10},
                                .max_loaded = 64,
                                .keep_leases = true,
                                .shard = lease.shard,
                                .seed = rng_.next()});
    if (!engine) return;  // is_closed() is true from now on
    served.engine = std::move(*engine);
    contract_.engine_opened(lease, wall_now());
  }
  void close(ShardNumber shard) override {
    Served& served = served_.at(shard);
    if (!served.engine) return;
    const bool is_kept = forgets_leases_ || served.engine->close().has_value();
    served.engine.reset();
    contract_.engine_gone(served.lease, is_kept);
  }
  bool is_closed(ShardNumber shard) override { return !served_.at(shard).engine; }
  void drop(ShardNumber shard) override {
    const auto it = served_.find(shard);
    if (it->second.engine) {
      contract_.engine_gone(it->second.lease, false);
      static_cast<void>(it->second.engine->close());  // its write has no effect
    }
    served_.erase(it);
  }

 private:
  struct Served {
    ShardLease lease;
    std::unique_ptr<ConnectedStore> store;
    std::unique_ptr<Engine> engine = nullptr;  // null if closed, or if it could not be opened
  };

  bool is_sure_of(const ShardLease& lease) const {
    const auto until = keeper_->held_until(lease);
    return until && clock_.now() < *until;
  }
  void turn(Served& served) {
    if (served.engine->turn()) return;
    contract_.engine_gone(served.lease, false);
    served.engine.reset();
  }

  DeliveryContract& contract_;
  Member me_;
  Rng& rng_;
  ManualClock clock_;
  const double rate_;
  std::chrono::nanoseconds elapsed_{0};  // true time
  const bool answers_before_commit_;
  const bool forgets_leases_;
  Connection connection_;
  ConnectedLeases leases_;
  std::map<ShardNumber, Served> served_;
  bool is_retiring_ = false;
  std::unique_ptr<ShardKeeper> keeper_;  // null while the node is down
};

}  // namespace detent
