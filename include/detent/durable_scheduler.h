// DurableScheduler: tasks that survive the end of the process. Handlers in the process run them.
// The tasks are stored in a folder on disk; there is no server.
//
//     auto ds = detent::DurableScheduler::open({.path = "data"}).value();
//     ds.on("order.cancel", [](const detent::TaskView& t) {
//       cancel_order(t.payload());
//       return detent::Outcome::done;
//     });
//     ds.schedule({.name = "order.cancel", .key = "o-1001"}, 30 * 24h);   // durable on return
//     ds.cancel("order.cancel", "o-1001");                               // paid
//
// A closure cannot be stored, so a task consists of a *name* and bytes. At each start the program
// calls `on` to say which function handles each name. The tasks of one name form a queue: the most
// urgent task comes first (by priority, then by due time). docs/guides/durable-tasks.md has more
// details.
//
// Guarantees. A change survives power loss once its function has returned success. A task runs **at
// least once** and never early. It is removed only after its handler has returned `done`. If the
// process dies while a handler runs, the task runs again after the next open, so a handler must
// tolerate a second run. Handlers run on the executor, so a slow handler does not delay the calls
// of other threads. A handler can get tasks as soon as `on` has registered it. Due tasks of a name
// without a handler wait. `start` says that all handlers are registered: from then on, such tasks
// become dead.
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

/// The reason why a call failed.
struct DurableError {
  /// The kind of the failure, which tells the caller how to react.
  enum class Code : std::uint8_t {
    invalid_argument,  // the request is wrong; correct it
    not_found,         // the task does not exist, or no longer exists
    conflict,          // the state of the task forbids this: its handler runs, or its key is taken
    too_large,         // over a limit, which the message states
    resource_exhausted,  // over a quota; open(): no disk space or threads; may succeed later
    unavailable,         // stopped, folder in use, or disk full or failing; try again later
    data_loss,           // stored data cannot be read back
    internal,            // a bug, or an unexpected failure of the system
  };
  Code code = Code::internal;
  std::string message = {};  // for people
};

/// Holds a T or a DurableError. The members are has_value(), value(), *, -> and error(). Without a
/// T, value(), * and -> stop the process. The class is not [[nodiscard]], because some callers need
/// no result. They can accept that a task is lost, or that a cancelled task has already run. Thread
/// safety: as T.
template <class T>
class DurableResult : public internal::ValueOr<T, DurableError> {
 public:
  using internal::ValueOr<T, DurableError>::ValueOr;
};

