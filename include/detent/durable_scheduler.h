// DurableScheduler: tasks that outlive the process, run by handlers inside it. A folder on disk, no
// server.
//
//     auto ds = detent::DurableScheduler::open({.path = "data"}).value();
//     ds.on("order.cancel", [](const detent::TaskView& t) {
//       cancel_order(t.payload());
//       return detent::Outcome::done;
//     });
//     ds.schedule({.name = "order.cancel", .key = "o-1001"}, 30 * 24h);   // durable on return
//     ds.cancel("order.cancel", "o-1001");                               // paid
//
// A closure cannot be stored, so a task is a *name* and bytes; the program says by `on` which
// function a name stands for, each time it starts. A name is a queue of tasks: most urgent first
// (priority, then due time). docs/guides/durable-tasks.md tells more.
//
// Promises. What a verb answered survives power loss. A task runs **at least once**, never early,
// and is removed only after its handler has returned `done`: when the process dies while a handler
// runs, it runs again after the next open, so a handler must bear that. Handlers run on the
// executor, never on a thread that others wait for. They are called with the names' tasks from `on`
// onwards; a task whose name has no handler waits, until `start` says that all handlers are there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/internal/saturate.h"
#include "detent/internal/value_or.h"
#include "detent/unique_function.h"

namespace detent {

/// Why a verb was not done.
struct DurableError {
  /// Says what the caller can do about it.
  enum class Code : std::uint8_t {
    invalid_argument,    // the request is wrong; fix it
    not_found,           // there is no such task (any more)
    conflict,            // it is in a state that forbids this: its handler runs, its key is taken
    too_large,           // over a limit that the message states
    resource_exhausted,  // over a quota; open(): out of space or threads. Later may succeed
    unavailable,         // cannot now: stopped, the folder in use, the disk full or failed; retry
    data_loss,           // what was stored cannot be read back
    internal,            // a bug or an unexpected failure of the system
  };
  Code code = Code::internal;
  std::string message = {};  // for people
};

/// A T, or why there is none: has_value(), value(), *, -> and error(). value(), * and -> stop the
/// process when there is none. Not [[nodiscard]]: whoever schedules something that may as well be
/// lost, or cancels what may have run, need not look. A value: as thread-safe as T.
template <class T>
class DurableResult : public internal::ValueOr<T, DurableError> {
 public:
  using internal::ValueOr<T, DurableError>::ValueOr;
};

/// Whether a verb was done, or why not.
template <>
class DurableResult<void> {
 public:
  DurableResult() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return DurableError{…};` reads well
  DurableResult(DurableError error) : is_done_(false), error_(std::move(error)) {}

  bool has_value() const noexcept { return is_done_; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Requires: has_value(); otherwise it stops the process.
  void value() const { DETENT_CHECK(has_value()); }
  /// Empty when it was done.
  const DurableError& error() const noexcept { return error_; }

 private:
  bool is_done_ = true;
  DurableError error_;
};

/// A task to be scheduled.
struct TaskRequest {
  /// Which handler runs it: 1 … 200 bytes of letters, digits and - + / ; . $ _ ( ), not starting
  /// with a hyphen.
  std::string name = {};
  /// Unique among the tasks of this name that have not ended, or empty. At most 200 bytes of UTF-8
  /// without control characters.
  std::string key = {};
  /// Any bytes, at most 65 535.
  std::string payload = {};
  /// Lower is more urgent, among those of this name that are due.
  std::uint32_t priority = 1024;
  /// After so many that failed the task is dead. 1 … 1 000 000.
  std::uint32_t max_attempts = 25;
  /// The wait after the first attempt that failed; it doubles with each, up to `max_backoff`, and
  /// varies by ± 20 %. Not negative, `max_backoff` at least `backoff` and at most 136 years.
  std::chrono::milliseconds backoff{1'000};
  std::chrono::milliseconds max_backoff{3'600'000};
};

/// What `schedule` has stored.
struct ScheduledTask {
  std::uint64_t id = 0;  // never used again
  WallTime due_at{};
  bool was_there = false;  // an earlier schedule() with this key and content made it
};

/// All there is to know about a task.
struct TaskInfo {
  enum class State : std::uint8_t {
    scheduled,  // for its due time
    ready,      // due; waits for its handler
    leased,     // its handler runs, or is about to
    dead,       // its last attempt failed, or it has no handler; kept until cancelled or moved
    completed,  // kept for a while, in queues that a server was told to keep
    cancelled,  // likewise
  };
  std::uint64_t id = 0;
  std::string name = {};
  std::string key = {};
  std::string payload = {};
  State state = State::scheduled;
  WallTime due_at{};
  WallTime created_at{};
  std::uint32_t attempts = 0;  // that have ended
  std::string error = {};      // of the last one that failed; at most 500 bytes
};

/// What a handler sees of its task. Borrows the TaskInfo: not to be kept. A test of a handler makes
/// one itself: `handler(detent::TaskView(info))`.
class TaskView {
 public:
  explicit TaskView(const TaskInfo& task) noexcept : task_(task) {}

  std::uint64_t id() const noexcept { return task_.id; }
  std::string_view name() const noexcept { return task_.name; }
  std::string_view key() const noexcept { return task_.key; }
  std::string_view payload() const noexcept { return task_.payload; }
  WallTime due_at() const noexcept { return task_.due_at; }
  /// Counted from 1. One that a crash cut short does not count.
  std::uint32_t attempt() const noexcept { return task_.attempts + 1; }
  /// Of the attempt before; empty in the first.
  std::string_view last_error() const noexcept { return task_.error; }

 private:
  const TaskInfo& task_;
};

/// What a handler made of its task. Throwing is `retry` with what() as the error.
enum class Outcome : std::uint8_t {
  done,   // the task is removed
  retry,  // the attempt failed: again after the backoff; dead when it was the last
  dead,   // it failed, and no other will do better
};

struct HandlerOptions {
  /// How many tasks of this name may be in the hands of the handler at a time, those that wait for
  /// a thread of the executor included. With more than 1 the handler is called by several threads
  /// at once. Requires: 1 … 1 000.
  std::size_t concurrency = 1;
};

struct DurableOptions {
  /// The data folder: made if it is missing, its parent must exist. It is locked while it is open;
  /// the server's folder has the same format.
  std::string path = {};
  /// Where handlers run. Null: a pool of its own of `threads` (0: as many as processors). Otherwise
  /// it must outlive this. If its `execute` throws, a thread of the DurableScheduler runs the
  /// handler, and the handlers after it wait.
  Executor* executor = nullptr;
  std::size_t threads = 4;
  /// Null: the machine's. Otherwise it must outlive this.
  Clock* clock = nullptr;
  /// How far ahead of now tasks are held in memory, and how many at most; about 300 bytes each.
  /// Requires: positive.
  std::chrono::milliseconds window = std::chrono::minutes{10};
  std::size_t max_loaded = 1'000'000;
  /// How long a key still stands for its task after that has ended, in names that are new to the
  /// folder. None: a key that was cancelled, or whose task has run, can be scheduled with another
  /// content. With some, a call that is repeated because the process died before it saw the answer
  /// makes no second task even when the first has run meanwhile. Requires: 0 … 365 days.
  std::chrono::milliseconds key_retention{0};
};

/// Thread-safe. Each verb blocks until its answer is durable (one sync of the disk, shared by all
/// that wait at that moment) and may be called from handlers. Errors of all verbs: unavailable once
/// stopped, while the disk fails or is full, and when too many calls wait.
///
/// In a child process of fork() no thread answers. There, each verb is unavailable; `on`, `start`,
/// `stop` and the destructor do nothing, and leave the folder to the parent. Open it after fork().
class DurableScheduler {
 public:
  using Handler = UniqueFunction<Outcome(const TaskView&)>;
  using OnScheduled = UniqueFunction<void(DurableResult<ScheduledTask>)>;

  /// Opens the folder and recovers all tasks in it; those that are overdue wait for their `on`.
  /// Errors: unavailable when another process or object has it open, or this user may not make,
  /// read or write it; invalid_argument when it is no folder or a newer version wrote it; data_loss
  /// when it is damaged. The message names the folder. Requires: the options as they say.
  [[nodiscard]] static DurableResult<DurableScheduler> open(DurableOptions options);
  /// stop().
  ~DurableScheduler();
  /// One that was moved from may only be destroyed or assigned to.
  DurableScheduler(DurableScheduler&& other) noexcept;
  DurableScheduler& operator=(DurableScheduler&& other) noexcept;

  /// Has tasks of this name run by `handler` from now on, or in place of the one before for those
  /// that begin later. Destroying `handler` must not use the scheduler. Requires: a name as
  /// TaskRequest has it.
  void on(std::string name, Handler handler, HandlerOptions options = {});
  /// Says that all handlers are there: from now on a due task of a name without one is dead, with
  /// that as its error, instead of waiting. Never called, such tasks wait. Idempotent.
  void start();

  /// Stores a task that is due `delay` from now (at once when that is not positive; at most 136
  /// years). A key that stands for a task with the same content and delay answers that task.
  /// Errors: invalid_argument, too_large: as TaskRequest says; conflict when the key stands for
  /// another.
  template <class Rep, class Period>
  DurableResult<ScheduledTask> schedule(TaskRequest request,
                                        std::chrono::duration<Rep, Period> delay) {
    return schedule_due(std::move(request), to_delay(delay));
  }
  /// The same for a date, rounded up to milliseconds; it follows the wall clock when that is
  /// stepped. 1970 … 9999.
  template <class Duration>
  DurableResult<ScheduledTask> schedule_at(TaskRequest request,
                                           std::chrono::sys_time<Duration> due) {
    return schedule_due(std::move(request), to_date(due));
  }
  /// schedule() that does not wait: many of them share a sync. `done` is called once with what it
  /// would have answered: on the executor, or in this call when 50 000 are unanswered or it has
  /// stopped. It must not throw.
  template <class Rep, class Period>
  void schedule_async(TaskRequest request, std::chrono::duration<Rep, Period> delay,
                      OnScheduled done) {
    schedule_due_async(std::move(request), to_delay(delay), std::move(done));
  }

  /// Removes a task. Errors: not_found; conflict while its handler runs.
  DurableResult<void> cancel(std::uint64_t id) { return cancel_task({.id = id}); }
  DurableResult<void> cancel(std::string_view name, std::string_view key) {
    return cancel_task({.name = std::string(name), .key = std::string(key)});
  }

  /// Gives a task another due time; 0: it runs now. One that was dead lives again, with all its
  /// attempts before it. Errors: as cancel(); invalid_argument.
  template <class Rep, class Period>
  DurableResult<TaskInfo> move(std::uint64_t id, std::chrono::duration<Rep, Period> delay) {
    return move_task({.id = id}, to_delay(delay));
  }
  template <class Rep, class Period>
  DurableResult<TaskInfo> move(std::string_view name, std::string_view key,
                               std::chrono::duration<Rep, Period> delay) {
    return move_task({.name = std::string(name), .key = std::string(key)}, to_delay(delay));
  }
  /// The same for a date.
  template <class Duration>
  DurableResult<TaskInfo> move_at(std::uint64_t id, std::chrono::sys_time<Duration> due) {
    return move_task({.id = id}, to_date(due));
  }
  template <class Duration>
  DurableResult<TaskInfo> move_at(std::string_view name, std::string_view key,
                                  std::chrono::sys_time<Duration> due) {
    return move_task({.name = std::string(name), .key = std::string(key)}, to_date(due));
  }

  /// Errors: not_found; data_loss when it cannot be read.
  DurableResult<TaskInfo> find(std::uint64_t id) { return find_task({.id = id}); }
  DurableResult<TaskInfo> find(std::string_view name, std::string_view key) {
    return find_task({.name = std::string(name), .key = std::string(key)});
  }

  /// Begins no further handler, waits for those that run, gives the other tasks back unharmed and
  /// closes the folder: another may open it. Idempotent; a second caller waits as well.
  /// Requires: not called by a handler.
  void stop();

 private:
  class Impl;
  using Due = std::variant<std::chrono::milliseconds, WallTime>;
  /// A task by its id, or with id 0 by name and key.
  struct Target {
    std::uint64_t id = 0;
    std::string name = {};
    std::string key = {};
  };

  explicit DurableScheduler(std::unique_ptr<Impl> impl) noexcept;

  template <class Rep, class Period>
  static Due to_delay(std::chrono::duration<Rep, Period> delay) noexcept {
    return std::chrono::ceil<std::chrono::milliseconds>(internal::saturate_to_nanoseconds(delay));
  }
  template <class Duration>
  static Due to_date(std::chrono::sys_time<Duration> due) noexcept {
    return internal::ceil_to_wall_time(due);
  }

  DurableResult<ScheduledTask> schedule_due(TaskRequest request, Due due);
  void schedule_due_async(TaskRequest request, Due due, OnScheduled done);
  DurableResult<void> cancel_task(Target target);
  DurableResult<TaskInfo> move_task(Target target, Due due);
  DurableResult<TaskInfo> find_task(Target target);

  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
