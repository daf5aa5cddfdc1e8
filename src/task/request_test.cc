#include "task/request.h"

#include <gtest/gtest.h>

#include <limits>

#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

ScheduleRequest good_schedule() {
  ScheduleRequest request;
  request.queue = "mail";
  return request;
}

/// The field refused, "" when nothing was.
template <class Request>
std::string refused_field(const Request& request) {
  const Result<void> result = validate(request);
  if (result) return "";
  EXPECT_FALSE(result.error().message.empty());
  return result.error().field;
}

template <class Change>
std::string refused_after(Change change) {
  ScheduleRequest request = good_schedule();
  change(request);
  return refused_field(request);
}

std::string refused_due(Due due) {
  return refused_after([due](ScheduleRequest& r) { r.due = due; });
}

std::string refused_backoff(milliseconds initial, milliseconds max) {
  return refused_after([=](ScheduleRequest& r) { r.rules.backoff = Backoff{initial, max}; });
}

TEST(ScheduleRequest, QueueNameIsChecked) {
  EXPECT_EQ(refused_field(good_schedule()), "");
  EXPECT_EQ(refused_after([](ScheduleRequest& r) { r.queue = ""; }), "queue");
  EXPECT_EQ(refused_after([](ScheduleRequest& r) { r.queue = "a b"; }), "queue");
}

TEST(ScheduleRequest, PayloadAtTheLimitPassesAndOneByteMoreIsTooLarge) {
  ScheduleRequest request = good_schedule();
  request.payload.data.assign(kMaxPayloadBytes, 'x');
  EXPECT_TRUE(validate(request));
  request.payload.data.push_back('x');
  const Result<void> result = validate(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::too_large);
  EXPECT_EQ(result.error().field, "payload");
}

TEST(ScheduleRequest, DelayIsZeroToTheLongest) {
  EXPECT_EQ(refused_due(milliseconds{0}), "");
  EXPECT_EQ(refused_due(milliseconds{kMaxDelay}), "");
  EXPECT_EQ(refused_due(milliseconds{-1}), "delay");
  EXPECT_EQ(refused_due(milliseconds{kMaxDelay} + milliseconds{1}), "delay");
  EXPECT_EQ(refused_due(milliseconds::max()), "delay");
  EXPECT_EQ(refused_due(milliseconds::min()), "delay");
}

TEST(ScheduleRequest, DueDateIs1970To9999) {
  constexpr WallTime kLast{milliseconds{253'402'300'799'999}};  // 9999-12-31T23:59:59.999Z
  EXPECT_EQ(refused_due(WallTime{}), "");
  EXPECT_EQ(refused_due(kLast), "");
  EXPECT_EQ(refused_due(WallTime{milliseconds{-1}}), "due_at");
  EXPECT_EQ(refused_due(kLast + milliseconds{1}), "due_at");
  EXPECT_EQ(refused_due(WallTime::max()), "due_at");
  EXPECT_EQ(refused_due(WallTime::min()), "due_at");
}

TEST(ScheduleRequest, AttemptsAreOneToTheMost) {
  const auto refused = [](std::uint32_t attempts) {
    return refused_after([=](ScheduleRequest& r) { r.rules.max_attempts = attempts; });
  };
  EXPECT_EQ(refused(1), "");
  EXPECT_EQ(refused(kMaxAttempts), "");
  EXPECT_EQ(refused(0), "max_attempts");
  EXPECT_EQ(refused(kMaxAttempts + 1), "max_attempts");
}

TEST(ScheduleRequest, VisibilityTimeoutIsOneMillisecondToThirtyDays) {
  const auto refused = [](milliseconds timeout) {
    return refused_after([=](ScheduleRequest& r) { r.rules.visibility_timeout = timeout; });
  };
  EXPECT_EQ(refused(milliseconds{1}), "");
  EXPECT_EQ(refused(kMaxVisibilityTimeout), "");
  EXPECT_EQ(refused(milliseconds{0}), "visibility_timeout");
  EXPECT_EQ(refused(kMaxVisibilityTimeout + milliseconds{1}), "visibility_timeout");
  EXPECT_EQ(refused(milliseconds::min()), "visibility_timeout");
}

TEST(ScheduleRequest, BackoffRisesAndIsBounded) {
  const milliseconds longest = kMaxDelay;
  EXPECT_EQ(refused_backoff(milliseconds{0}, milliseconds{0}), "");
  EXPECT_EQ(refused_backoff(longest, longest), "");
  EXPECT_EQ(refused_backoff(milliseconds{-1}, milliseconds{1}), "backoff");
  EXPECT_EQ(refused_backoff(milliseconds{2}, milliseconds{1}), "backoff");
  EXPECT_EQ(refused_backoff(milliseconds{1}, longest + milliseconds{1}), "backoff");
}

TEST(LeaseRequest, BoundsAreCheckedAndTheFieldIsNamed) {
  const auto refused = [](auto change) {
    LeaseRequest request;
    request.queue = "mail";
    change(request);
    return refused_field(request);
  };
  EXPECT_EQ(refused([](LeaseRequest&) {}), "");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.max = kMaxLeaseTasks; }), "");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.max = 0; }), "max");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.max = kMaxLeaseTasks + 1; }), "max");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.queue = "-"; }), "queue");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.worker.assign(kMaxWorkerBytes, 'w'); }), "");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.worker.assign(kMaxWorkerBytes + 1, 'w'); }), "worker");
  EXPECT_EQ(refused([](LeaseRequest& r) { r.visibility_timeout = milliseconds{0}; }),
            "visibility_timeout");
}

TEST(LeaseToken, TextReadsBackAsTheSameToken) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  for (const LeaseToken token :
       {LeaseToken{0, 0}, LeaseToken{1, 0xABCDEF}, LeaseToken{kMax, 0}, LeaseToken{kMax, kMax}}) {
    EXPECT_EQ(parse_lease_token(to_string(token)), token) << to_string(token);
  }
}

TEST(LeaseToken, NothingElseIsOne) {
  for (const std::string_view text :
       {"", "-", "1", "1-", "-1", "--1", "1--1", "1-1-1", "01-1", "1-01", "A-1", "1-F", "1-g",
        "0x1-1", "+1-1", " 1-1", "1-1 ", "10000000000000000-1"}) {
    EXPECT_EQ(parse_lease_token(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(LeaseOutcome, HasTheNamesOfTheInterface) {
  EXPECT_EQ(to_string(LeaseOutcome::done), "done");
  EXPECT_EQ(to_string(LeaseOutcome::dead), "dead");
  EXPECT_EQ(to_string(LeaseOutcome::conflict), "conflict");
}

}  // namespace
}  // namespace detent
