// Command lines of the benchmarks: flags, `--name value` pairs, counts such as 10k, lists such as
// a,b. A benchmark says what each of its names means; what it means for a kind of value is here:
//
//     const bool understood = read_arguments({argv + 1, argv + argc},
//         {{"--quick", [&] { options.repetitions = 1; }}},
//         {{"--n", into(options.counts)}, {"--csv", into(options.csv)}});
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
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

/// What a flag does.
using SetFlag = std::function<void()>;
/// Takes what follows a name. Returns: whether it can be that.
using ReadValue = std::function<bool(const std::string& value)>;

// Each of these puts the value into its argument, which must outlive the reading.

inline ReadValue into(std::string& text) {
  return [&text](const std::string& value) {
    text = value;
    return true;
  };
}
inline ReadValue into(std::filesystem::path& path) {
  return [&path](const std::string& value) {
    path = std::filesystem::absolute(value);
    return true;
  };
}
inline ReadValue into(double& number) {
  return [&number](const std::string& value) {
    number = std::atof(value.c_str());
    return true;
  };
}
inline ReadValue into(std::set<std::string>& names) {
  return [&names](const std::string& value) {
    const std::vector<std::string> parts = split(value);
    names = {parts.begin(), parts.end()};
    return true;
  };
}
inline ReadValue into(std::uint32_t& count) {
  return [&count](const std::string& value) {
    const std::optional<std::uint32_t> parsed = parse_count(value);
    count = parsed.value_or(count);
    return parsed.has_value();
  };
}
inline ReadValue into(std::vector<std::uint32_t>& counts) {
  return [&counts](const std::string& value) {
    const auto parsed = parse_counts(value);
    counts = parsed.value_or(counts);
    return parsed.has_value();
  };
}
/// A small number, at least one.
inline ReadValue repetitions_into(std::uint32_t& count) {
  return [&count](const std::string& value) {
    count = static_cast<std::uint32_t>(std::max(1, std::atoi(value.c_str())));
    return true;
  };
}

/// Reads a command line, in order. Returns: whether all of it is flags and options that are named
/// here, each with a value that it can have.
inline bool read_arguments(const std::vector<std::string>& arguments,
                           const std::map<std::string, SetFlag>& flags,
                           const std::map<std::string, ReadValue>& options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (const auto flag = flags.find(arguments[i]); flag != flags.end()) {
      flag->second();
      continue;
    }
    const auto option = options.find(arguments[i]);
    if (option == options.end() || i + 1 == arguments.size()) return false;
    if (!option->second(arguments[++i])) return false;
  }
  return true;
}

}  // namespace detent::bench
