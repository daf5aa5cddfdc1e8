// Bytes of a beanstalk client, in whatever pieces they come, made into commands.
//
// A line that is no command is refused and what follows it read as the next one, as beanstalkd does
// it; so a `put` whose line is wrong has its body read as commands. The body of a `put` that is too
// big is swallowed, never kept. What a client sends costs no more memory than the largest body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/beanstalk/command.h"

namespace detent::beanstalk {

/// Pure. Thread-compatible.
class CommandParser {
 public:
  explicit CommandParser(std::size_t max_body_bytes) noexcept : max_body_bytes_(max_body_bytes) {}

  /// Takes bytes up to the end of one command and answers how many; fewer than all only when
  /// is_complete(). Requires: !is_complete().
  std::size_t parse(std::string_view bytes);
  bool is_complete() const noexcept { return phase_ == Phase::complete; }
  /// The command, or why it is none; the next one begins. Requires: is_complete().
  Input take();
  /// Nothing of a command is here, not even its first byte.
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
  char last_ = '\0';        // of the line, when it is too long to be kept
  std::string line_;        // without its end, ≤ kMaxLineBytes
  std::uint64_t left_ = 0;  // of a body and its "\r\n"
  Input input_;
};

}  // namespace detent::beanstalk
