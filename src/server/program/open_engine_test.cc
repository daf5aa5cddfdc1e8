// Errors and log lines about a data folder that is wrong or missing.
#include "server/program/open_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/log/log.h"
#include "base/testing/count_of.h"
#include "base/testing/test_folder.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class OpenEngineTest : public ::testing::Test {
 public:
  OpenEngineTest() { configure_log({.level = LogLevel::info, .out = &log_}); }
  ~OpenEngineTest() override { configure_log({}); }

 protected:
  void touch(const std::string& name) const { std::ofstream(folder_ / name) << "x"; }
  Result<OpenEngine> open(DataFolderIs folder) {
    cli::ServeOptions options;
    options.data = folder_.path();
    return open_engine(options, {clock_, changes_}, random_owner(), folder);
  }
  int count(const std::string& words) const { return count_of(words, log_.str()); }

  const Error no_space_{ErrorCode::unavailable, "write 000012.log: No space left on device", ""};
  TestFolder folder_;
  ManualClock clock_;
  ChangeFeed changes_;
  std::ostringstream log_;
};

TEST_F(OpenEngineTest, ANewStoreAmongOtherFilesIsLogged) {
  for (const char* name : {"a.txt", "b.log", "c", "d", "e", "f"}) touch(name);
  ASSERT_TRUE(open(DataFolderIs::made_if_missing));
  EXPECT_EQ(count("warning creating a new store in a folder that has other files"), 1)
      << log_.str();
  EXPECT_EQ(count("files=\"a.txt, b.log, c, d, e, …\""), 1) << log_.str();
  ASSERT_TRUE(open(DataFolderIs::made_if_missing)) << "it has a store by now";
  EXPECT_EQ(count("warning"), 1) << log_.str();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "b.log"));
}

TEST_F(OpenEngineTest, HarmlessFilesBeforeAStoreAreNotLogged) {
  for (const char* name : {".gitkeep", "detent.lock", "webhook.key", "MANIFEST-000001", "IDENTITY",
                           "LOCK", "OPTIONS-000003", "000001.dbtmp"}) {
    touch(name);
  }
  std::filesystem::create_directory(folder_ / "lost+found");
  ASSERT_TRUE(open(DataFolderIs::made_if_missing));
  EXPECT_EQ(log_.str(), "");
}

TEST_F(OpenEngineTest, AFolderOfOthersHasNoDataToCheckAndIsLeftAsItIs) {
  touch("a.txt");
  const auto refused = open_data({.data = folder_.path()});
  EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  EXPECT_EQ(refused.error().message, "there is no data in " + folder_.path());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "detent.lock"));
  touch("000012.sst");
  EXPECT_EQ(open_data({.data = folder_.path()}).error().code, ErrorCode::data_loss);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "detent.lock"));
}

TEST_F(OpenEngineTest, ALogThatEndsInAnIncompleteWriteIsToldByTheServerAndByACheck) {
  ASSERT_TRUE(open(DataFolderIs::made_if_missing));
  const auto tear = [this] {
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".log") newest = std::max(newest, entry.path());
    }
    std::ofstream(newest, std::ios::app) << "torn";
  };
  tear();
  ASSERT_TRUE(open(DataFolderIs::there));
  EXPECT_EQ(count("only writes that were not synced can be in it file="), 1) << log_.str();
  EXPECT_EQ(count("ended_at=0 discarded_bytes=4"), 1) << log_.str();
  tear();
  std::vector<CutTail> told;
  ASSERT_TRUE(open_data({.data = folder_.path()}, 0,
                        [&told](const CutTail& tail) { told.push_back(tail); }));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].discarded_bytes, 4u);
  ASSERT_TRUE(open(DataFolderIs::there));
  EXPECT_EQ(count("discarded_bytes"), 1) << log_.str();
}

