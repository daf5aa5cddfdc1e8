// The inputs that libFuzzer found worth keeping, on every timer queue, in every test run.
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

TEST(TimerQueueCorpus, EveryKeptInputAgreesWithTheModel) {
  std::size_t inputs = 0;
  std::size_t fired = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DETENT_CORPUS "/timer_queue")) {
    const std::vector<std::uint8_t> bytes = bytes_of(entry.path());
    EXPECT_EQ(find_mismatch(EverySize::Types{}, bytes), std::nullopt) << entry.path();
    fired += run_episode<TimerWheelCase>(bytes).fired;
    ++inputs;
  }
  EXPECT_GE(inputs, 20u) << "the corpus is not where it should be";
  EXPECT_GE(fired, inputs) << "the format has changed: these inputs no longer do anything";
}

}  // namespace
}  // namespace detent
