// A dump as values: a copy of all queues and tasks as lines of JSON (NDJSON), in pages.
//
// Each line is an object of one member, whose name says what the line is: the settings of a queue,
// a task, a task whose record is damaged, a recurring schedule and how far it has come, and last
// where the next page begins or that this was the end. That line counts those before it, so a dump
// that was cut off is seen, and one that lost lines.
// Schedules come after all tasks: a task that one has made is in the dump, or has ended.
// dump_renderer.h writes lines, dump_parser.h reads them; docs/reference/http.md describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "task/queue_settings.h"
#include "task/recurring_schedule.h"
#include "task/task.h"

namespace detent::json {

inline constexpr std::string_view kDumpContentType = "application/x-ndjson";
/// Tasks and schedules that one page reads.
inline constexpr std::size_t kMaxDumpTasks = 1'000;
/// Every line of a dump is shorter: a payload of quotes, which are escaped, makes it 0.2 MiB.
inline constexpr std::size_t kMaxDumpLineBytes = std::size_t{1} << 20;

struct DumpedQueue {
  std::string queue;
  QueueSettings settings;

  friend bool operator==(const DumpedQueue&, const DumpedQueue&) = default;
};
/// Stands where a task would, whose record cannot be read. It is not in the dump.
struct DamagedTask {
  TaskId id;

  friend bool operator==(const DamagedTask&, const DamagedTask&) = default;
};
/// Lines of a dump, or of a page of one.
struct LineCounts {
  std::uint64_t queues = 0;
  std::uint64_t tasks = 0;
  std::uint64_t schedules = 0;
  std::uint64_t damaged = 0;  // tasks that are not in the dump

  LineCounts& operator+=(const LineCounts& more) noexcept {
    queues += more.queues;
    tasks += more.tasks;
    schedules += more.schedules;
    damaged += more.damaged;
    return *this;
  }
  friend bool operator==(const LineCounts&, const LineCounts&) = default;
};
/// The end of a page: the next one is of the tasks after this one, and the schedules after that.
struct DumpNext {
  TaskId after;
  std::string schedule = {};  // its name; empty: there were none yet
  LineCounts counts = {};     // of this page

  friend bool operator==(const DumpNext&, const DumpNext&) = default;
};
/// The end of a dump. `external` tasks are kept by another system, as of the last look there, and
/// are not in the dump.
struct DumpEnd {
  LineCounts counts = {};  // since the last DumpNext
  std::uint64_t external = 0;

  friend bool operator==(const DumpEnd&, const DumpEnd&) = default;
};
/// A task is live or dead; a live one is as it was before its lease, if it has one.
using DumpLine = std::variant<DumpedQueue, Task, DamagedTask, ScheduleRecord, DumpNext, DumpEnd>;

/// What `POST /v1/restore` did.
struct RestoreAnswer {
  struct LineError {
    std::size_t line = 0;  // of the body, from 1
    Error error;

    friend bool operator==(const LineError&, const LineError&) = default;
  };
  std::uint64_t restored = 0;         // tasks
  std::uint64_t there = 0;            // tasks that were there before
  std::uint64_t queues = 0;           // that were made
  std::uint64_t schedules = 0;        // restored
  std::uint64_t schedules_there = 0;  // that were there before
  std::vector<LineError> errors;

  friend bool operator==(const RestoreAnswer&, const RestoreAnswer&) = default;
};

}  // namespace detent::json
