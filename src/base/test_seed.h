// The seed of a random test: a new one each run, or DETENT_SEED to replay one. Tests only.
//
//   const std::uint64_t seed = test_seed();
//   SCOPED_TRACE(replay_hint(seed));   // every failure below says how to see it again
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/rng.h"

namespace detent {

inline std::uint64_t test_seed() {
  const char* text = std::getenv("DETENT_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : random_seed();
}

inline std::string replay_hint(std::uint64_t seed) {
  return "replay with DETENT_SEED=" + std::to_string(seed);
}

}  // namespace detent
