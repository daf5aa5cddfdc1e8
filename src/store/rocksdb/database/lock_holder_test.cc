#include "store/rocksdb/database/lock_holder.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <sstream>

namespace detent {
namespace {

std::optional<std::int64_t> holder(const std::string& text) {
  struct stat file {};
  file.st_dev = gnu_dev_makedev(0xfe, 1);
  file.st_ino = 11;
  std::istringstream locks(text);
  return lock_holder(locks, file);
}

TEST(LockHolder, IsTheProcessOfTheLineWithTheFile) {
  EXPECT_EQ(holder("1: FLOCK  ADVISORY  WRITE 7 fe:00:11 0 EOF\n"
                   "2: POSIX  ADVISORY  WRITE 8 fe:01:11 0 EOF\n"
                   "3: FLOCK  ADVISORY  WRITE 19409 fe:01:11 0 EOF\n"
                   "3: -> FLOCK  ADVISORY  WRITE 9 fe:01:11 0 EOF\n"),
            19'409);
}

TEST(LockHolder, IsUnknownIfNoLineNamesAProcess) {
  EXPECT_EQ(holder(""), std::nullopt);
  EXPECT_EQ(holder("1: FLOCK  ADVISORY  WRITE 7 fe:01:110 0 EOF\nFLOCK\n"), std::nullopt);
  EXPECT_EQ(holder("1: FLOCK  ADVISORY  WRITE 0 fe:01:11 0 EOF\n"), std::nullopt);
}

}  // namespace
}  // namespace detent
