// The seed of a random test: a new seed for each run, or DETENT_SEED to replay a run. Tests only.
//
//   const std::uint64_t seed = test_seed();
//   SCOPED_TRACE(replay_hint(seed));   // every failure below shows how to replay the run
//   for (int round = 0; round < test_rounds(200); ++round) {
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/rng.h"

// g++ defines the macros. clang has __has_feature, which g++ 12 does not know.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DETENT_TESTED_UNDER_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DETENT_TESTED_UNDER_SANITIZER
#endif
#endif

namespace detent {

inline std::uint64_t test_seed() {
  const char* text = std::getenv("DETENT_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : random_seed();
}

inline std::string replay_hint(std::uint64_t seed) {
  return "replay with DETENT_SEED=" + std::to_string(seed);
}

/// The number of rounds to run: a quarter of `rounds` under a sanitizer, because each round then
/// takes five to twenty times as long. A sanitizer finds wrong memory accesses, for which fewer
/// rounds are enough than for the rare paths of a model.
constexpr int test_rounds(int rounds) {
#ifdef DETENT_TESTED_UNDER_SANITIZER
  return rounds / 4 + 1;
#else
  return rounds;
#endif
}

}  // namespace detent
