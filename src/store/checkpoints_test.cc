#include "store/checkpoints.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/testing/test_folder.h"

namespace detent {
namespace {

namespace fs = std::filesystem;

Result<void> make_folder(const std::string& path) {
  fs::create_directory(path);
  std::ofstream(path + "/000007.sst") << "x";
  return ok();
}

TEST(Checkpoints, AreMadeOnlyWhileTheStoreIsOpen) {
  const TestFolder data;
  Checkpoints checkpoints;
  EXPECT_EQ(checkpoints.make(data.path()).error().code, ErrorCode::unavailable);
  checkpoints.opened(make_folder);
  const Result<std::string> one = checkpoints.make(data.path());
  const Result<std::string> two = checkpoints.make(data.path());
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
  EXPECT_TRUE(one->starts_with(data / "checkpoint-")) << *one;
  EXPECT_TRUE(fs::exists(*one + "/000007.sst"));
  checkpoints.closed();
  EXPECT_EQ(checkpoints.make(data.path()).error().code, ErrorCode::unavailable);
}

TEST(Checkpoints, OnlyThoseThatNobodyReadsAreRemoved) {
  const TestFolder data;
  std::ofstream(data / "000001.sst") << "x";
  ASSERT_TRUE(make_folder(data / "checkpoint-1"));
  ASSERT_TRUE(make_folder(data / "checkpoint-2"));
  std::optional<CheckpointLock> lock(CheckpointLock::of(data / "checkpoint-2").value());
  EXPECT_EQ(remove_checkpoints(data.path()).value(), 1u);
  EXPECT_FALSE(fs::exists(data / "checkpoint-1"));
  EXPECT_TRUE(fs::exists(data / "checkpoint-2/000007.sst"));
  lock.reset();
  EXPECT_EQ(remove_checkpoints(data.path()).value(), 0u);
  EXPECT_FALSE(fs::exists(data / "checkpoint-2"));
  EXPECT_TRUE(fs::exists(data / "000001.sst"));
}

TEST(Checkpoints, OneThatCannotBeRemovedDoesNotKeepTheOthers) {
  const TestFolder data;
  std::ofstream(data / "checkpoint-1") << "a file";
  for (const char* name : {"checkpoint-0", "checkpoint-2"}) ASSERT_TRUE(make_folder(data / name));
  const Result<std::size_t> removed = remove_checkpoints(data.path());
  ASSERT_FALSE(removed);
  EXPECT_NE(removed.error().message.find("checkpoint-1'"), std::string::npos);
  EXPECT_FALSE(fs::exists(data / "checkpoint-0"));
  EXPECT_FALSE(fs::exists(data / "checkpoint-2"));
}

TEST(Checkpoints, AMissingCheckpointCannotBeLocked) {
  const TestFolder data;
  EXPECT_EQ(CheckpointLock::of(data / "checkpoint-1").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace detent
