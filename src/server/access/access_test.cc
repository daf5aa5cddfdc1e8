#include "server/access/access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/log/log.h"

namespace detent::server {
namespace {

class AccessTest : public ::testing::Test {
 public:
  AccessTest() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    file_ = ::testing::TempDir() + "access_" + name + "_" + std::to_string(getpid()) + ".toml";
  }
  ~AccessTest() override { std::filesystem::remove(file_); }

 protected:
  void write(const std::string& name, const std::string& token) const {
    std::ofstream(file_) << "[[token]]\nname = \"" << name << "\"\nsha256 = \""
                         << to_hex(hash_token(token)) << "\"\nscopes = [\"read\"]\n";
    chmod(file_.c_str(), S_IRUSR | S_IWUSR);
  }

  std::string file_;
};

TEST_F(AccessTest, ACallerIsKnownByItsBearerToken) {
  write("shop", "dt_a");
  const auto access = Access::load(file_);
  ASSERT_TRUE(access) << access.error().message;
  for (const char* header : {"Bearer dt_a", "bearer dt_a", "BEARER dt_a"}) {
    const auto caller = (*access)->identify(header);
    ASSERT_TRUE(caller) << header;
    EXPECT_EQ(caller->name(), "shop");
    EXPECT_FALSE(caller->may_all());
  }
  for (const char* header : {"", "dt_a", "Bearer", "Bearer ", "Bearer dt_b", "Bearer  dt_a",
                             "Basic dt_a", "Bearer dt_a, Bearer dt_a"}) {
    EXPECT_FALSE((*access)->identify(header)) << header;
  }
}

TEST_F(AccessTest, AReloadReplacesTheTokensAndLeavesCallersThatAreKnown) {
  write("old", "dt_a");
  const auto access = Access::load(file_).value();
  const auto before = access->identify("Bearer dt_a");
  write("new", "dt_b");
  ASSERT_TRUE(access->reload());
  EXPECT_FALSE(access->identify("Bearer dt_a"));
  EXPECT_TRUE(access->identify("Bearer dt_b"));
  EXPECT_EQ(before->name(), "old");
}

TEST_F(AccessTest, AWrongFileLeavesTheTokensThereWere) {
  write("old", "dt_a");
  const auto access = Access::load(file_).value();
  std::ofstream(file_) << "[[token]]\n";
  EXPECT_FALSE(access->reload());
  EXPECT_TRUE(access->identify("Bearer dt_a"));
  std::filesystem::remove(file_);
  EXPECT_FALSE(access->reload());
  EXPECT_TRUE(access->identify("Bearer dt_a"));
}

TEST_F(AccessTest, OnlyAGoodFileThatAllCanReadIsWarnedOf) {
  std::ostringstream log;
  configure_log({.out = &log});
  std::filesystem::create_directory(file_);
  EXPECT_FALSE(Access::load(file_));
  std::filesystem::remove(file_);
  std::ofstream(file_) << "[[token]]\n";
  EXPECT_FALSE(Access::load(file_));
  EXPECT_EQ(log.str(), "");
  write("shop", "dt_a");
  chmod(file_.c_str(), 0644);
  EXPECT_TRUE(Access::load(file_));
  EXPECT_NE(log.str().find("warning every user of this machine can read the token file"),
            std::string::npos);
  configure_log({});
}

TEST_F(AccessTest, AFileThatOthersMayWriteIsRefused) {
  write("shop", "dt_a");
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    chmod(file_.c_str(), mode);
    const auto access = Access::load(file_);
    ASSERT_FALSE(access);
    EXPECT_NE(access.error().message.find("chmod go-w"), std::string::npos);
  }
  chmod(file_.c_str(), 0644);
  EXPECT_TRUE(Access::load(file_));
}

TEST_F(AccessTest, AFolderIsRefused) {
  const std::string folder = file_ + ".folder";
  std::filesystem::create_directory(folder);
  const auto access = Access::load(folder);
  std::filesystem::remove(folder);
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(access.error().message,
            "--auth: cannot read " + folder + ": it is a folder, not a file");
}

TEST_F(AccessTest, AFileThatIsNotThereIsRefused) {
  const auto access = Access::load(file_);
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().message, "--auth: cannot read " + file_ + ": No such file or directory");
}

}  // namespace
}  // namespace detent::server
