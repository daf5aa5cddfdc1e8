// Far tasks in Redis: a sorted set by due time, a hash of records, a sorted set of claims.
//
// Each verb is one Lua script, so it happens as a whole or not at all, and large calls are cut into
// many that are on their way together. What Redis must be set up for, whose tasks may lie there and
// how a connection that was given up is kept from doing anything later is in redis_session.h.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "external/external_scheduler.h"
#include "external/redis_session.h"

namespace detent {

/// Connects when it is first used, and again after an error: each call tries once, the caller
/// decides when to call again. Redis Cluster is not followed: all keys are on one node, give that.
class RedisScheduler final : public ExternalScheduler {
 public:
  /// Does not connect yet. Errors: invalid_argument, naming the option.
  static Result<std::unique_ptr<RedisScheduler>> create(RedisOptions options);
  RedisScheduler(const RedisScheduler&) = delete;
  RedisScheduler& operator=(const RedisScheduler&) = delete;

  Result<void> put(std::span<const Task> tasks) override;
  Result<CancelOutcome> cancel(TaskId id) override;
  Result<std::optional<Task>> find(TaskId id) override;
  Result<Taken> take(const TakeRequest& request) override;
  Result<void> forget(std::span<const TaskId> ids) override;
  Result<std::uint64_t> size() override;
  Result<void> stamp(std::uint64_t before, std::uint64_t generation) override;
  Result<std::uint64_t> generation() override;
  std::string stamp_command(std::uint64_t generation) const override;

 private:
  /// Sends commands; answers how many, which is how many replies come.
  using Send = std::function<Result<std::size_t>(RedisSession&)>;

  explicit RedisScheduler(RedisOptions options) : options_(std::move(options)) {}
  Result<std::vector<RedisReply>> exchange(std::string_view verb, const Send& send);
  Result<std::vector<RedisReply>> try_exchange(const Send& send);
  Result<void> for_each_id(std::string_view verb, RedisScript script,
                           std::span<const std::string> ids);

  RedisOptions options_;
  std::unique_ptr<RedisSession> session_;  // null: not connected
  bool has_lost_scripts_ = false;          // was the reason of the last error
};

}  // namespace detent
