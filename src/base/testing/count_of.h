// A search in the text of a log, for tests.
#pragma once

#include <cstddef>
#include <string>

namespace detent {

/// The number of times that `text` has `words`.
inline int count_of(const std::string& words, const std::string& text) {
  int times = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++times;
  return times;
}

}  // namespace detent
