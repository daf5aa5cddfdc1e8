#include "tests/durability/task_history.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"

namespace detent {

namespace {

std::string describe(const TaskHistory::State& state) {
  if (!state) return "none";
  return "{queue " + state->queue + ", " + std::to_string(state->payload.size()) +
         " bytes, priority " + std::to_string(state->priority) + ", attempts " +
         std::to_string(state->attempts) + (state->is_dead ? ", dead" : ", due ") +
         (state->is_dead ? "" : std::to_string(state->due_at.time_since_epoch().count())) + "}";
}

std::string contradiction(TaskId id, const TaskHistory::State& known,
                          const TaskHistory::State& found) {
  const std::string what = !found ? "lost: " : !known ? "came back: " : "changed: ";
  return what + to_string(id) + " was " + describe(known) + ", is " + describe(found);
}

}  // namespace

KnownTask known_task(const TaskSnapshot& view) {
  const bool is_dead = view.state == TaskState::dead;
  return {.queue = view.task.queue,
          .payload = view.task.payload.data,
          .priority = view.task.rules.priority,
          .attempts = view.task.attempts,
          .is_dead = is_dead,
          .due_at = is_dead ? WallTime{} : view.task.due_at};
}

std::uint64_t TaskHistory::answered(TaskId id, State state) {
  in_doubt_[++last_change_] = {.id = id, .state = std::move(state)};
  return last_change_;
}

void TaskHistory::acknowledged(std::uint64_t change) {
  const auto it = in_doubt_.find(change);
  DETENT_CHECK(it != in_doubt_.end());
  acknowledged_[it->second.id] = std::move(it->second.state);
  in_doubt_.erase(it);
}

TaskHistory::State TaskHistory::latest(TaskId id) const {
  const auto last = std::find_if(in_doubt_.rbegin(), in_doubt_.rend(),
                                 [id](const auto& change) { return change.second.id == id; });
  if (last != in_doubt_.rend()) return last->second.state;
  const auto it = acknowledged_.find(id);
  return it == acknowledged_.end() ? std::nullopt : it->second;
}

std::vector<TaskId> TaskHistory::present() const {
  std::map<TaskId, bool> is_present;
  for (const auto& [id, state] : acknowledged_) is_present[id] = state.has_value();
  for (const auto& [number, change] : in_doubt_) is_present[change.id] = change.state.has_value();
  std::vector<TaskId> ids;
  for (const auto& [id, present] : is_present) {
    if (present) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> TaskHistory::compare(const std::function<State(TaskId)>& look_up) {
  std::map<TaskId, State> in_doubt;
  for (auto& [number, change] : in_doubt_) in_doubt[change.id] = std::move(change.state);
  in_doubt_.clear();
  std::vector<std::string> found;
  for (auto& [id, known] : acknowledged_) {
    if (in_doubt.contains(id)) continue;
    State is = look_up(id);
    if (is != known) found.push_back(contradiction(id, known, is));
    known = std::move(is);
  }
  std::size_t before = 0;  // tasks in the state before the last batch; `after`: after it
  std::size_t after = 0;
  for (const auto& [id, after_batch] : in_doubt) {
    const auto it = acknowledged_.find(id);
    const State known = it == acknowledged_.end() ? std::nullopt : it->second;
    State is = look_up(id);
    if (is != known && is != after_batch) found.push_back(contradiction(id, known, is));
    if (is != known && is == after_batch) ++after;
    if (is == known && is != after_batch) ++before;
    // An id that was never acknowledged and does not exist may be given to another task.
    if (it != acknowledged_.end() || is) acknowledged_[id] = std::move(is);
  }
  if (before > 0 && after > 0) {
    found.push_back("torn: of the last batch " + std::to_string(after) + " tasks are there, " +
                    std::to_string(before) + " are not");
  }
  return found;
}

}  // namespace detent
