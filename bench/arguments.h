// Command lines of the benchmarks: flags, `--name value` pairs, counts such as 10k, and lists such
// as a,b. Each benchmark defines its names. This file defines the kinds of values:
//
//     const bool understood = read_arguments({argv + 1, argv + argc},
//         {{"--quick", [&] { options.repetitions = 1; }}},
//         {{"--n", into(options.counts)}, {"--csv", into(options.csv)}});
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace detent::bench {

/// "a,b" → a and b.
inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// "0.5" → 0.5. If `thousand` is 1000, also "10k" → 10 000 and "1m" → 1 000 000. Empty for other
/// texts.
inline std::optional<double> parse_number(const std::string& text, double thousand = 0) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), last, value);
  if (read.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  const std::string_view unit(read.ptr, static_cast<std::size_t>(last - read.ptr));
  if (unit.empty()) return value;
  if (thousand > 0 && unit == "k") return value * thousand;
  if (thousand > 0 && unit == "m") return value * thousand * thousand;
  return std::nullopt;
}

/// The smallest count of an option that does not say otherwise.
inline constexpr double kLeastCount = 100;

/// Returns a count of `least` … 10^9; empty for other texts.
inline std::optional<std::uint32_t> parse_count(const std::string& text,
                                                double least = kLeastCount) {
  const std::optional<double> value = parse_number(text, 1'000);
  if (!value || *value < least || *value > 1e9) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

/// "10k,1m" → both counts. Empty if the text is empty or a part is not a count.
inline std::optional<std::vector<std::uint32_t>> parse_counts(const std::string& text,
                                                              double least = kLeastCount) {
  std::vector<std::uint32_t> counts;
  for (const std::string& part : split(text)) {
    const std::optional<std::uint32_t> count = parse_count(part, least);
    if (!count) return std::nullopt;
    counts.push_back(*count);
  }
  if (counts.empty()) return std::nullopt;
  return counts;
}

/// The effect of a flag.
using SetFlag = std::function<void()>;
/// Reads the value of an option. Returns false if the value is invalid.
using ReadValue = std::function<bool(const std::string& value)>;

// Each of these functions stores the value in its argument, which must outlive the ReadValue.

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
/// A number greater than 0, such as seconds.
inline ReadValue into(double& number) {
  return [&number](const std::string& value) {
    const std::optional<double> parsed = parse_number(value);
    if (!parsed || *parsed <= 0) return false;
    number = *parsed;
    return true;
  };
}
/// A whole number, such as a seed.
inline ReadValue into(std::uint64_t& number) {
  return [&number](const std::string& value) {
    const char* const last = value.data() + value.size();
    std::uint64_t parsed = 0;
    const std::from_chars_result read = std::from_chars(value.data(), last, parsed);
    if (read.ec != std::errc() || read.ptr != last) return false;
    number = parsed;
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
inline ReadValue into(std::vector<std::uint32_t>& counts, double least = kLeastCount) {
  return [&counts, least](const std::string& value) {
    const auto parsed = parse_counts(value, least);
    counts = parsed.value_or(counts);
    return parsed.has_value();
  };
}
/// A number from 1 to 1 000 000.
inline ReadValue repetitions_into(std::uint32_t& count) {
  return [&count](const std::string& value) {
    const std::optional<double> parsed = parse_number(value);
    if (!parsed || *parsed < 1 || *parsed > 1e6) return false;
    count = static_cast<std::uint32_t>(*parsed);
    return true;
  };
}

/// Reads a command line, in order. Returns false if it has an unknown word, or an option with a
/// missing or invalid value. A value must not begin with "--", so a forgotten value is found.
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
    const std::string& value = arguments[++i];
    if (value.starts_with("--") || !option->second(value)) return false;
  }
  return true;
}

}  // namespace detent::bench
