// The engine, as the LocalTasks of FarTasks. Each call runs as a command on the engine's thread,
// and returns after its change is durable.
//
// Tasks with keys are never handed over. If a client schedules with the same key again, the engine
// must answer immediately with the state of the first task, so this task must be here.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/thread/engine_thread.h"
#include "external/far_tasks.h"

namespace detent {

/// For use by one thread, which is not the engine's thread.
class EngineTasks final : public LocalTasks {
 public:
  /// Runs a command on the engine's thread and commits after it, as EngineThread::post(). Returns
  /// false if it cannot; the command is then dropped.
  using Post = std::function<bool(EngineThread::Command)>;

  explicit EngineTasks(Post post) : post_(std::move(post)) {}
  EngineTasks(const EngineTasks&) = delete;
  EngineTasks& operator=(const EngineTasks&) = delete;

  /// The most tasks that one call of far_tasks() reads. Many of them may have to stay here, so an
  /// empty result does not mean that there are no far tasks. The next call continues from here.
  static constexpr std::size_t kMostLookedAt = 10'000;

  Result<std::vector<Task>> far_tasks(WallTime after, std::size_t limit) override;
  Result<void> mark(std::span<const Task> tasks) override;
  Result<std::size_t> hand_over(std::span<const Task> tasks, const ExternalStamp& stamp) override;
  Result<std::size_t> put_back(std::span<const Task> tasks) override;
  Result<std::vector<TaskId>> marked(std::size_t limit) override;
  Result<void> unmark(std::span<const TaskId> ids,
                      const std::optional<ExternalStamp>& stamp) override;
  Result<bool> is_here_or_marked(TaskId id) override;
  Result<ExternalStamp> stamp() override;

 private:
  template <class Verb>
  auto run(Verb verb);

  Post post_;
  Place looked_to_ = begin_of(Lane::due);
};

}  // namespace detent
