#include "server/http/query.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/wall_time.h"

namespace detent::server {
namespace {

Error invalid(const QueryParameter& parameter, std::string_view allowed) {
  return {ErrorCode::invalid_argument,
          std::string(parameter.name) + " must be " + std::string(allowed),
          std::string(parameter.name)};
}

}  // namespace

Result<std::chrono::milliseconds> read_duration(const QueryParameter& parameter,
                                                std::chrono::milliseconds other) {
  if (!parameter.value) return other;
  auto duration = parse_duration(*parameter.value);
  if (duration) return duration;
  Error error = with_context(parameter.name, std::move(duration).error());
  error.field = parameter.name;
  return error;
}

Result<std::optional<WallTime>> read_time(const QueryParameter& parameter) {
  if (!parameter.value) return std::optional<WallTime>();
  const std::string& text = *parameter.value;
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc{} && stop == end && count >= 0) {
    const WallTime time{std::chrono::milliseconds{count}};
    if (time < kWallTimeEnd) return std::optional(time);
  }
  if (const Result<WallTime> time = parse_rfc3339(text)) return std::optional(*time);
  return invalid(parameter, "an RFC 3339 time, or milliseconds since 1970");
}

Result<QueueOrder> read_queue_order(const QueryParameter& parameter) {
  if (!parameter.value || parameter.value == "tasks") return QueueOrder::by_tasks;
  if (parameter.value == "age") return QueueOrder::by_age;
  return invalid(parameter, "\"tasks\" or \"age\"");
}

Result<TaskId> read_id(const QueryParameter& parameter) {
  if (!parameter.value) return TaskId{};
  if (const auto id = parse_task_id(*parameter.value)) return *id;
  return invalid(parameter, "a task id, such as 256");
}

}  // namespace detent::server
