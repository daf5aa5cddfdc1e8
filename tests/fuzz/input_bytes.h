// Takes values from the front of an input. If the input is too short, missing values are 0 or "".
// For the functions of fuzz_inputs.h.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent::fuzz {

class InputBytes {
 public:
  explicit InputBytes(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const char c : take(bytes)) value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }
  bool coin() { return byte() % 2 == 1; }
  /// A number from `least` to `most`.
  std::uint64_t number_of(std::uint64_t least, std::uint64_t most) {
    return least + number(8) % (most - least + 1);
  }
  std::chrono::milliseconds duration_of(std::chrono::milliseconds least,
                                        std::chrono::milliseconds most) {
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return least + std::chrono::milliseconds{static_cast<std::int64_t>(number_of(0, span))};
  }
  /// Any duration, also a negative one.
  std::chrono::milliseconds duration() {
    return std::chrono::milliseconds{static_cast<std::int64_t>(number(8))};
  }
  WallTime time() { return WallTime{duration()}; }
  /// Text of at most `most` bytes: the first byte is its length.
  std::string text(std::size_t most) {
    return std::string(take(std::min<std::size_t>(byte(), most)));
  }
  std::string_view rest() { return take(bytes_.size()); }

 private:
  std::string_view take(std::size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view bytes_;
};

}  // namespace detent::fuzz
