// The only source of random numbers. The owner of a generator chooses its seed, and the same seed
// gives the same numbers.
#pragma once

#include <cstdint>

namespace detent {

/// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
/// It has 8 bytes of state, passes BigCrush and gives the same numbers on every machine. Do not use
/// it for secrets. Thread-compatible.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound). The bias of each value is below bound / 2^32. Requires: bound > 0.
  constexpr std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

  /// Uniform in [0, 1), with 53 random bits.
  constexpr double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

/// A seed from the system's entropy, for programs. Tests choose their own seed and print it.
std::uint64_t random_seed();

}  // namespace detent
