// Writes replies to beanstalk clients: single words, lines with numbers, jobs and YAML.
//
// Each function appends one whole reply, with its "\r\n", to the caller's string. Pure: no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/beanstalk/command.h"

namespace detent::beanstalk {

/// Replies that are one word. The name is the word in lower case, except for `dead`.
enum class Word : std::uint8_t {
  dead,  // BURIED
  deadline_soon,
  deleted,
  draining,
  internal_error,
  kicked,
  not_found,
  not_ignored,
  out_of_memory,
  paused,
  released,
  timed_out,
  touched
};

void write_word(std::string& out, Word word);
void write_refusal(std::string& out, Refusal refusal);

void write_inserted(std::string& out, std::uint64_t id);
void write_using(std::string& out, std::string_view tube);
void write_watching(std::string& out, std::size_t count);
void write_kicked(std::string& out, std::uint64_t count);
void write_reserved(std::string& out, std::uint64_t id, std::string_view body);
void write_found(std::string& out, std::uint64_t id, std::string_view body);
void write_ok(std::string& out, std::string_view yaml);

}  // namespace detent::beanstalk
