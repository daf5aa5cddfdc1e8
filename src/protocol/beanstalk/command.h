// The commands of a beanstalk client, as values.
//
// A beanstalk job is a Detent task, a tube is a queue, and a buried job is a dead task.
// docs/reference/beanstalk.md lists every command and its differences from beanstalkd.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

namespace detent::beanstalk {

/// The longest allowed line, in bytes, with its "\r\n". It is "pause-tube" with a name of 200 bytes
/// and a number of ten digits.
inline constexpr std::size_t kMaxLineBytes = 224;

/// The commands, in the order of their counts in `stats`. `quit` is not counted.
enum class Verb : std::uint8_t {
  put,
  peek,
  peek_ready,
  peek_delayed,
  peek_buried,
  reserve,
  reserve_with_timeout,
  reserve_job,
  delete_job,
  release,
  use,
  watch,
  ignore,
  bury,
  kick,
  kick_job,
  touch,
  stats,
  stats_job,
  stats_tube,
  list_tubes,
  list_tube_used,
  list_tubes_watched,
  pause_tube,
  quit
};
inline constexpr std::size_t kVerbs = static_cast<std::size_t>(Verb::quit) + 1;

struct Command {
  Verb verb = Verb::quit;
  std::uint64_t id = 0;              // for the verbs that name one job
  std::uint64_t bound = 0;           // kick: the largest number of jobs to kick
  std::uint32_t priority = 0;        // put, release, bury
  std::chrono::seconds delay{0};     // put, release, pause-tube; < 2^32
  std::chrono::seconds time_out{0};  // put: the time to run; reserve-with-timeout; < 2^32
  std::string queue = {};            // a valid queue name
  std::string body = {};             // put: without its "\r\n"

  friend bool operator==(const Command&, const Command&) = default;
};

/// Why the server does not accept the bytes that a client sent as a command.
enum class Refusal : std::uint8_t { bad_format, unknown_command, expected_crlf, job_too_big };

using Input = std::variant<Command, Refusal>;

}  // namespace detent::beanstalk
