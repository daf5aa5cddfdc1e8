// How far long work has come: one line that changes on a terminal, a line now and then in a pipe.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "cli/terminal.h"

namespace detent::cli {

class Progress {
 public:
  /// Where it is a terminal: a line for each step of work. Else: one for each so many things done.
  enum class Shown : std::uint8_t { line_that_changes, lines };
  static constexpr std::uint64_t kThingsPerLine = 100'000;
  static Shown shown_on(const Terminal& terminal) {
    return terminal.is_error_terminal ? Shown::line_that_changes : Shown::lines;
  }

  /// Says "`what` 1000" on `err`, which must outlive it.
  Progress(std::ostream& err, Shown shown, std::string what)
      : err_(err), shown_(shown), what_(std::move(what)) {}
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// So many things have been done by now.
  void at(std::uint64_t count);
  /// Leaves the line free for what is said next. Idempotent.
  void end();

 private:
  std::ostream& err_;
  const Shown shown_;
  const std::string what_;
  std::uint64_t told_ = 0;  // multiples of kThingsPerLine
  bool is_on_line_ = false;
};

}  // namespace detent::cli
