// Compares every queue with its model, in millions of random operations.
//
// DETENT_MODEL_OPS sets the number of operations on all queues together.
#include "wheel/timer_queue_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "base/rng.h"
#include "base/test_seed.h"
#include "wheel/test_queues.h"
#include "wheel/timer_queue_rig.h"

namespace detent {
namespace {

constexpr std::size_t kBytesPerEpisode = 16'384;

std::size_t operation_count() {
  const char* text = std::getenv("DETENT_MODEL_OPS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 12'000'000;
}

template <class Case>
class TimerQueueModel : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueModel, EverySize::Types, QueueNames);

TYPED_TEST(TimerQueueModel, AgreesWithSortedSets) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  Episode all;
  std::size_t episodes = 0;
  for (; all.operations < operation_count() / EverySize::kCount; ++episodes) {
    const Episode episode = run_episode<TypeParam>(random_bytes(random, kBytesPerEpisode));
    ASSERT_EQ(episode.mismatch, std::nullopt) << "in episode " << episodes;
    all.operations += episode.operations;
    all.fired += episode.fired;
    all.refused += episode.refused;
    all.resumed += episode.resumed;
    all.ambiguous += episode.ambiguous;
  }
  std::cout << all.operations << " operations, " << all.fired << " fired, " << all.refused
            << " refused, " << all.resumed << " calls that resumed, " << all.ambiguous
            << " after which the model had several cases; seed " << seed << '\n';
  EXPECT_GT(all.fired, all.operations / 50) << "too few timers fired for a useful test";
  EXPECT_GT(all.resumed, all.operations / 1'000);
  EXPECT_EQ(all.refused > 0, TypeParam::kNature.span < kLastTick);
}

}  // namespace
}  // namespace detent
