#include "task/queue_settings.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Changes the default settings. Returns the field that is refused, or "" if all are valid.
template <class Change>
std::string refused_after(Change change) {
  QueueSettings settings;
  change(settings);
  const Result<void> result = validate(settings);
  if (result) return "";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(result.error().message.empty());
  return result.error().field;
}

TEST(QueueSettings, TheDefaultsAreValid) {
  EXPECT_EQ(refused_after([](QueueSettings&) {}), "");
}

TEST(QueueSettings, RulesOfTasksHaveTheLimitsOfTasks) {
  const auto refused_attempts = [](std::uint32_t attempts) {
    return refused_after([=](QueueSettings& s) { s.max_attempts = attempts; });
  };
  EXPECT_EQ(refused_attempts(1), "");
  EXPECT_EQ(refused_attempts(kMaxAttempts), "");
  EXPECT_EQ(refused_attempts(0), "max_attempts");
  EXPECT_EQ(refused_attempts(kMaxAttempts + 1), "max_attempts");
  const auto refused_timeout = [](milliseconds timeout) {
    return refused_after([=](QueueSettings& s) { s.visibility_timeout = timeout; });
  };
  EXPECT_EQ(refused_timeout(milliseconds{1}), "");
  EXPECT_EQ(refused_timeout(kMaxVisibilityTimeout), "");
  EXPECT_EQ(refused_timeout(milliseconds{0}), "visibility_timeout");
  const auto refused_backoff = [](milliseconds initial, milliseconds max) {
    return refused_after([=](QueueSettings& s) { s.backoff = Backoff{initial, max}; });
  };
  EXPECT_EQ(refused_backoff(milliseconds{0}, milliseconds{kMaxDelay}), "");
  EXPECT_EQ(refused_backoff(milliseconds{2}, milliseconds{1}), "backoff");
}

TEST(QueueSettings, EndedTasksAreKeptForAtMostAYear) {
  struct Field {
    milliseconds QueueSettings::*value;
    std::string name;
  };
  for (const Field& field : {Field{&QueueSettings::retention, "retention"},
                             Field{&QueueSettings::key_retention, "key_retention"}}) {
    const auto refused = [&field](milliseconds length) {
      return refused_after([&](QueueSettings& s) { s.*field.value = length; });
    };
    EXPECT_EQ(refused(milliseconds{0}), "");
    EXPECT_EQ(refused(kMaxRetention), "");
    EXPECT_EQ(refused(milliseconds{-1}), field.name);
    EXPECT_EQ(refused(kMaxRetention + milliseconds{1}), field.name);
    EXPECT_EQ(refused(milliseconds::max()), field.name);
    EXPECT_EQ(refused(milliseconds::min()), field.name);
  }
}

TEST(QueueSettings, RateAndConcurrencyAreOneToAMillion) {
  struct Field {
    std::optional<std::uint32_t> QueueSettings::*value;
    std::string name;
  };
  for (const Field& field :
       {Field{&QueueSettings::rate, "rate"}, Field{&QueueSettings::concurrency, "concurrency"}}) {
    const auto refused = [&field](std::uint32_t limit) {
      return refused_after([&](QueueSettings& s) { s.*field.value = limit; });
    };
    EXPECT_EQ(refused(1), "");
    EXPECT_EQ(refused(1'000'000), "");
    EXPECT_EQ(refused(0), field.name);
    EXPECT_EQ(refused(1'000'001), field.name);
  }
}

TEST(QueueSettings, AQuotaCanBeAnyNumber) {
  for (const std::uint64_t most : {std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_EQ(refused_after([=](QueueSettings& s) { s.max_tasks = s.max_bytes = most; }), "");
  }
}

}  // namespace
}  // namespace detent
