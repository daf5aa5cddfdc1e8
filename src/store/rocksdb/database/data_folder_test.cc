#include "store/rocksdb/database/data_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "base/testing/test_folder.h"

namespace detent {
namespace {

void touch(const std::string& path) { std::ofstream(path) << "x"; }

Error refusal(const std::string& path) {
  const Result<DataFolder> folder = DataFolder::open(path);
  EXPECT_FALSE(folder);
  return folder ? Error{} : folder.error();
}

bool says(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

TEST(DataFolder, IsCreatedForItsOwnerOnly) {
  TestFolder parent;
  const Result<DataFolder> folder = DataFolder::open(parent / "data");
  ASSERT_TRUE(folder);
  struct stat status {};
  ASSERT_EQ(::stat((parent / "data").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u);
  EXPECT_FALSE(folder->holds_database().value());
}

TEST(DataFolder, IsLockedUntilItIsDestroyed) {
  TestFolder parent;
  const std::string path = parent / "data";
  {
    const Result<DataFolder> folder = DataFolder::open(path);
    ASSERT_TRUE(folder);
    const Error error = refusal(path);
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_EQ(error.message, "data folder '" + path + "' is already open in this process");
  }
  EXPECT_TRUE(DataFolder::open(path));
}

TEST(DataFolder, AFolderOfAnotherProcessIsInUseThere) {
  const TestFolder parent;
  const std::string path = parent / "data";
  std::array<int, 2> opened{};
  std::array<int, 2> done{};
  ASSERT_EQ(::pipe(opened.data()), 0);
  ASSERT_EQ(::pipe(done.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(done[1]);  // so that the end of the parent is noticed
    const Result<DataFolder> folder = DataFolder::open(path);
    const char is_open = folder ? '1' : '0';
    char end = 0;
    const bool is_told = ::write(opened[1], &is_open, 1) == 1;
    while (is_told && ::read(done[0], &end, 1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }
  char is_open = 0;
  ASSERT_EQ(::read(opened[0], &is_open, 1), 1);
  ASSERT_EQ(is_open, '1');
  EXPECT_EQ(refusal(path).message, "data folder '" + path + "' is in use by another process, pid " +
                                       std::to_string(child));
  for (const int file : {opened[0], opened[1], done[0], done[1]}) ::close(file);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(DataFolder::open(path));
}

// A user may remove the lock file because it looks like a leftover.
TEST(DataFolder, StaysLockedIfItsLockFileIsRemoved) {
  const TestFolder parent;
  const std::string path = parent / "data";
  Result<DataFolder> folder = DataFolder::open(path);
  ASSERT_TRUE(folder);
  ASSERT_EQ(::unlink((path + "/detent.lock").c_str()), 0);
  EXPECT_TRUE(says(refusal(path), "is already open in this process"));
  EXPECT_TRUE(folder->hold());
  EXPECT_EQ(::access((path + "/detent.lock").c_str(), F_OK), 0) << "it is created again";
  EXPECT_TRUE(says(refusal(path), "is already open in this process"));
}

// This can happen on file systems that cannot lock folders.
TEST(DataFolder, HoldFailsIfAnotherProcessLockedANewLockFile) {
  const TestFolder parent;
  const std::string lock_file = parent / "detent.lock";
  Result<DataFolder> folder = DataFolder::open(parent.path());
  ASSERT_TRUE(folder && folder->hold());
  ASSERT_EQ(::unlink(lock_file.c_str()), 0);
  const int others = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(others, LOCK_EX | LOCK_NB), 0);
  // In this test, the other process is this one.
  EXPECT_TRUE(says(folder->hold().error(), "is already open in this process"));
  ASSERT_EQ(::flock(others, LOCK_UN), 0);
  EXPECT_TRUE(folder->hold());
  EXPECT_NE(::flock(others, LOCK_EX | LOCK_NB), 0) << "it is ours now";
  ::close(others);
}

TEST(DataFolder, HoldFailsIfItWasMovedOrReplaced) {
  const TestFolder parent;
  const std::string path = parent / "data";
  Result<DataFolder> folder = DataFolder::open(path);
  ASSERT_TRUE(folder && folder->hold());
  ASSERT_EQ(::rename(path.c_str(), (parent / "elsewhere").c_str()), 0);
  EXPECT_TRUE(says(folder->hold().error(), "was moved, removed or replaced while it was in use"));
  const Result<DataFolder> other = DataFolder::open(path);
  ASSERT_TRUE(other);
  EXPECT_EQ(folder->hold().error().code, ErrorCode::unavailable);
}

TEST(DataFolder, MissingParentIsRefused) {
  TestFolder parent;
  const Error error = refusal(parent / "no/data");
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_TRUE(says(error, "must exist and be writable): No such file")) << error.message;
}

TEST(DataFolder, FileIsRefused) {
  TestFolder parent;
  touch(parent / "data");
  const Error error = refusal(parent / "data");
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_TRUE(says(error, "is not a folder")) << error.message;
  EXPECT_EQ(refusal("").code, ErrorCode::invalid_argument);
}

// Runs in a child process, because the process cannot get back the rights of root.
TEST(DataFolderDeathTest, FolderOfAnotherUserIsRefused) {
  TestFolder parent;
  ASSERT_TRUE(DataFolder::open(parent / "data"));
  ASSERT_EQ(::chmod(parent.path().c_str(), 0755), 0);
  const auto open_without_rights = [&parent] {
    constexpr uid_t kNobody = 65'534;
    if (::geteuid() == 0) {
      if (::setuid(kNobody) != 0) ::_exit(3);
    } else if (::chmod((parent / "data").c_str(), 0) != 0) {
      ::_exit(3);
    }
    const Error error = refusal(parent / "data");
    std::fprintf(stderr, "%s\n", error.message.c_str());
    ::_exit(error.code == ErrorCode::unavailable ? 0 : 1);
  };
  EXPECT_EXIT(
      open_without_rights(), testing::ExitedWithCode(0),
      "cannot be read and written by this user .*: Permission denied .uid [0-9]+; its owner "
      "is uid [0-9]+, its mode 0[0-7]00.\n");
  ::chmod((parent / "data").c_str(), 0700);
}

TEST(DataFolder, OtherFilesDoNotMakeADatabase) {
  TestFolder parent;
  touch(parent / "README");
  touch(parent / "MANIFEST-000001");  // left by an interrupted first start
  EXPECT_FALSE(DataFolder::open(parent.path())->holds_database().value());
  touch(parent / "CURRENT");
  EXPECT_TRUE(DataFolder::open(parent.path())->holds_database().value());
}

TEST(DataFolder, DatabaseWithoutCurrentIsDamage) {
  for (const char* part : {"000012.sst", "000013.log"}) {
    TestFolder parent;
    touch(parent / part);
    const Result<bool> holds = DataFolder::open(parent.path())->holds_database();
    ASSERT_FALSE(holds);
    EXPECT_EQ(holds.error().code, ErrorCode::data_loss);
    EXPECT_TRUE(says(holds.error(), "CURRENT is missing")) << holds.error().message;
  }
}

// Some users keep the output of a program next to its data.
TEST(DataFolder, ForeignFilesWithTheSameEndingsAreIgnored) {
  TestFolder parent;
  for (const char* name : {"app.log", ".log", "1a.log", "2.sst.log", "app.sst"}) {
    touch(parent / name);
  }
  const Result<DataFolder> folder = DataFolder::open(parent.path());
  ASSERT_TRUE(folder);
  EXPECT_FALSE(folder->holds_database().value());
  EXPECT_TRUE(folder->log_files().value().empty());
}

TEST(DataFolder, MissingManifestIsDamage) {
  TestFolder parent;
  std::ofstream(parent / "CURRENT") << "MANIFEST-000007\n";
  const Result<DataFolder> folder = DataFolder::open(parent.path());
  const Error error = folder->manifest_file().error();
  EXPECT_EQ(error.code, ErrorCode::data_loss);
  EXPECT_TRUE(says(error, "its file MANIFEST-000007 is missing")) << error.message;
  touch(parent / "MANIFEST-000007");
  EXPECT_EQ(folder->manifest_file().value(), "MANIFEST-000007");
}

// CURRENT can contain any bytes, so the error does not show them as a file name.
TEST(DataFolder, CurrentMustNameANumberedManifest) {
  for (const char* name : {"MANIFEST-00\xb0\x1b[2J", "MANIFEST-", "MANIFEST-7a", "elsewhere", ""}) {
    TestFolder parent;
    std::ofstream(parent / "CURRENT") << name << '\n';
    const Error error = DataFolder::open(parent.path())->manifest_file().error();
    EXPECT_EQ(error.code, ErrorCode::data_loss);
    EXPECT_TRUE(says(error, "its file CURRENT does not name a manifest")) << error.message;
  }
}

TEST(DataFolder, LogsComeOldestFirst) {
  TestFolder parent;
  for (const char* name : {"1000000.log", "000009.log", "000010.log", "LOG", "000008.sst"}) {
    touch(parent / name);
  }
  EXPECT_EQ(DataFolder::open(parent.path())->log_files().value(),
            (std::vector<std::string>{"000009.log", "000010.log", "1000000.log"}));
}

}  // namespace
}  // namespace detent
