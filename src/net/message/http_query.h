// Reads the query of a request's target ("?bins=60&span=1h") as strictly as bodies are read. An
// unknown, repeated or out-of-range parameter is refused, and the error names it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace detent::net {

/// Decodes percent-escapes. Returns no value for a broken escape ("%4", "%zz").
std::optional<std::string> percent_decode(std::string_view text);

/// A parameter that the route accepts.
struct QueryParameter {
  std::string_view name;
  std::optional<std::string> value = {};  // decoded; no value: the parameter is absent
};

/// Finds the parameters in the query of `target` and fills in their values. A query is the rest
/// after '?', NAME=VALUE joined by '&', with percent-escapes. Errors: invalid_argument.
Result<void> take_query(std::string_view target, std::span<QueryParameter* const> parameters);

enum class Zero : std::uint8_t { refused, allowed };

/// Reads an integer from 1 to `most`, or from 0 if `zero` allows it. Returns `other` if the
/// parameter is absent. Errors: invalid_argument.
Result<std::uint64_t> read_count(const QueryParameter& parameter, std::uint64_t most,
                                 std::uint64_t other, Zero zero = Zero::refused);

}  // namespace detent::net
