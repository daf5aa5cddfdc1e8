// The engine as one of the two sides of FarTasks: each call is a command on the engine's thread,
// and returns when what it changed is durable.
//
// A task with a key stays here: whoever schedules with that key again is told how the task stands,
// at once, so it must be at hand.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_thread.h"
#include "external/far_tasks.h"

namespace detent {

/// Confined to one thread, which is not the engine's.
class EngineTasks final : public LocalTasks {
 public:
  /// Has a command run with the engine and a commit after it; false, and the command is dropped,
  /// when it cannot: EngineThread::post().
  using Post = std::function<bool(EngineThread::Command)>;

  explicit EngineTasks(Post post) : post_(std::move(post)) {}
  EngineTasks(const EngineTasks&) = delete;
  EngineTasks& operator=(const EngineTasks&) = delete;

  /// Looks at so many tasks at most, then goes on from there in the next call: there may be many
  /// that stay here. So nothing found does not mean that there is nothing.
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
