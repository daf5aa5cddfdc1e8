// SourceLocation: the file and line of a call. (clang 14 does not have std::source_location.)
#pragma once

#include <cstdint>

namespace detent {

/// A place in the source code. `file` lives as long as the program.
struct SourceLocation {
  const char* file = "";
  std::uint_least32_t line = 0;

  /// As a default argument, returns the place of the caller's call.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          std::uint_least32_t line = __builtin_LINE()) noexcept {
    return {.file = file, .line = line};
  }
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

}  // namespace detent
