// Where in a program something was called from. (std::source_location is missing from clang 14.)
#pragma once

#include <cstdint>

namespace detent {

/// A value. `file` lives as long as the program.
struct SourceLocation {
  const char* file = "";
  std::uint_least32_t line = 0;

  /// As the default of a parameter: the place of the call.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          std::uint_least32_t line = __builtin_LINE()) noexcept {
    return {.file = file, .line = line};
  }
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

}  // namespace detent
