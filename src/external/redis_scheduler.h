// Keeps far tasks in Redis: a sorted set of due times, a hash of records, and a sorted set of
// claims.
//
// Each operation is one Lua script, so it is atomic. A call for many tasks is split into several
// script calls, which are sent without waiting for the replies. redis_session.h says which settings
// Redis needs, how it knows the owner of the tasks, and why an abandoned connection changes
// nothing.
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

/// Connects at the first call, and again after an error. Each call tries once; the caller decides
/// when to try again. It does not follow the redirections of Redis Cluster. All keys are on one
/// node of a cluster, so give the address of this node.
class RedisScheduler final : public ExternalScheduler {
 public:
  /// Does not connect yet. Errors: invalid_argument; the error names the option.
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
  /// Sends commands. Returns the number of replies that will come.
  using Send = std::function<Result<std::size_t>(RedisSession&)>;

  explicit RedisScheduler(RedisOptions options) : options_(std::move(options)) {}
  Result<std::vector<RedisReply>> exchange(std::string_view verb, const Send& send);
  Result<std::vector<RedisReply>> try_exchange(const Send& send);
  Result<void> for_each_id(std::string_view verb, RedisScript script,
                           std::span<const std::string> ids);

  RedisOptions options_;
  std::unique_ptr<RedisSession> session_;  // null: not connected
  bool has_lost_scripts_ = false;          // whether the last error came from missing scripts
};

}  // namespace detent
