// Tasks that are with another system: found there, or fetched so that they are here.
#include <utility>

#include "external/offload_thread.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {

Error not_to_be_asked(TaskId id, Error error) {
  if (error.code != ErrorCode::data_loss) error.code = ErrorCode::unavailable;
  return with_context("task " + to_string(id) +
                          " is not here, and the external scheduler, which may keep it, failed",
                      std::move(error));
}

Result<void> permit(FarTasks& far, const Caller& caller, Need need, TaskId id) {
  if (caller.may_all()) return ok();
  Result<std::optional<Task>> task = far.find(id);
  if (!task) return not_to_be_asked(id, std::move(task).error());
  return *task ? permit(caller, need, **task) : ok();
}

void Routes::show_far(const Call& call, TaskId id, UniqueFunction<void()> look_again) {
  const HttpReply& reply = call.reply;
  const bool is_posted = offload_->post(
      [reply, caller = call.caller, id, look_again = std::move(look_again)](FarTasks& far) mutable {
        Result<std::optional<Task>> task = far.find(id);
        if (!task) return reply.send_error(not_to_be_asked(id, std::move(task).error()));
        if (!*task) return look_again();  // the task may have come back in between
        if (const auto allowed = permit(caller, Need::look, **task); !allowed) {
          return reply.send_error(allowed.error());
        }
        answer_task(reply, {.task = **std::move(task)});
      });
  if (!is_posted) reply.send_error(overloaded());
}

void Routes::fetch_far(const Call& call, TaskId id, UniqueFunction<void()> go_on) {
  const HttpReply& reply = call.reply;
  const bool is_posted = offload_->post(
      [reply, caller = call.caller, id, go_on = std::move(go_on)](FarTasks& far) mutable {
        // A caller without permission cannot make the task move.
        if (const auto allowed = permit(far, caller, Need::produce, id); !allowed) {
          return reply.send_error(allowed.error());
        }
        Result<bool> fetched = far.fetch(id);
        if (!fetched) return reply.send_error(not_to_be_asked(id, std::move(fetched).error()));
        go_on();  // before the next step could hand it over again
      });
  if (!is_posted) reply.send_error(overloaded());
}

}  // namespace detent::server
