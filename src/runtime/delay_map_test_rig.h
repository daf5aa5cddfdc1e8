// What the tests of DelayMap write down. Tests only.
#pragma once

#include <utility>
#include <vector>

namespace detent {

using Expired = std::vector<std::pair<int, int>>;

/// An on_expire that writes down what it gets.
inline auto write_to(Expired& expired) {
  return [&expired](int key, int value) { expired.emplace_back(key, value); };
}

}  // namespace detent
