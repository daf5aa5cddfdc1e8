// Tests that a log guard keeps failures of a log, stops later writes, and syncs logs.
#include "store/rocksdb/database/wal_env.h"

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/test_folder.h"

namespace detent {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

/// Records the operations on files, such as "make 1.log", "append 1.log" and "sync 1.log". Tells
/// appends whether to fail.
struct Script {
  std::vector<std::string> done;
  bool appends_fail = false;
  std::vector<std::string> grow;  // files whose size includes reserved space
  std::size_t reserve = 0;        // the last block size for reserving space
};

class ScriptedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  ScriptedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name, Script& script)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), script_(script) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    script_.done.push_back("append " + name_);
    if (script_.appends_fail) return IOStatus::IOError("the disk is gone");
    return target()->Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    script_.done.push_back("sync " + name_);
    return target()->Sync(options, debug);
  }
  void SetPreallocationBlockSize(std::size_t size) override { script_.reserve = size; }

 private:
  const std::string name_;
  Script& script_;
};

class ScriptedFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit ScriptedFiles(Script& script)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), script_(script) {}
  const char* Name() const override { return "ScriptedFiles"; }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    const IOStatus status = target()->NewWritableFile(path, options, file, debug);
    const std::string name = path.substr(path.rfind('/') + 1);
    script_.done.push_back("make " + name);
    if (!options.fallocate_with_keep_size) script_.grow.push_back(name);
    if (status.ok()) *file = std::make_unique<ScriptedFile>(std::move(*file), name, script_);
    return status;
  }

 private:
  Script& script_;
};

class WalEnvs : public ::testing::Test {
 protected:
  std::unique_ptr<rocksdb::FSWritableFile> make(const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const IOStatus status =
        guard_.GetFileSystem()->NewWritableFile(folder_ / name, {}, &file, nullptr);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return file;
  }

  const TestFolder folder_;
  Script script_;
  const std::unique_ptr<rocksdb::Env> env_ =
      rocksdb::NewCompositeEnv(std::make_shared<ScriptedFiles>(script_));
  WalEnv guard_{*env_};
};

TEST_F(WalEnvs, SyncALogBeforeTheNextIsCreated) {
  const auto first = make("1.log");
  ASSERT_TRUE(first->Append("a", {}, nullptr).ok());
  const auto second = make("2.log");
  EXPECT_EQ(script_.done,
            (std::vector<std::string>{"make 1.log", "append 1.log", "sync 1.log", "make 2.log"}));
}

TEST_F(WalEnvs, DoNotSyncALogForATable) {
  const auto log = make("1.log");
  const auto table = make("2.sst");
  EXPECT_EQ(script_.done, (std::vector<std::string>{"make 1.log", "make 2.sst"}));
}

TEST_F(WalEnvs, LeaveAClosedLogAlone) {
  auto closed = make("1.log");
  ASSERT_TRUE(closed->Close({}, nullptr).ok());
  const auto second = make("2.log");
  auto destroyed = make("3.log");
  destroyed.reset();
  const auto fourth = make("4.log");
  EXPECT_EQ(script_.done, (std::vector<std::string>{"make 1.log", "make 2.log", "sync 2.log",
                                                    "make 3.log", "make 4.log"}));
}

TEST_F(WalEnvs, ReserveOnlyLogsAndLetThemGrow) {
  const auto log = make("1.log");
  log->SetPreallocationBlockSize(std::size_t{64} << 20);
  EXPECT_EQ(script_.reserve, std::size_t{4} << 20);
  log->SetPreallocationBlockSize(1'000);
  EXPECT_EQ(script_.reserve, 1'000u);
  const auto manifest = make("MANIFEST-000001");
  const auto table = make("2.sst");
  EXPECT_EQ(script_.grow, std::vector<std::string>{"1.log"});
}

TEST_F(WalEnvs, KeepAFailureAndStopAllLaterWrites) {
  const auto log = make("1.log");
  const auto manifest = make("MANIFEST-000001");
  ASSERT_TRUE(manifest->Append("a", {}, nullptr).ok());
  script_.appends_fail = true;
  EXPECT_TRUE(log->Append("a", {}, nullptr).ok());
  EXPECT_FALSE(guard_.status().ok());
  script_.appends_fail = false;
  script_.done.clear();
  EXPECT_TRUE(log->Append("b", {}, nullptr).ok());
  EXPECT_TRUE(log->Sync({}, nullptr).ok());
  EXPECT_FALSE(manifest->Append("b", {}, nullptr).ok());
  const auto second = make("2.log");
  EXPECT_TRUE(second->Append("c", {}, nullptr).ok());
  EXPECT_EQ(script_.done, (std::vector<std::string>{"make 2.log"}));
}

}  // namespace
}  // namespace detent
