// The format of answers: tables and sentences for people, or one line of JSON per answer.
// docs/reference/cli.md describes the output of each command.
#pragma once

#include <cstdint>

namespace detent::cli {

enum class OutputFormat : std::uint8_t { people, json };

}  // namespace detent::cli
