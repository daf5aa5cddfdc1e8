#include "delivery/webhook_keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace detent {
namespace {

/// Each test has its own folder.
class WebhookKeysFile : public ::testing::Test {
 protected:
  WebhookKeysFile() { std::filesystem::create_directories(folder_); }
  ~WebhookKeysFile() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("detent-keys-" + std::to_string(::getpid()));
  const std::filesystem::path file_ = folder_ / "webhook.key";
};

TEST_F(WebhookKeysFile, IsCreatedOnceAndReadableByItsOwnerOnly) {
  const WebhookKeys made = load_or_make_webhook_key(file_).value();
  ASSERT_EQ(made.size(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  EXPECT_EQ(load_or_make_webhook_key(file_)->at(0).text(), made[0].text());
  EXPECT_EQ(load_webhook_keys(file_)->at(0).text(), made[0].text());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) files += entry.exists();
  EXPECT_EQ(files, 1);
}

TEST_F(WebhookKeysFile, OfAnUnfinishedStartIsNotUsed) {
  std::ofstream(folder_ / "webhook.key.new") << "whsec_";
  EXPECT_TRUE(load_or_make_webhook_key(file_));
}

TEST_F(WebhookKeysFile, IsNotReplacedWhenItIsWrong) {
  write("not a key\n");
  const auto keys = load_or_make_webhook_key(file_);
  ASSERT_FALSE(keys);
  EXPECT_NE(keys.error().message.find(file_.string()), std::string::npos);
  std::string text;
  std::getline(std::ifstream(file_), text);
  EXPECT_EQ(text, "not a key");
}

TEST_F(WebhookKeysFile, ThatIsMissingOrTooLargeIsAnError) {
  EXPECT_EQ(load_webhook_keys(file_).error().code, ErrorCode::unavailable);
  write(std::string(100'000, '\n'));
  EXPECT_EQ(load_webhook_keys(file_).error().code, ErrorCode::too_large);
  EXPECT_EQ(load_or_make_webhook_key(folder_ / "none" / "key").error().code,
            ErrorCode::unavailable);
}

}  // namespace
}  // namespace detent
