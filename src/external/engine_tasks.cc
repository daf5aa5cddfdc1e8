#include "external/engine_tasks.h"

#include <algorithm>
#include <future>
#include <string>
#include <type_traits>
#include <utility>

namespace detent {

namespace {

/// The number of tasks that one command reads. Between the commands, the engine serves its other
/// callers.
constexpr std::size_t kPageTasks = 1'000;

}  // namespace

/// Runs `verb` on the engine's thread. Returns its result after the commit.
template <class Verb>
auto EngineTasks::run(Verb verb) {
  using Answer = std::invoke_result_t<Verb, Engine&>;
  std::promise<Answer> promise;
  std::future<Answer> answer = promise.get_future();
  const bool is_posted =
      post_([verb = std::move(verb), promise = std::move(promise)](Engine& engine) mutable {
        Answer result = verb(engine);
        engine.after_commit([result = std::move(result),
                             promise = std::move(promise)](const Result<void>& committed) mutable {
          promise.set_value(committed ? std::move(result) : Answer(committed.error()));
        });
      });
  if (!is_posted) {
    return Answer(Error{ErrorCode::unavailable,
                        "the queue of the engine's requests is full, or the server is stopping",
                        ""});
  }
  return answer.get();
}

Result<std::vector<Task>> EngineTasks::far_tasks(WallTime after, std::size_t limit) {
  std::vector<Task> found;
  Place from = std::max(looked_to_, last_at(Lane::due, after));
  for (std::size_t looked_at = 0; looked_at < kMostLookedAt && found.size() < limit;) {
    ASSIGN_OR_RETURN(TaskPage page,
                     run([from](Engine& engine) { return engine.far_tasks(from, kPageTasks); }));
    for (StoredTask& stored : page.tasks) {
      if (found.size() == limit) break;
      from = stored.place;
      if (stored.task.key.empty()) found.push_back(std::move(stored.task));
    }
    looked_at += page.tasks.size() + page.damaged.size();
    if (found.size() == limit) break;
    from = page.read_to.value_or(begin_of(Lane::due));
    if (!page.read_to) break;
  }
  looked_to_ = from;
  return found;
}

Result<void> EngineTasks::mark(std::span<const Task> tasks) {
  return run([tasks](Engine& engine) -> Result<void> {
    engine.mark(tasks);
    return ok();
  });
}

Result<std::size_t> EngineTasks::hand_over(std::span<const Task> tasks,
                                           const ExternalStamp& stamp) {
  return run([tasks, stamp](Engine& engine) {
    engine.set_external_stamp(stamp);
    return engine.hand_over(tasks);
  });
}

Result<std::size_t> EngineTasks::put_back(std::span<const Task> tasks) {
  return run([tasks](Engine& engine) { return engine.put_back(tasks); });
}

Result<std::vector<TaskId>> EngineTasks::marked(std::size_t limit) {
  return run([limit](Engine& engine) { return engine.marked(limit); });
}

Result<void> EngineTasks::unmark(std::span<const TaskId> ids,
                                 const std::optional<ExternalStamp>& stamp) {
  return run([ids, stamp](Engine& engine) -> Result<void> {
    TRY(engine.unmark(ids));
    if (stamp) engine.set_external_stamp(*stamp);
    return ok();
  });
}

Result<bool> EngineTasks::is_here_or_marked(TaskId id) {
  return run([id](Engine& engine) { return engine.is_here_or_marked(id); });
}

Result<ExternalStamp> EngineTasks::stamp() {
  return run([](Engine& engine) { return engine.external_stamp(); });
}

}  // namespace detent
