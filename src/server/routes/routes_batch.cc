// Verbs over many tasks: one command to the engine and one commit for all, with one result per
// task.
//
// If an external scheduler keeps far tasks, tasks that are not in the store are brought back from
// it and tried once more.
#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "external/offload_thread.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/request_codec.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {

namespace {

/// The number of tasks that are read together before the verb runs on each task. Each task has at
/// most 64 KiB.
constexpr std::size_t kReadAhead = 256;

}  // namespace

/// A running batch. `T` is the result for one task.
template <class T>
struct Routes::Batch {
  using Results = std::vector<Result<T>>;

  json::TaskNames tasks;
  Caller caller;
  std::function<Result<T>(Engine&, TaskId)> verb;
  std::string (*render)(std::span<const Result<T>>);
  Results results = {};

  std::size_t size() const noexcept { return tasks.ids.size() + tasks.keys.size(); }

  /// Lets the store read several tasks together, because run() then costs less.
  void read_ahead(Engine& engine, std::size_t first) const {
    const auto part = [](const auto& all, std::size_t from) {
      return std::span(all).subspan(from, std::min(kReadAhead, all.size() - from));
    };
    if (first >= tasks.ids.size()) {
      if (!caller.require(Need::produce, tasks.queue)) return;
      return engine.read_ahead(tasks.queue, part(tasks.keys, first - tasks.ids.size()));
    }
    std::vector<TaskId> ids;
    for (const std::optional<TaskId>& id : part(tasks.ids, first)) {
      if (id) ids.push_back(*id);
    }
    engine.read_ahead(ids);
  }
  /// Carries out the verb on one of the tasks.
  Result<T> run(Engine& engine, std::size_t index) const {
    if (index < tasks.ids.size()) {
      const std::optional<TaskId> id = tasks.ids[index];
      if (!id)
        return Error{ErrorCode::not_found, "no task has this id; an id is a number, such as 256",
                     "id"};
      TRY(permit(engine, caller, Need::produce, *id));
      return verb(engine, *id);
    }
    TRY(caller.require(Need::produce, tasks.queue));
    ASSIGN_OR_RETURN(const TaskId id,
                     engine.id_of_key(tasks.queue, tasks.keys[index - tasks.ids.size()]));
    return verb(engine, id);
  }
  /// Those that are not here and have an id, so that they may be elsewhere.
  std::vector<std::size_t> not_found() const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < tasks.ids.size(); ++i) {
      const bool is_missing = !results[i] && results[i].error().code == ErrorCode::not_found;
      if (tasks.ids[i] && is_missing) indices.push_back(i);
    }
    return indices;
  }
};

template <class T>
void Routes::run_batch(const HttpReply& reply, Batch<T> batch) {
  const auto run_all = [batch](Engine& engine) -> Result<std::vector<Result<T>>> {
    std::vector<Result<T>> results;
    results.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (i % kReadAhead == 0) batch.read_ahead(engine, i);
      results.push_back(batch.run(engine, i));
      engine.hand_out_due();
    }
    return results;
  };
  auto answer = [this, batch](const HttpReply& to, std::vector<Result<T>>& results) mutable {
    batch.results = std::move(results);
    if (offload_ == nullptr || batch.not_found().empty()) {
      return to.send_json(200, batch.render(batch.results));
    }
    fetch_and_run(to, std::move(batch));
  };
  run(reply, run_all, std::move(answer), for_queue(batch.tasks.queue));
}

template <class T>
void Routes::fetch_and_run(const HttpReply& reply, Batch<T> batch) {
  const bool is_posted =
      offload_->post([this, reply, batch = std::move(batch)](FarTasks& far) mutable {
        const std::vector<std::size_t> missing = batch.not_found();
        std::vector<std::size_t> again;
        for (const std::size_t i : missing) {
          const TaskId id = *batch.tasks.ids[i];
          if (const auto allowed = permit(far, batch.caller, Need::produce, id); !allowed) {
            batch.results[i] = allowed.error();
          } else if (const Result<bool> fetched = far.fetch(id); !fetched) {
            batch.results[i] = not_to_be_asked(id, fetched.error());
          } else {
            again.push_back(i);
          }
        }
        EngineThread::QueueOf queue = for_queue(batch.tasks.queue);
        const auto run_again = [batch = std::move(batch),
                                again](Engine& engine) mutable -> Result<std::string> {
          for (const std::size_t i : again) batch.results[i] = batch.run(engine, i);
          return batch.render(batch.results);
        };
        run(
            reply, run_again,
            [](const HttpReply& to, std::string& body) { to.send_json(200, std::move(body)); },
            std::move(queue));
      });
  if (!is_posted) reply.send_error(overloaded());
}

void Routes::cancel_batch(const Call& call) {
  Result<json::TaskNames> tasks = json::parse_cancel_batch(call.request.body);
  if (!tasks) return call.reply.send_error(tasks.error());
  run_batch<TaskId>(call.reply, {.tasks = *std::move(tasks),
                                 .caller = call.caller,
                                 .verb = [](Engine& engine, TaskId id) -> Result<TaskId> {
                                   TRY(engine.cancel(id));
                                   return id;
                                 },
                                 .render = &json::render_cancel_results});
}

void Routes::move_batch(const Call& call) {
  Result<json::MoveCall> move = json::parse_move_batch(call.request.body);
  if (!move) return call.reply.send_error(move.error());
  run_batch<TaskSnapshot>(
      call.reply,
      {.tasks = std::move(move->tasks),
       .caller = call.caller,
       .verb = [due = move->due](Engine& engine, TaskId id) { return engine.move(id, due); },
       .render = &json::render_schedule_results});
}

}  // namespace detent::server
