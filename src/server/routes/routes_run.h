// Helpers with which a route runs a verb on the engine. Private to routes*.cc.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "external/far_tasks.h"
#include "protocol/json/request_codec.h"
#include "server/routes/routes.h"

namespace detent::server {

/// The error for a request that the engine's full queue cannot accept.
inline Error overloaded() {
  return {ErrorCode::unavailable, "too many requests wait, or the server is stopping; retry"};
}

/// The error when the task may be in the external scheduler and that scheduler cannot be asked. The
/// caller can only try again, whatever the cause.
Error not_to_be_asked(TaskId id, Error error);
/// Checks the permission of `caller` for a task. Errors: `forbidden`; `not_found` for a task of a
/// queue that the caller may not read, so that the answer does not reveal that the task exists.
Result<void> permit(const Caller& caller, Need need, const Task& task);
/// As above, with a look-up of the task. The look-up costs a read, unless the caller may do
/// everything.
Result<void> permit(Engine& engine, const Caller& caller, Need need, TaskId id);
/// As above, for a task that may be in the external scheduler. If it is not there either, the call
/// succeeds, and the following verb reports the missing task. Errors: also the errors of
/// FarTasks::find().
Result<void> permit(FarTasks& far, const Caller& caller, Need need, TaskId id);
/// Checks the permission to look at a queue; without a name, at all queues. Errors: `forbidden`.
inline Result<void> may_look(const Caller& caller, const std::optional<std::string>& queue) {
  return queue ? caller.require(Need::look, *queue) : caller.require(Need::look_all, "");
}
/// Answers with all fields of a task.
void answer_task(const HttpReply& reply, const TaskSnapshot& view);

/// The location of a new task.
inline std::string location_of(TaskId id) { return "/v1/tasks/" + to_string(id); }

/// Fills the rules that a task leaves open with the settings of its queue.
inline void show_rules_in_force(TaskRules& rules, const QueueSettings& settings) {
  if (!rules.max_attempts) rules.max_attempts = settings.max_attempts;
  if (!rules.visibility_timeout) rules.visibility_timeout = settings.visibility_timeout;
  if (!rules.backoff) rules.backoff = settings.backoff;
}

/// The engine queue for a command on one task queue. If the name is invalid, the command belongs to
/// no queue.
inline EngineThread::QueueOf for_queue(std::string name) {
  if (!is_queue_name(name)) return {};
  return [name = std::move(name)](const Engine& /*engine*/) { return name; };
}
/// The engine queue for a command on tasks with these leases, which are usually of one task queue.
inline EngineThread::QueueOf for_leases(const json::LeaseList& leases) {
  const auto first =
      std::ranges::find_if(leases, [](const auto& lease) { return lease.has_value(); });
  if (first == leases.end()) return {};
  return [lease = **first](const Engine& engine) { return std::string(engine.queue_of(lease)); };
}

template <class Verb, class Answer>
void Routes::run(HttpReply reply, Verb verb, Answer answer, EngineThread::QueueOf queue) {
  run_or(
      std::move(reply), std::move(verb), std::move(answer),
      [](const HttpReply& to, const Error& error) { to.send_error(error); }, std::move(queue));
}

template <class Verb, class Answer, class Otherwise>
void Routes::run_or(HttpReply reply, Verb verb, Answer answer, Otherwise otherwise,
                    EngineThread::QueueOf queue) {
  auto command = [reply, verb = std::move(verb), answer = std::move(answer),
                  otherwise = std::move(otherwise)](Engine& engine) mutable {
    auto result = verb(engine);
    engine.after_commit([reply, result = std::move(result), answer = std::move(answer),
                         otherwise = std::move(otherwise)](const Result<void>& committed) mutable {
      if (!committed) return otherwise(reply, committed.error());
      if (!result) return otherwise(reply, result.error());
      answer(reply, *result);
    });
  };
  if (!post(std::move(command), std::move(queue))) reply.send_error(overloaded());
}

template <class Verb, class Answer>
void Routes::run_on_task(const Call& call, FarVerb far_verb, Verb verb, Answer answer) {
  std::optional<TaskId> id;  // a task with a key does not go away
  const bool has_key = call.parameters.size() > 1;
  if (!has_key) id = parse_task_id(call.parameters.front());
  if (offload_ == nullptr || !id) {
    return run(call.reply, std::move(verb), std::move(answer),
               has_key ? for_queue(call.parameters.front()) : EngineThread::QueueOf());
  }
  run_or(
      call.reply, verb, answer,
      [this, call, id = *id, far_verb, verb, answer](const HttpReply& reply, const Error& error) {
        if (error.code != ErrorCode::not_found) return reply.send_error(error);
        (this->*far_verb)(call, id, [this, reply, verb, answer] { run(reply, verb, answer); });
      });
}

}  // namespace detent::server
