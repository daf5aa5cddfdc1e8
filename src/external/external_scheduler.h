// Another system that keeps far tasks for us until they are near: Redis, or another detent server.
//
// A task that lies there costs nothing here. It is put there as a whole, may be looked for and
// cancelled, and is taken back in two moves: take() claims it, and once it is durable here forget()
// removes it there. So whoever crashes in between, it is still in one of the two places.
// far_tasks.h decides which tasks go, and which of two copies counts.
//
// Contract:
//  1. Every call may be repeated: what it did already it does not do twice.
//  2. After an error it is unknown whether the call was carried out, for all of its tasks or some,
//     each as a whole. Once a later call has been answered, that does not change any more.
//  3. One data folder, by its Store::identity(): a server with another is refused, whatever it
//     calls, while tasks lie there, and nothing of them is changed or shown. One server at a time:
//     another with that folder, or with any where no task lies, takes over, and what the one before
//     still has under way changes nothing any more; its next such call fails with `unavailable`.
//  4. A record reads back as it was put, or as ErrorCode::data_loss: never as something else.
//  5. Due times are compared with what the caller says; the other system's clock is not used.
// Errors of all calls: `unavailable` (down, too slow, not willing: it may be tried again),
// `resource_exhausted` (full), `invalid_argument` (set up in a way that loses tasks, a wrong
// password, tasks of another data folder); the message says where and what to do.
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

/// `being_handed_back`: it was taken and not forgotten yet, nothing changed; it is here, or comes.
enum class CancelOutcome : std::uint8_t { cancelled, being_handed_back, not_there };

struct TakeRequest {
  WallTime now{};
  WallTime until{};  // tasks due at or before this
  std::size_t limit = 1;
  /// So long a task that was taken is not given again, unless it is put again.
  std::chrono::milliseconds claim{60'000};
};

struct Taken {
  std::vector<Task> tasks;  // earliest first, then by id
  /// Records that could not be read, one error each (data_loss). They were set aside, raw, on the
  /// other side and are not given again.
  std::vector<Error> damaged;
};

/// A number as stamp() stores it; 0 for any other text, an empty one too.
inline std::uint64_t parse_generation(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read_to == end ? number : 0;
}

/// Confined to one thread; calls block until they are answered or time out.
class ExternalScheduler {
 public:
  virtual ~ExternalScheduler() = default;

  /// Whether it can keep this task at all. One that it cannot stays here.
  virtual bool keeps(const Task&) const { return true; }
  /// Keeps these tasks, in place of what it had under their ids; a claim on one ends.
  /// Requires: tasks that validate() accepts and keeps() takes, due in the years 1970 … 9999.
  virtual Result<void> put(std::span<const Task> tasks) = 0;
  virtual Result<CancelOutcome> cancel(TaskId id) = 0;
  /// Also one that is claimed. Errors: also data_loss.
  virtual Result<std::optional<Task>> find(TaskId id) = 0;
  /// Claims what is due, up to `limit` > 0. A claim that has run out by `now`, or that could not
  /// have been given yet at `now` (the clock was wrong), is none.
  virtual Result<Taken> take(const TakeRequest& request) = 0;
  /// Removes these for good, claimed or not; those that are not there are no error.
  virtual Result<void> forget(std::span<const TaskId> ids) = 0;
  /// How many tasks it keeps, claimed ones too.
  virtual Result<std::uint64_t> size() = 0;

  /// Stores a number in place of `before`, by which a loss is noticed (far_tasks.h): if it is there
  /// later, so is all that earlier calls changed. Errors: also unavailable when `before` is not
  /// there any more, because something was lost a moment ago.
  virtual Result<void> stamp(std::uint64_t before, std::uint64_t generation) = 0;
  /// What was stamped last; 0 when there is none.
  virtual Result<std::uint64_t> generation() = 0;
  /// For people: the command that stamps without this program.
  virtual std::string stamp_command(std::uint64_t generation) const = 0;
};

}  // namespace detent
