// "Did you mean": suggests a known word for a mistyped word. The measure is the Levenshtein
// distance (1966), the number of inserted, deleted and replaced characters. Commands, options and
// the names in a file of settings use it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace detent::cli {

/// Returns the known word that is most similar to `word`, and the first of several such words.
/// Returns nothing if more than half of `word` would have to change. Hyphens at the front do not
/// count. Cost: the product of both lengths, for each known word.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

/// nearest() as a hint: "; did you mean 'get'?", or "".
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace detent::cli
