#include "durable/task_values.h"

#include <utility>

namespace detent::durable {
namespace {

DurableError::Code to_public(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return DurableError::Code::invalid_argument;
    case ErrorCode::not_found:
      return DurableError::Code::not_found;
    case ErrorCode::conflict:
      return DurableError::Code::conflict;
    case ErrorCode::too_large:
      return DurableError::Code::too_large;
    case ErrorCode::resource_exhausted:
      return DurableError::Code::resource_exhausted;
    case ErrorCode::unavailable:
      return DurableError::Code::unavailable;
    case ErrorCode::data_loss:
      return DurableError::Code::data_loss;
    case ErrorCode::forbidden:  // the calls here need no access token
    case ErrorCode::internal:
      return DurableError::Code::internal;
  }
  return DurableError::Code::internal;
}

TaskInfo::State to_public(TaskState state) noexcept {
  switch (state) {
    case TaskState::scheduled:
      return TaskInfo::State::scheduled;
    case TaskState::ready:
      return TaskInfo::State::ready;
    case TaskState::leased:
      return TaskInfo::State::leased;
    case TaskState::dead:
      return TaskInfo::State::dead;
    case TaskState::completed:
      return TaskInfo::State::completed;
    case TaskState::cancelled:
      return TaskInfo::State::cancelled;
  }
  return TaskInfo::State::scheduled;
}

}  // namespace

DurableError to_public(const Error& error) {
  return {.code = to_public(error.code), .message = error.message};
}

TaskInfo to_public(Task task, TaskState state) {
  std::string error(last_error(task));
  return {.id = task.id.value,
          .name = std::move(task.queue),
          .key = std::move(task.key),
          .payload = std::move(task.payload.data),
          .state = to_public(state),
          .due_at = task.due_at,
          .created_at = task.created_at,
          .attempts = task.attempts,
          .error = std::move(error)};
}

ScheduleRequest to_internal(TaskRequest request, Due due) {
  const Backoff backoff{.initial = request.backoff, .max = request.max_backoff};
  return {.queue = std::move(request.name),
          .payload = {.kind = Payload::Kind::bytes, .data = std::move(request.payload)},
          .rules = {.priority = request.priority,
                    .max_attempts = request.max_attempts,
                    .visibility_timeout = std::nullopt,
                    .backoff = backoff},
          .due = due,
          .key = std::move(request.key)};
}

}  // namespace detent::durable
