#include "base/read_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace detent {
namespace {

class ReadFileTest : public ::testing::Test {
 public:
  ReadFileTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("read_file_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~ReadFileTest() override { std::filesystem::remove_all(folder_); }

 protected:
  const std::filesystem::path folder_;
};

TEST_F(ReadFileTest, ReturnsAWholeFileUpToTheLimit) {
  const std::string text = std::string(10'000, 'x') + '\0' + "\n";
  const std::filesystem::path file = folder_ / "file";
  std::ofstream(file, std::ios::binary) << text;
  EXPECT_EQ(read_file(file, text.size()).value(), text);
  EXPECT_EQ(read_file(file, text.size() - 1).error().code, ErrorCode::too_large);
}

TEST_F(ReadFileTest, AFolderAndAMissingFileAreErrorsWithTheName) {
  for (const std::filesystem::path& file : {folder_, folder_ / "none"}) {
    const auto text = read_file(file, 100);
    ASSERT_FALSE(text) << file;
    EXPECT_EQ(text.error().code, ErrorCode::unavailable);
    EXPECT_NE(text.error().message.find(file.string() + ": "), std::string::npos);
  }
}

TEST_F(ReadFileTest, RightsNameThisUserTheOwnerAndTheMode) {
  std::filesystem::permissions(folder_, std::filesystem::perms{0710});
  const std::string uid = "uid " + std::to_string(::geteuid());
  const std::string rights = uid + "; its owner is " + uid + ", its mode 0710";
  EXPECT_EQ(show_rights(folder_), rights);
  EXPECT_EQ(show_rights(folder_ / "none"), uid);
  EXPECT_EQ(reason_for(EACCES, folder_), "Permission denied (" + rights + ")");
  EXPECT_EQ(reason_for(ENOENT, folder_), "No such file or directory");
}

}  // namespace
}  // namespace detent
