// Writes and reads the lines of a dump. A dump is a copy of all queues, tasks and schedules as
// lines of JSON (NDJSON), in pages.
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
// created is already in the dump or has ended. docs/reference/http.md describes the lines.
//
// Lines are read strictly. A field that is unknown, repeated, missing or out of range is an error
// that names the field. validate() checks the other limits of queue names, keys and rules, as for
// every task.
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

/// Appends the line and a line feed. The text before the line feed has no line breaks.
/// parse_dump_line() reads it back into an equal value, which is written as the same bytes again.
void append_dump_line(std::string& out, const DumpLine& line);
/// Errors: invalid_argument. The field is a path from the outermost member, such as
/// "task.priority".
Result<DumpLine> parse_dump_line(std::string_view text);

/// The kind of a line, which is the name of its main member. Checks only that the line is one JSON
/// object. Use it to pass lines on: it accepts fields that a newer program adds to a task.
enum class DumpLineKind : std::uint8_t { queue, task, damaged, schedule, next, end };
Result<DumpLineKind> kind_of_dump_line(std::string_view text);
void count_line(LineCounts& counts, DumpLineKind kind) noexcept;

/// A line of a body. Numbers start at 1, and blank lines count.
struct NumberedLine {
  std::size_t number = 0;
  std::string_view text;
};
/// Returns the lines that are not blank. They point into `body`. Errors: too_large if there are
/// more than `most` lines.
Result<std::vector<NumberedLine>> take_numbered_lines(std::string_view body, std::size_t most);

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

std::string render_restored(const RestoreAnswer& answer);
Result<RestoreAnswer> parse_restored(std::string_view body);

}  // namespace detent::json
