// A program that runs beside this one and answers lines: how runtimes of other languages take part.
//
// It is stopped (SIGSTOP) whenever it has nothing to answer, so that its own threads, collector and
// ticks take no time from the others. It ends with this process, however that ends.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace detent::bench {

/// Confined to one thread. A program that does not answer, or answers anything but "ok" and
/// numbers, ends this process with what it said.
class ChildProgram {
 public:
  /// Starts `command`, its arguments included. Requires: no other thread runs.
  explicit ChildProgram(const std::vector<std::string>& command);
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  /// Sends a line and waits for the answer. Returns: its numbers.
  std::vector<double> ask(const std::string& line);

  /// The same, and lets the program run on until `ask` is called again.
  std::vector<double> ask_and_let_run(const std::string& line);

  pid_t id() const { return id_; }

 private:
  std::string name_;
  pid_t id_ = 0;
  std::FILE* questions_ = nullptr;
  std::FILE* answers_ = nullptr;
};

}  // namespace detent::bench
