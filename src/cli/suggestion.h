// "Did you mean": the known word that a mistyped one is most like, by Levenshtein's distance
// (1966): insertions, deletions and replacements of one character. Used for commands and options of
// the command line, and for names in a file of settings.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace detent::cli {

/// "; did you mean 'get'?", or nothing when more than half of `word` would have to change. The
/// first of several that are as near. Cost: the product of the lengths, for each that is known.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace detent::cli