/// The result of a call without a value: success, or a DurableError.
template <>
class DurableResult<void> {
 public:
  DurableResult() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return DurableError{…};` reads well
  DurableResult(DurableError error) : is_done_(false), error_(std::move(error)) {}

  /// Returns true after a success.
  bool has_value() const noexcept { return is_done_; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Stops the process unless has_value().
  void value() const { DETENT_CHECK(has_value()); }
  /// Returns the error. After a success its fields have their default values.
  const DurableError& error() const noexcept { return error_; }

 private:
  bool is_done_ = true;
  DurableError error_;
};

/// A task to schedule.
struct TaskRequest {
  /// The name of the handler: 1 to 200 bytes of letters, digits and - + / ; : . $ _ ( ), not
  /// starting with a hyphen.
  std::string name = {};
  /// Empty, or a key that is unique among the tasks of this name that have not ended. At most 200
  /// bytes of UTF-8 without control characters.
  std::string key = {};
  /// Any bytes, at most 65,535.
  std::string payload = {};
  /// Among due tasks of this name, lower values run first.
  std::uint32_t priority = 1024;
  /// After this number of failed attempts the task is dead. Requires: 1 to 1,000,000.
  std::uint32_t max_attempts = 25;
  /// The wait after the first failed attempt. The wait doubles with each further attempt, up to
  /// `max_backoff`, and varies by ± 20 %. Requires: backoff is not negative, and max_backoff is at
  /// least `backoff` and at most 136 years.
  std::chrono::milliseconds backoff{1'000};
  std::chrono::milliseconds max_backoff{3'600'000};
};

/// The result of scheduling a task.
struct ScheduledTask {
  std::uint64_t id = 0;  // never reused
  WallTime due_at{};
  bool was_there = false;  // an earlier call with this key and content made the task
};

/// The complete record of a task.
struct TaskInfo {
  enum class State : std::uint8_t {
    scheduled,  // waits for its due time
    ready,      // due, and waits for its handler
    leased,     // its handler runs, or is about to run
    dead,  // its last attempt failed, or it has no handler; kept until it is cancelled or moved
    // Done. Only a server can give a queue a retention; without retention, a done task is removed.
    completed,
    cancelled,  // cancelled; kept as `completed` tasks are
  };
  std::uint64_t id = 0;
  std::string name = {};
  std::string key = {};
  std::string payload = {};
  State state = State::scheduled;
  WallTime due_at{};
  WallTime created_at{};
  std::uint32_t attempts = 0;  // number of ended attempts
  std::string error = {};      // of the last failed attempt; at most 500 bytes
};

/// A handler's view of its task. The view borrows the TaskInfo, so do not keep it after the handler
/// has returned. A test of a handler can make a view: `handler(detent::TaskView(info))`.
class TaskView {
 public:
  /// Makes a view of `task`, which must outlive the view.
  explicit TaskView(const TaskInfo& task) noexcept : task_(task) {}

  /// The fields of the TaskInfo.
  std::uint64_t id() const noexcept { return task_.id; }
  std::string_view name() const noexcept { return task_.name; }
  std::string_view key() const noexcept { return task_.key; }
  std::string_view payload() const noexcept { return task_.payload; }
  WallTime due_at() const noexcept { return task_.due_at; }
  /// The number of this attempt, counted from 1. Attempts that a crash interrupted do not count.
  std::uint32_t attempt() const noexcept { return task_.attempts + 1; }
  /// The error of the previous attempt; empty in the first attempt.
  std::string_view last_error() const noexcept { return task_.error; }

 private:
  const TaskInfo& task_;
};

/// The result of a handler. An exception counts as `retry`, with what() as the error.
enum class Outcome : std::uint8_t {
  done,   // the task is done and is removed
  retry,  // the attempt failed: try again after the backoff; dead after the last attempt
  dead,   // the attempt failed, and further attempts are useless: the task is dead
};

/// Options of a handler.
struct HandlerOptions {
  /// The largest number of tasks of this name that are with the handler, including tasks that wait
  /// for a thread of the executor. With more than 1, several threads call the handler in parallel.
  /// Requires: 1 to 1,000.
  std::size_t concurrency = 1;
};

/// Options of a DurableScheduler.
struct DurableOptions {
  /// The data folder. It is created if it does not exist; its parent folder must exist. The folder
  /// is locked while it is open. A Detent server uses the same format: it can open the folder
  /// later, and the names of tasks are then its queues.
  std::string path = {};
  /// Runs the handlers. Null: an own pool of `threads` threads (0: one thread per processor).
  /// Otherwise the executor must outlive this object. If its `execute` throws, a thread of the
  /// DurableScheduler runs the handler, and later handlers wait for it.
  Executor* executor = nullptr;
  std::size_t threads = 4;
  /// Null: the machine's clock. Otherwise the clock must outlive this object.
  Clock* clock = nullptr;
  /// Tasks that are due within `window` from now are held in memory, at most `max_loaded` tasks.
  /// Other tasks are only on disk until their due time is near. A task in memory needs about 300
  /// bytes. Requires: both are above 0.
  std::chrono::milliseconds window = std::chrono::minutes{10};
  std::size_t max_loaded = 1'000'000;
  /// How long a key keeps naming its task after the task has ended. With 0, the key of an ended
  /// task can be scheduled again immediately, with different content. The value applies to each
  /// name whose first task is scheduled with these options; other names in the folder keep the
  /// value that they have.
  ///
  /// Use a longer time if your program repeats a call after a crash, because it does not know
  /// whether the first call succeeded. The repeated call then makes no second task, even if the
  /// first task has already run. Requires: 0 to 365 days.
  std::chrono::milliseconds key_retention{0};
};

/// Stores tasks in a folder and runs their handlers. Thread-safe. Each function blocks until its
/// result is durable. All calls that wait at the same moment share one sync of the disk. Handlers
/// may call these functions.
///
/// Errors of all functions: unavailable after `stop`, while the disk fails or is full, and if too
/// many calls wait.
///
/// In a child process of fork() no thread answers. There, each function that returns a result fails
/// with unavailable. `on`, `start`, `stop` and the destructor do nothing, and leave the folder to
/// the parent. Open the folder after fork().
class DurableScheduler {
 public:
  /// The function that runs the tasks of one name.
  using Handler = UniqueFunction<Outcome(const TaskView&)>;
  /// Receives the result of schedule_async.
  using OnScheduled = UniqueFunction<void(DurableResult<ScheduledTask>)>;

  /// Opens the folder and recovers all its tasks. Overdue tasks wait until `on` registers their
  /// handler.
  ///
  /// Errors; the message names the folder:
  ///
  /// - unavailable: another process or object has the folder open, or this user may not create,
  ///   read or write it.
  /// - invalid_argument: the path is not a folder, or a newer version wrote the folder.
  /// - data_loss: the folder is damaged.
  ///
  /// Requires: each option is in its range.
  [[nodiscard]] static DurableResult<DurableScheduler> open(DurableOptions options);
  /// Calls stop().
  ~DurableScheduler();
  /// Moves the scheduler. A moved-from scheduler may only be destroyed or assigned to.
  DurableScheduler(DurableScheduler&& other) noexcept;
  DurableScheduler& operator=(DurableScheduler&& other) noexcept;

  /// Registers `handler` for the tasks of this name. It replaces an earlier handler for tasks that
  /// start later. The destructor of `handler` must not use the scheduler. Requires: `name` is valid
  /// for TaskRequest::name.
  void on(std::string name, Handler handler, HandlerOptions options = {});
  /// Says that all handlers are registered. From now on, a due task of a name without a handler
  /// becomes dead, with this reason as its error. Before `start`, such tasks wait. Idempotent.
  void start();

  /// Stores a task that is due `delay` from now. A delay of 0 or less is due immediately; the
  /// largest delay is 136 years. If the key already names a task with the same content and delay,
  /// returns that task.
  ///
  /// Errors: invalid_argument and too_large for fields outside the limits of TaskRequest; conflict
  /// if the key names a task with different content.
  template <class Rep, class Period>
  DurableResult<ScheduledTask> schedule(TaskRequest request,
                                        std::chrono::duration<Rep, Period> delay) {
    return schedule_due(std::move(request), to_delay(delay));
  }
  /// As schedule, but for a date, rounded up to milliseconds. The task follows the wall clock when
  /// the clock is stepped. Errors: also invalid_argument if the date is not in the years 1970 to
  /// 9999.
  template <class Duration>
  DurableResult<ScheduledTask> schedule_at(TaskRequest request,
                                           std::chrono::sys_time<Duration> due) {
    return schedule_due(std::move(request), to_date(due));
  }
  /// As schedule, but does not wait: many calls share one sync of the disk. `done` is called once
  /// with the result that schedule would have returned. It is called on the executor. Exception: if
  /// 50,000 results are outstanding or the scheduler has stopped, it is called inside this call.
  /// `done` must not throw.
  template <class Rep, class Period>
  void schedule_async(TaskRequest request, std::chrono::duration<Rep, Period> delay,
                      OnScheduled done) {
    schedule_due_async(std::move(request), to_delay(delay), std::move(done));
  }

  /// Removes a task. Errors: not_found; conflict while its handler runs.
  DurableResult<void> cancel(std::uint64_t id) { return cancel_task({.id = id}); }
  /// As above, for the task that has this key.
  DurableResult<void> cancel(std::string_view name, std::string_view key) {
    return cancel_task({.name = std::string(name), .key = std::string(key)});
  }

  /// Gives a task another due time, `delay` from now. With a delay of 0 or less the task is due
  /// immediately. A dead task is scheduled again with the full number of attempts. Errors: as
  /// cancel(); invalid_argument for a delay above 136 years, or for a date that schedule_at
  /// refuses.
  template <class Rep, class Period>
  DurableResult<TaskInfo> move(std::uint64_t id, std::chrono::duration<Rep, Period> delay) {
    return move_task({.id = id}, to_delay(delay));
  }
  /// As above, for the task that has this key.
  template <class Rep, class Period>
  DurableResult<TaskInfo> move(std::string_view name, std::string_view key,
                               std::chrono::duration<Rep, Period> delay) {
    return move_task({.name = std::string(name), .key = std::string(key)}, to_delay(delay));
  }
  /// As move, but for a date.
  template <class Duration>
  DurableResult<TaskInfo> move_at(std::uint64_t id, std::chrono::sys_time<Duration> due) {
    return move_task({.id = id}, to_date(due));
  }
  /// As above, for the task that has this key.
  template <class Duration>
  DurableResult<TaskInfo> move_at(std::string_view name, std::string_view key,
                                  std::chrono::sys_time<Duration> due) {
    return move_task({.name = std::string(name), .key = std::string(key)}, to_date(due));
  }

  /// Returns the record of a task. Errors: not_found; data_loss if the record cannot be read.
  DurableResult<TaskInfo> find(std::uint64_t id) { return find_task({.id = id}); }
  /// As above, for the task that has this key.
  DurableResult<TaskInfo> find(std::string_view name, std::string_view key) {
    return find_task({.name = std::string(name), .key = std::string(key)});
  }

  /// Starts no further handler and waits for running handlers. Gives all other tasks back
  /// unchanged, and closes the folder, so that it can be opened again. Idempotent; a second caller
  /// waits too. Requires: not called by a handler.
  void stop();

 private:
  class Impl;
  using Due = std::variant<std::chrono::milliseconds, WallTime>;
  /// Names a task by its id. If the id is 0, names it by name and key.
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
