// The verbs of a queue: its settings, its pause, and the verbs over all its tasks.
//
// A verb over all tasks goes through the lanes of the queue and the due order in steps.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"
#include "task/queue_settings.h"

namespace detent {

class QueueVerbs : public VerbGroup {
 public:
  using VerbGroup::VerbGroup;

  /// Sets all settings of a queue, and creates the queue if necessary. The settings also apply to
  /// its present tasks, except that key retention and retention apply to tasks that end from now
  /// on. Durable. Errors: as validate(QueueSettings), or for the name; conflict if the queue was
  /// created with another number of partitions; unavailable if the queue is not on this engine
  /// (EngineOptions::is_here).
  Result<void> set_queue(const std::string& name, const QueueSettings& settings);
  /// Removes an empty queue and its settings. Errors: not_found; conflict while the queue has
  /// tasks.
  Result<void> remove_queue(const std::string& name);
  /// Pauses a queue for `length`, and replaces an earlier pause. 0 ends the pause. Creates the
  /// queue if necessary. The pause is in memory, not in the settings. Errors: as set_queue(),
  /// without conflict.
  Result<void> pause_for(const std::string& name, std::chrono::milliseconds length);

  /// One step of redrive() for the dead tasks of a queue, oldest first, at most `limit`. A step
  /// changes at most 1 000 tasks. While the answer has `next`, call again with it in a later turn.
  /// A damaged record is set aside. Durable: each step separately. Errors: not_found if the queue
  /// never had a task.
  Result<QueueStep> redrive(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// One step of removing the dead, scheduled and ready tasks of a queue. Leased tasks stay, and
  /// tasks accepted after the first step stay. Steps, cursor and errors are as for redrive() of a
  /// queue. A purge reads the due order of all queues from its start until this queue has no more
  /// tasks there. So a purge of a small queue among n tasks costs up to n reads, spread over steps.
  /// If a task moves, or its lease ends, at a place behind the cursor, the task may stay.
  Result<QueueStep> purge(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// One step of making the scheduled tasks of a queue due now, in the order of their due times. It
  /// reads the due order as purge() does. Steps, cursor and errors are as for redrive() of a queue.
  Result<QueueStep> run_now(const std::string& queue, std::size_t limit, QueueCursor from = {});

 private:
  template <class Visit>
  Result<QueueStep> sweep(Queue& queue, std::size_t limit, QueueCursor from, Place until,
                          Visit visit);
};

}  // namespace detent
