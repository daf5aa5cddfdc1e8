// Shows the progress of long work: one changing line on a terminal, a line from time to time in a
// pipe.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "cli/output/terminal.h"

namespace detent::cli {

/// Thread-compatible.
class Progress {
 public:
  /// line_that_changes: each call of at() rewrites the line. lines: one line per kThingsPerLine.
  enum class Shown : std::uint8_t { line_that_changes, lines };
  static constexpr std::uint64_t kThingsPerLine = 100'000;
  static Shown shown_on(const Terminal& terminal) {
    return terminal.is_error_terminal ? Shown::line_that_changes : Shown::lines;
  }

  /// Prints lines such as "dumped tasks: 1000" on `err`; `what` is the part before the number.
  /// `err` must outlive this object.
  Progress(std::ostream& err, Shown shown, std::string what)
      : err_(err), shown_(shown), what_(std::move(what)) {}
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Reports the number of things done so far.
  void at(std::uint64_t count);
  /// Clears the changing line, so that other output can follow. Idempotent.
  void end();

 private:
  std::ostream& err_;
  const Shown shown_;
  const std::string what_;
  std::uint64_t told_ = 0;  // the last printed count, divided by kThingsPerLine
  bool is_on_line_ = false;
};

}  // namespace detent::cli
