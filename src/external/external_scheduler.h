// The interface of an external scheduler: a system that keeps far tasks for this server until they
// are near. There are two: Redis, and another detent server.
//
// In this folder, "here" is this server with its data folder, and "there" is the external
// scheduler.
//
// A far task needs no memory and no disk space here. put() stores the whole task there. While the
// task is there, find() can read it and cancel() can end it. A task returns in two steps: take()
// claims it, and after the task is durable here, forget() removes it there. If either side crashes
// between the two steps, the task is still in at least one of the two places. far_tasks.h decides
// which tasks are moved, and which of two copies counts.
//
// Contract:
//  1. Every call can be repeated. A repeated call has no further effect.
//  2. After an error, the caller does not know whether the call was carried out. It can have been
//     carried out for some of its tasks and not for others. No task is changed halfway. After
//     the answer to a later call, the outcome of the failed call can no longer change.
//  3. The tasks belong to one data folder, which has the name Store::identity(). While tasks are
//     there, every call of a server with another identity is refused. Such a call sees no tasks and
//     changes none. Only one server at a time owns the tasks. A server with the same identity takes
//     over from the owner. If no tasks are there, a server with any identity takes over. Calls of
//     the previous owner that arrive later change nothing. The next call of the previous owner
//     fails with `unavailable`.
//  4. find() and take() return a record exactly as put() stored it, or ErrorCode::data_loss.
//  5. take() compares due times with the times that the caller gives, and does not use the clock of
//     the external scheduler.
//
// The error of a call names the place and what to do. Its code is one of these:
//
//  - `unavailable`: The external scheduler is down or too slow, or it refused the call. Try again.
//  - `resource_exhausted`: It is full.
//  - `invalid_argument`: Its settings could lose tasks, the password is wrong, or it keeps tasks of
//    another data folder.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "task/task.h"

namespace detent {

/// `being_handed_back`: take() has claimed the task and forget() has not removed it yet, so
/// cancel() changed nothing. The task is already here, or will be soon.
enum class CancelOutcome : std::uint8_t { cancelled, being_handed_back, not_there };

struct TakeRequest {
  WallTime now{};
  WallTime until{};  // tasks due at or before this
  std::size_t limit = 1;
  /// A task that was taken is not given again before this time has passed, unless it is put again.
  std::chrono::milliseconds claim{60'000};
};

struct Taken {
  std::vector<Task> tasks;  // earliest first, then by id
  /// One error (data_loss) for each record that could not be read. The external scheduler keeps the
  /// bytes of such a record separately, and take() does not return it again.
  std::vector<Error> damaged;
};

/// Reads a number that stamp() has stored. Returns 0 for every other text.
inline std::uint64_t parse_generation(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read_to == end ? number : 0;
}

/// For use by one thread. Each call blocks until the answer comes or the time limit of the call
/// ends.
class ExternalScheduler {
 public:
  virtual ~ExternalScheduler() = default;

  /// Returns whether it can keep this task. If not, the task must stay here.
  virtual bool keeps(const Task&) const { return true; }
  /// Stores these tasks. A task replaces an older one with the same id, and ends a claim on it.
  /// Requires: validate() and keeps() accept each task, and its due time is in the years 1970 …
  /// 9999.
  virtual Result<void> put(std::span<const Task> tasks) = 0;
  virtual Result<CancelOutcome> cancel(TaskId id) = 0;
  /// Returns the task with this id, also if it is claimed; std::nullopt if it is not there. Errors:
  /// also data_loss.
  virtual Result<std::optional<Task>> find(TaskId id) = 0;
  /// Claims at most `limit` tasks (at least 1) that are due at or before `until`. A task is also
  /// taken if its claim has ended by `now`, or if its claim ends later than a claim that is made at
  /// `now`: such a claim was made while the clock was wrong.
  virtual Result<Taken> take(const TakeRequest& request) = 0;
  /// Removes these tasks, claimed or not. An id without a task is not an error.
  virtual Result<void> forget(std::span<const TaskId> ids) = 0;
  /// The number of tasks that it keeps, including the claimed ones.
  virtual Result<std::uint64_t> size() = 0;

  /// Replaces the stored generation `before` by a larger number. far_tasks.h uses the number to
  /// notice a loss: as long as the number is there, all changes of earlier calls are there, too.
  /// Errors: also unavailable, if the stored number is not `before`, because changes were just
  /// lost.
  virtual Result<void> stamp(std::uint64_t before, std::uint64_t generation) = 0;
  /// The number that stamp() stored last; 0 if there is none.
  virtual Result<std::uint64_t> generation() = 0;
  /// The shell command with which an operator can store this generation.
  virtual std::string stamp_command(std::uint64_t generation) const = 0;
};

}  // namespace detent
