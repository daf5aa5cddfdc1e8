// Command lines of the benchmarks: `--name value` pairs, counts such as 10k, lists such as a,b.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace detent::bench {

/// "a,b" → a and b.
inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// "10k" → 10 000, "1m" → 1 000 000. Returns: empty unless it is a count of 100 … 10^9.
inline std::optional<std::uint32_t> parse_count(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (unit == "k") value *= 1e3;
  if (unit == "m") value *= 1e6;
  const bool known_unit = unit.empty() || unit == "k" || unit == "m";
  if (!known_unit || value < 100 || value > 1e9) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

/// "10k,1m" → both. Returns: empty when one of them is no count, or there is none.
inline std::optional<std::vector<std::uint32_t>> parse_counts(const std::string& text) {
  std::vector<std::uint32_t> counts;
  for (const std::string& part : split(text)) {
    const std::optional<std::uint32_t> count = parse_count(part);
    if (!count) return std::nullopt;
    counts.push_back(*count);
  }
  if (counts.empty()) return std::nullopt;
  return counts;
}

}  // namespace detent::bench
