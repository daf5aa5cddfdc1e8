// The lines of a dump as values. A dump is a copy of all queues, tasks and schedules as lines of
// JSON (NDJSON), in pages.
//
// Each line is a JSON object. Its main member names the kind of the line:
// - `queue`: the settings of a queue;
// - `task`: a task;
// - `damaged`: the id of a task with an unreadable record;
// - `schedule`: a recurring schedule and its progress;
// - `next`: the end of a page, and the start of the next page;
// - `end`: the end of the dump.
//
// The lines `next` and `end` count the lines before them, so a reader notices a truncated dump and
// missing lines. Schedules come after all tasks: when a schedule is dumped, each task that it has
// created is already in the dump or has ended. dump_renderer.h writes the lines and dump_parser.h
// reads them. docs/reference/http.md describes them.
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
/// The largest number of tasks and schedules in one page.
inline constexpr std::size_t kMaxDumpTasks = 1'000;
/// Every line of a dump is shorter than this. The longest line, a payload of escaped quotes, has
/// about 0.2 MiB.
inline constexpr std::size_t kMaxDumpLineBytes = std::size_t{1} << 20;

struct DumpedQueue {
  std::string queue;
  QueueSettings settings;

  friend bool operator==(const DumpedQueue&, const DumpedQueue&) = default;
};
/// Takes the place of a task with an unreadable record. The task itself is not in the dump.
struct DamagedTask {
  TaskId id;

  friend bool operator==(const DamagedTask&, const DamagedTask&) = default;
};
/// The number of lines of each kind, in a dump or in one page.
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
/// The end of a page. The next page begins with the tasks after `after`, and then with the
/// schedules after `schedule`.
struct DumpNext {
  TaskId after;
  std::string schedule = {};  // a schedule's name; empty if no schedule has been dumped
  LineCounts counts = {};     // of this page

  friend bool operator==(const DumpNext&, const DumpNext&) = default;
};
/// The end of a dump. `external` is the last known number of tasks that an external scheduler
/// keeps. These tasks are not in the dump.
struct DumpEnd {
  LineCounts counts = {};  // since the last DumpNext
  std::uint64_t external = 0;

  friend bool operator==(const DumpEnd&, const DumpEnd&) = default;
};
/// One line. Its task is live or dead. A leased task is dumped as it was before its lease.
using DumpLine = std::variant<DumpedQueue, Task, DamagedTask, ScheduleRecord, DumpNext, DumpEnd>;

/// The answer of `POST /v1/restore`.
struct RestoreAnswer {
  struct LineError {
    std::size_t line = 0;  // number of the line in the body, from 1
    Error error;

    friend bool operator==(const LineError&, const LineError&) = default;
  };
  std::uint64_t restored = 0;         // tasks
  std::uint64_t there = 0;            // tasks that existed before
  std::uint64_t queues = 0;           // created queues
  std::uint64_t schedules = 0;        // restored schedules
  std::uint64_t schedules_there = 0;  // schedules that existed before
  std::vector<LineError> errors;

  friend bool operator==(const RestoreAnswer&, const RestoreAnswer&) = default;
};

}  // namespace detent::json
