#include "server/operate/process_figures.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"

namespace detent::server {
namespace {

TEST(ProcessFigures, TellTheMemoryAndTheFreeSpaceOfTheDataFolder) {
  const TestFolder folder;
  const ProcessFigures figures = read_process_figures(folder.path());
  ASSERT_TRUE(figures.resident_bytes);
  EXPECT_GT(*figures.resident_bytes, 1u << 20);
  EXPECT_TRUE(figures.data_free_bytes);
}

TEST(ProcessFigures, WithoutADataFolderThereIsNoFreeSpaceToTell) {
  EXPECT_FALSE(read_process_figures("").data_free_bytes);
  EXPECT_FALSE(read_process_figures("/no/such/folder").data_free_bytes);
}

}  // namespace
}  // namespace detent::server
