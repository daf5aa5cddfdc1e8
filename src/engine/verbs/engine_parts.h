// The parts of an engine, which all groups of verbs share, and the base of these groups.
//
// Each part has its own state and invariants, and uses only parts above it.
// Confined to the thread of the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "detent/clock.h"
#include "engine/hand_out/hand_out.h"
#include "engine/queues/hand_out_turns.h"
#include "engine/queues/lateness_account.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/commit_writer.h"
#include "engine/records/task_news.h"
#include "engine/records/task_records.h"
#include "engine/values/answers.h"
#include "engine/values/engine_time.h"
#include "engine/values/engine_values.h"
#include "engine/verbs/transitions.h"
#include "engine/window/load_window.h"
#include "engine/window/loaded_tasks.h"
#include "engine/window/orphan_look.h"
#include "store/store.h"

namespace detent {

struct EngineParts {
  /// The store and the clock must outlive the parts.
  EngineParts(Store& its_store, Clock& its_clock, EngineOptions its_options);
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;

  /// Every verb begins with this. Errors: the error after which the engine acknowledges no request.
  Result<void> expect_working() const {
    if (const std::optional<Error>& error = writer.stopped_by()) return *error;
    return ok();
  }
  /// Whether this engine has the part of the queue that a task with this key ("": no key) belongs
  /// to (EngineOptions::is_here). Errors: unavailable.
  Result<void> expect_here(const std::string& queue, std::string_view key) const {
    return options.is_here ? expect_here(queue, partitions_of(queue), key) : ok();
  }
  /// The same for a queue that will have this number of partitions.
  Result<void> expect_here(const std::string& queue, std::uint32_t partitions,
                           std::string_view key) const;
  /// The number of partitions of a queue; 1 if the queue does not exist.
  std::uint32_t partitions_of(const std::string& name) const;

  // Constant after the recovery.
  Store& store;
  Clock& clock;
  const EngineOptions options;
  std::uint64_t epoch = 0;

  EngineTime time;
  QueueRegistry queues;
  HandOutTurns turns;
  TaskNews news;
  LatenessAccount lateness;
  CommitWriter writer;
  TaskRecords records;
  LoadedTasks tasks;
  LoadWindow window;
  Answers answers;
  HandOut hand_out;
  Transitions transitions;
  OrphanLook orphans;
};

/// The base of a group of verbs. A group has no state of its own.
class VerbGroup {
 public:
  VerbGroup(const VerbGroup&) = delete;
  VerbGroup& operator=(const VerbGroup&) = delete;

 protected:
  /// `parts` must outlive the group.
  explicit VerbGroup(EngineParts& parts) noexcept : parts_(parts) {}
  ~VerbGroup() = default;

  EngineParts& parts_;
};

}  // namespace detent
