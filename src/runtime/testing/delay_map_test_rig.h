// A record of expired entries for the tests of DelayMap. Tests only.
#pragma once

#include <utility>
#include <vector>

namespace detent {

using Expired = std::vector<std::pair<int, int>>;

/// An on_expire that records its calls.
inline auto write_to(Expired& expired) {
  return [&expired](int key, int value) { expired.emplace_back(key, value); };
}

}  // namespace detent
