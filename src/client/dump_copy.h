// Copies a whole server through its client: writes all pages of a dump into one file, and restores
// a dump in parts, one after another.
//
// A dump file contains the pages of the server without the lines between pages, and one end line
// with the total counts. A restore reads only the kind of each line; the server checks each line.
// Both keep one page or part in memory. A restore also keeps the schedules in memory and sends them
// last: once the tasks of a schedule exist, the schedule does not create them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/client.h"
#include "protocol/json/dump_codec.h"

namespace detent {

struct DumpCounts {
  json::LineCounts lines;
  std::uint64_t external = 0;  // tasks of an external scheduler; not in the dump
};

/// Dumps all queues, tasks and schedules to `out`. Calls `at` after each page with the number of
/// tasks so far. Errors: the client's errors; unavailable if `out` cannot be written.
Result<DumpCounts> write_dump(Client& client, std::ostream& out,
                              const std::function<void(std::uint64_t)>& at);

/// True if the last line is the end of a dump. Reads only that line, and then goes back to the
/// start of `in`. Errors: unavailable if `in` cannot be read or has no positions; data_loss if the
/// end line lacks the count of a kind of line.
Result<bool> has_dump_end(std::istream& in);

/// Returns an error if `file`, which starts with `beginning`, cannot be a truncated dump: it is not
/// a dump, or it is compressed. Returns ok otherwise.
Result<void> expect_dump(std::string_view beginning, const std::string& file);

/// One restore. Thread-compatible.
class DumpRestore {
 public:
  struct Events {
    /// A line of the input was refused. Lines are counted from 1.
    std::function<void(std::uint64_t line, const Error&)> on_refused = [](auto, const auto&) {};
    /// A part was restored. The client's last answer is that of the part (client_impl.h).
    std::function<void()> on_part = [] {};
  };
  struct Report {
    std::uint64_t restored = 0;         // tasks
    std::uint64_t there = 0;            // tasks that existed before
    std::uint64_t queues = 0;           // created queues
    std::uint64_t schedules = 0;        // restored schedules
    std::uint64_t schedules_there = 0;  // schedules that existed before
    std::uint64_t refused = 0;          // refused lines
    std::uint64_t damaged = 0;          // tasks that were unreadable when the dump was made
    std::uint64_t through_line = 0;     // the last line that was sent and answered
    bool is_dump = false;               // at least one line is a line of a dump
    bool has_end = false;
    bool is_count_right = false;  // the counts of each page and of the end match the lines
    bool is_uncounted = false;    // an end line lacks a count
  };

  /// `client` must outlive it.
  DumpRestore(Client& client, Events events) : client_(client), events_(std::move(events)) {}

  /// Restores all lines of `in`. Call it once. Errors: the client's errors, and unreadable input.
  /// Lines that were restored before an error stay restored.
  Result<void> run(std::istream& in);
  const Report& report() const noexcept { return report_; }

 private:
  Result<void> take(std::string_view line, std::uint64_t number);
  Result<void> add(std::string_view line, std::uint64_t number);
  /// Reads the last line of a page or of the dump, and compares its counts with the lines.
  void take_counts(std::string_view line);
  void refuse(std::uint64_t number, const Error& error);
  Result<void> send();

  Client& client_;
  const Events events_;
  std::string part_;                    // lines to send next
  std::vector<std::uint64_t> numbers_;  // numbers of these lines in the whole input
  json::LineCounts counts_;             // since the start or the last end of a page
  bool are_pages_whole_ = true;         // false once the counts of a page did not match
  std::vector<std::pair<std::uint64_t, std::string>> schedules_;  // number and line; sent last
  Report report_;
};

}  // namespace detent
