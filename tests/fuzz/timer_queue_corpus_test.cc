// Replays the stored inputs of libFuzzer on each timer queue, in each test run.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "wheel/test_queues.h"
#include "wheel/timer_queue_rig.h"

namespace detent {
namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(TimerQueueCorpus, EachQueueAgreesWithTheModelForEachStoredInput) {
  std::size_t inputs = 0;
  std::size_t fired = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DETENT_CORPUS "/timer_queue")) {
    const std::vector<std::uint8_t> bytes = bytes_of(entry.path());
    EXPECT_EQ(find_mismatch(EverySize::Types{}, bytes), std::nullopt) << entry.path();
    fired += run_episode<TimerWheelCase>(bytes).fired;
    ++inputs;
  }
  EXPECT_GE(inputs, 20u) << "corpus folder has too few inputs: " DETENT_CORPUS "/timer_queue";
  EXPECT_GE(fired, inputs)
      << "the inputs fire too few timers: has the format of operations changed?";
}

}  // namespace
}  // namespace detent
