#include "server/operate/process_figures.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/test_folder.h"

namespace detent::server {
namespace {

constexpr std::size_t kMemory = std::size_t{512} << 20;

TEST(ProcessFigures, TellTheMemoryAndItsBudget) {
  const ProcessFigures figures = read_process_figures(kMemory);
  ASSERT_TRUE(figures.resident_bytes);
  EXPECT_GT(*figures.resident_bytes, 1u << 20);
  ASSERT_TRUE(figures.memory);
  EXPECT_EQ(figures.memory->bytes, kMemory);
  EXPECT_EQ(figures.memory->tasks, 894'784u);
}

TEST(ProcessFigures, TellTheFreeSpaceOfAFolder) {
  const TestFolder folder;
  EXPECT_TRUE(free_bytes(folder.path()));
  EXPECT_FALSE(free_bytes("/no/such/folder"));
}

TEST(ProcessFigures, TellTheProcessorTimeAndTheStartOfTheProcess) {
  const ProcessFigures before = read_process_figures(kMemory);
  ASSERT_TRUE(before.cpu_seconds && before.start_seconds);
  EXPECT_GT(*before.cpu_seconds, 0);
  EXPECT_GT(*before.start_seconds, 1.7e9);  // after 2023
  EXPECT_EQ(read_process_figures(kMemory).start_seconds, before.start_seconds);
}

TEST(ProcessFigures, CountOpenFileDescriptors) {
  const ProcessFigures before = read_process_figures(kMemory);
  ASSERT_TRUE(before.open_fds && before.max_fds);
  EXPECT_GT(*before.max_fds, *before.open_fds);
  const std::ifstream more("/proc/self/status");
  ASSERT_TRUE(more.is_open());
  EXPECT_EQ(*read_process_figures(kMemory).open_fds, *before.open_fds + 1);
}

}  // namespace
}  // namespace detent::server
