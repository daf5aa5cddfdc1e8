// Numbers as SVG has them. Programs that draw share these functions.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>

namespace svg {

// A number with at most one decimal, the same on every machine.
inline std::string text(double value) {
  const auto tenths = static_cast<int>(std::lround(value * 10));
  std::string digits = std::to_string(std::abs(tenths) / 10);
  if (tenths % 10 != 0) digits += '.' + std::to_string(std::abs(tenths) % 10);
  return (tenths < 0 ? "-" : "") + digits;
}
inline std::string text(std::size_t value) { return std::to_string(value); }

}  // namespace svg
