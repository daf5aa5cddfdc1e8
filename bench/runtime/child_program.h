// A program in another process that reads lines and answers them. Runtimes of other languages take
// part in this way.
//
// While it has no request, it is stopped (SIGSTOP), so its threads, garbage collector and ticks
// take no time from the others. It always ends with this process.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace detent::bench {

/// Confined to one thread. If the program does not answer, or answers something other than "ok" and
/// numbers, this process ends and prints the answer.
class ChildProgram {
 public:
  /// Starts `command`, which includes the arguments. Requires: no other thread runs.
  explicit ChildProgram(const std::vector<std::string>& command);
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  /// Sends a line, waits for the answer and returns its numbers.
  std::vector<double> ask(const std::string& line);

  /// Like ask(), but lets the program continue to run until the next call of ask().
  std::vector<double> ask_and_let_run(const std::string& line);

  pid_t id() const { return id_; }

 private:
  std::string name_;
  pid_t id_ = 0;
  std::FILE* questions_ = nullptr;
  std::FILE* answers_ = nullptr;
};

}  // namespace detent::bench
