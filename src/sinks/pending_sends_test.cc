#include "sinks/pending_sends.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace detent {
namespace {

class PendingSendsTest : public ::testing::Test {
 protected:
  std::uint64_t add(char name) {
    return sends_.add([this, name](const Result<void>& result) {
      answers_.push_back(name + (result ? std::string() : result.error().message));
    });
  }

  PendingSends sends_;
  std::vector<std::string> answers_;
};

TEST_F(PendingSendsTest, EachIsAnsweredOnce) {
  const std::uint64_t a = add('a');
  const std::uint64_t b = add('b');
  sends_.finish(b, ok());
  sends_.finish(b, ok());
  sends_.finish(a, Error{ErrorCode::unavailable, "!", ""});
  sends_.finish(99, ok());
  EXPECT_EQ(answers_, (std::vector<std::string>{"b", "a!"}));
}

TEST_F(PendingSendsTest, ALostConnectionFailsAllSendsOnce) {
  add('a');
  const std::uint64_t b = add('b');
  sends_.fail_all({ErrorCode::unavailable, "?", ""});
  sends_.finish(b, ok());
  sends_.fail_all({ErrorCode::unavailable, "?", ""});
  EXPECT_EQ(answers_, (std::vector<std::string>{"a?", "b?"}));
}

TEST_F(PendingSendsTest, AForgottenSendIsNotAnswered) {
  const std::uint64_t a = add('a');
  sends_.clear();
  sends_.finish(a, ok());
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace detent
