// "Did you mean": the known word that a mistyped one is most like, by Levenshtein's distance
// (1966): insertions, deletions and replacements of one character. Used for commands and options of
// the command line, and for names in a file of settings.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace detent::cli {

/// The known word that is most like `word`; nothing when more than half of this would have to
/// change. The first of several that are as near. Cost: the product of the lengths, for each that
/// is known.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

/// The same as a hint: "; did you mean 'get'?", or "".
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace detent::cli
