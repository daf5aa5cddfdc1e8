// Sends one request to one shard or to all shards, and combines the answers.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gateway/request_plan.h"
#include "task/task_stats.h"

namespace detent::gateway {

using Answers = std::vector<net::HttpResponse>;

inline bool is_success(const net::HttpResponse& answer) noexcept {
  return answer.status >= 200 && answer.status < 300;
}
/// The server failed for a reason that does not depend on the request: a repeat may help, but
/// another shard would not.
inline bool is_server_failure(const net::HttpResponse& answer) noexcept {
  return answer.status >= 500;
}

/// `error` as an answer of the gateway's own.
net::HttpResponse problem(const Error& error);
/// The combined answer: its status is 200, and its CORS headers are those of the answers. Requires:
/// there is at least one answer.
net::HttpResponse joined(const Answers& answers, std::string body);

/// The request with another method, target or body; the framing that its headers tell is gone.
net::HttpRequest with_body(const net::HttpRequest& request, std::string body);
net::HttpRequest as_get(const net::HttpRequest& request, std::string target);

/// The target without these parameters, however they are escaped, ready for others: it ends with
/// '?' or '&'.
std::string target_without(std::string_view target, std::initializer_list<std::string_view> names);

/// Whether the target has this parameter, however it is escaped.
bool has_parameter(std::string_view target, std::string_view name);

/// Sends the request there as it came; the answer is that shard's.
Plan to_shard(net::HttpRequest request, ShardNumber shard);

/// Combines successful answers. An error means that an answer is unreadable; it becomes a problem
/// (500).
using Merge = std::function<Result<Step>(Answers)>;
/// Carries out the parts; the first answer that is no success is the answer.
Plan to_each(std::vector<Part> parts, Merge merge);
/// Sends the same request to every shard.
Plan to_all(const net::HttpRequest& request, ShardNumber shards, Merge merge);

/// The queue that a JSON object names in its member `queue`, if it does.
std::optional<std::string> queue_in(std::string_view body);
/// The shard of the task in a JSON object with `queue` and perhaps `key`, or no value if the object
/// does not determine a shard.
std::optional<ShardNumber> place_in(std::string_view task, const ShardMap& map, std::uint64_t turn);

/// Adds the figures of another partition of the queue.
void add_partition(QueueStats& sum, const QueueStats& more);
void add_partition(QueueView& sum, const QueueView& more);
/// The histories must have the same steps.
void add_partition(QueueHistory& sum, const QueueHistory& more);

}  // namespace detent::gateway
