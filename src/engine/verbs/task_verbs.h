// The verbs of one task: schedule, restore, read, change, cancel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"
#include "task/request.h"

namespace detent {

class TaskVerbs : public VerbGroup {
 public:
  using VerbGroup::VerbGroup;

  /// Accepts a task and gives it an id. If the key already stands for a task, the answer is that
  /// task in its present state, and no task is added. With another `on_key` than `keep`, a task
  /// that is not leased is changed first. The answer has no payload. Errors: as
  /// validate(ScheduleRequest); conflict if `on_key` is `keep` and the task was requested with
  /// other content; resource_exhausted if the queue is at its quota; as expect_intake().
  Result<TaskSnapshot> schedule(ScheduleRequest request);
  /// Errors: the error of the TaskIntake while it is closed. schedule() checks it. restore() does
  /// not, because it also brings tasks back from an external scheduler.
  Result<void> expect_intake() const;
  /// Copies a task from another store, with its id and state. Returns false, and changes nothing,
  /// if the task already exists. If the key stands for another task, the key stays with that task.
  /// A key whose task was set aside as damaged counts as free. Errors: as
  /// validate(ScheduleRequest). Conflict if the id belongs to another task: of another queue, or
  /// with another creation time. invalid_argument if no task can have the id, if the task has
  /// ended, or if this engine has no part of its queue.
  Result<bool> restore(Task task);
  /// Errors: not_found.
  Result<TaskSnapshot> get(TaskId id);
  /// The live or dead task of a key. Errors: not_found; unavailable as for set_queue().
  Result<TaskId> id_of_key(const std::string& queue, std::string_view key);
  // Prepares one verb for many tasks: reads the records that the verb will need in one call of the
  // store. The verbs then need few reads of their own until the next commit or the next
  // read_ahead(). If a record cannot be read, the verb reports the error. Memory: these tasks.
  void read_ahead(std::span<const TaskId> ids);
  /// The same for the tasks of these keys, and for the records of the keys.
  void read_ahead(const std::string& queue, std::span<const std::string> keys);
  /// Removes a task. Errors: not_found; conflict if the task is leased or has ended.
  Result<void> cancel(TaskId id);
  /// Gives a task another due time. The answer shows the task after the move. A dead task becomes
  /// live with all its attempts, as with redrive(). Durable: the new due time. Errors: as
  /// validate(ScheduleRequest) for `due`; not_found; conflict if the task is leased.
  Result<TaskSnapshot> move(TaskId id, const Due& due);
  /// Changes the given fields of a task. If a due time is given, the task moves as with move().
  /// Otherwise it keeps its state: a dead task stays dead. Only its place in the order of its queue
  /// may change. The key still stands for the task as it was first requested. Durable. Errors: as
  /// validate(TaskEdit); not_found; conflict if the task is leased; resource_exhausted if a longer
  /// payload exceeds the quota of the queue.
  Result<TaskSnapshot> edit(TaskId id, const TaskEdit& edit);
  /// Makes a task due now. A ready task keeps its place in the order of its queue. A dead task
  /// becomes live. Durable: the due time, if it changed. Errors: not_found; conflict if the task is
  /// leased.
  Result<TaskSnapshot> run_now(TaskId id);
  /// Makes a dead task ready, due now, with all its attempts. The task keeps its last error until
  /// the next error. Durable: the new state. Errors: not_found; conflict if the task is not dead.
  Result<TaskSnapshot> redrive(TaskId id);

 private:
  friend class ScheduleVerbs;  // for accept(): its tasks belong to this engine whatever their keys

  /// Accepts a request that is valid and belongs to this engine.
  Result<TaskSnapshot> accept(ScheduleRequest request);
  Result<std::optional<KeyRecord>> record_of_key(const Queue& queue, std::string_view key);
  Result<std::optional<TaskSnapshot>> find_by_key(const ScheduleRequest& request, Queue& queue);
  Result<std::optional<FoundTask>> holder_of_key(const ScheduleRequest& request,
                                                 const Queue& queue);
  Result<TaskSnapshot> change_holder(FoundTask found, ScheduleRequest request, Queue& queue);
  void take_key_from(FoundTask found, Queue& queue);
  Deadline deadline_of(const ScheduleRequest& request, WallTime created_at) const;
  Result<void> replace_payload(Queue& queue, Task& task, Payload payload);
  Result<std::uint64_t> claim_key(const Queue& queue, Task& task);
  Result<void> check_quota(const Queue& queue, std::size_t payload_bytes) const;
  Result<void> check_bytes(const Queue& queue, std::size_t more) const;
};

}  // namespace detent
