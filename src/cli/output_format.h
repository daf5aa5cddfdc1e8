// For whom answers are printed: as tables and sentences, or as JSON, a line an answer.
// docs/reference/cli.md tells which commands print what.
#pragma once

#include <cstdint>

namespace detent::cli {

enum class OutputFormat : std::uint8_t { people, json };

}  // namespace detent::cli