TEST_F(OpenEngineTest, FilesAreNotCheckedWhileAStoreMayWriteThem) {
  cli::CheckOptions options;
  options.data = folder_.path();
  {
    const Result<OpenEngine> opened = open(DataFolderIs::made_if_missing);
    ASSERT_TRUE(opened);
    const Result<std::vector<std::string>> files = damaged_files(options);
    ASSERT_FALSE(files);
    EXPECT_EQ(files.error().code, ErrorCode::unavailable);
  }
  EXPECT_TRUE(damaged_files(options).value().empty());
}

TEST_F(OpenEngineTest, AStoreThatStaysAwayIsToldNowAndThenNotAtEachTry) {
  EngineEvents events = log_engine_events([this] { return open(DataFolderIs::there); }, clock_);
  const auto try_for = [&](std::chrono::seconds time) {
    for (auto passed = 0s; passed < time; passed += 1s) {
      events.on_reopen_failed(events.reopen().error());
      clock_.advance(1s);
    }
  };
  events.on_stopped(no_space_);
  EXPECT_EQ(count("error the store failed; "), 1) << log_.str();
  EXPECT_EQ(count(" since="), 0) << log_.str();
  try_for(60s);
  EXPECT_EQ(count("error the store cannot be opened again yet; "), 1) << log_.str();
  try_for(60s);
  EXPECT_EQ(count("error the store cannot be opened again yet; "), 2) << log_.str();
  EXPECT_EQ(count("since=1m action="), 1) << log_.str();
  touch("000012.sst");
  try_for(30s);
  EXPECT_EQ(count("error the store cannot be opened again yet; "), 3) << "another cause";
  events.on_reopened();
  EXPECT_EQ(count("info the store is open again after=150s\n"), 1) << log_.str();
}

TEST_F(OpenEngineTest, AStoreThatFailsAgainAndAgainIsToldAFewTimesPerMinute) {
  EngineEvents events = log_engine_events([this] { return open(DataFolderIs::there); }, clock_);
  const std::string failed =
      "error the store failed; requests are refused until it is open again "
      "cause=\"write 000012.log: No space left on device\" ";
  for (int second = 0; second < 121; ++second) {
    events.on_stopped(no_space_);
    events.on_reopened();
    clock_.advance(1s);
  }
  EXPECT_EQ(count(failed + "action=\"correct the cause; "), 1) << log_.str();
  EXPECT_EQ(count(failed + "failures=2 since_first=1s "), 1) << log_.str();
  EXPECT_EQ(count(failed + "failures=3 since_first=2s "), 1) << log_.str();
  EXPECT_EQ(count(failed + "failures=61 since_first=1m "), 1) << log_.str();
  EXPECT_EQ(count(failed + "failures=121 since_first=2m "), 1) << log_.str();
  EXPECT_EQ(count("info the store is open again\n"), 7) << log_.str();
  EXPECT_EQ(count("\n"), 14) << log_.str();
  clock_.advance(60s);
  events.on_stopped(no_space_);
  EXPECT_EQ(count(failed + "action="), 2) << "a store that worked for a minute has a new failure";
}

TEST_F(OpenEngineTest, AStoreThatIsNotOpenIsNeverToldToBeOpen) {
  EngineEvents events = log_engine_events([this] { return open(DataFolderIs::there); }, clock_);
  for (int i = 0; i < 5; ++i) {
    events.on_stopped(no_space_);
    events.on_reopened();
  }
  events.on_stopped(no_space_);
  EXPECT_EQ(count("error the store failed; "), 3) << log_.str();
  events.on_reopen_failed(no_space_);
  EXPECT_EQ(count("failures=6 "), 1) << log_.str();
  EXPECT_EQ(count("error the store cannot be opened again yet; "), 1) << log_.str();
  clock_.advance(96s);
  events.on_reopened();
  EXPECT_EQ(count("info the store is open again after=96s\n"), 1) << log_.str();
}

}  // namespace
}  // namespace detent::server
