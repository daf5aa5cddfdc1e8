// Reads the bytes of a beanstalk client, in pieces of any size, and makes commands from them.
//
// As in beanstalkd, the parser refuses an invalid line and reads the next bytes as a new command.
// If the line of a `put` is invalid, the lines of its body are therefore read as commands. The body
// of a `put` that is too big is read and discarded. A client cannot make the parser use more memory
// than one body of the largest size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/beanstalk/command.h"

namespace detent::beanstalk {

/// Pure: no I/O, no clock. Thread-compatible.
class CommandParser {
 public:
  /// `max_body_bytes`: the largest body of a put. A larger body is Refusal::job_too_big.
  explicit CommandParser(std::size_t max_body_bytes) noexcept : max_body_bytes_(max_body_bytes) {}

  /// Reads bytes up to the end of one command and returns how many it read. If it returns less than
  /// the size of `bytes`, is_complete() is true. Requires: !is_complete().
  std::size_t parse(std::string_view bytes);
  bool is_complete() const noexcept { return phase_ == Phase::complete; }
  /// Returns the command, or the reason why the input is not a command. The parser then expects the
  /// next command. Requires: is_complete().
  Input take();
  /// True between two commands: no byte of the next command has arrived.
  bool is_idle() const noexcept { return phase_ == Phase::line && line_.empty(); }

 private:
  enum class Phase : std::uint8_t { line, rest_of_line, body, rest_of_body, complete };

  std::size_t parse_line(std::string_view bytes);
  std::size_t parse_body(std::string_view bytes);
  void finish_line();
  void finish_body();
  void complete(Input input);

  const std::size_t max_body_bytes_;
  Phase phase_ = Phase::line;
  char last_ = '\0';        // the last byte of the line so far; '\0' at the start of a line
  std::string line_;        // the line so far, at most kMaxLineBytes
  std::uint64_t left_ = 0;  // bytes that are still missing of a body and its "\r\n"
  Input input_;
};

}  // namespace detent::beanstalk
