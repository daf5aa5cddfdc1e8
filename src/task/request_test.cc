#include "task/request.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

ScheduleRequest good_schedule() {
  ScheduleRequest request;
  request.queue = "mail";
  return request;
}

/// The field that is refused, or "" if the request is valid.
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

TEST(ScheduleRequest, KeyIsUtf8WithoutControlCharacters) {
  const auto refused = [](std::string key) {
    return refused_after([&key](ScheduleRequest& r) { r.key = std::move(key); });
  };
  for (const char* key :
       {"", "o", " order 7 ", "\"~\\", "\xC3\xA9", "\xC2\xA0", "\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(refused(key), "") << key;
  }
  for (char c = 0; c < ' '; ++c) EXPECT_EQ(refused(std::string("a") + c), "key") << int{c};
  for (const char* key : {"\x7F", "\xC2\x80", "\xC2\x9F", "a\xC2\x9B[1m",  // control characters
                          "\x80", "a\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80"}) {  // no UTF-8
    EXPECT_EQ(refused(key), "key") << testing::PrintToString(std::string(key));
  }
}

TEST(ScheduleRequest, KeyHasAtMostTwoHundredBytes) {
  const auto refused = [](std::size_t size) {
    return refused_after([size](ScheduleRequest& r) { r.key.assign(size, 'k'); });
  };
  EXPECT_EQ(refused(200), "");
  EXPECT_EQ(refused(201), "key");
}

TEST(Due, IsCheckedLikeInARequest) {
  EXPECT_TRUE(validate(Due{milliseconds{0}}));
  EXPECT_EQ(validate(Due{milliseconds{-1}}).error().field, "delay");
  EXPECT_EQ(validate(Due{WallTime{milliseconds{-1}}}).error().field, "due_at");
}

ScheduleRequest full_schedule() {
  return {.queue = "mail",
          .payload = {Payload::Kind::bytes, std::string("\0\xFF", 2)},
          .rules = {.priority = 7,
                    .max_attempts = 3,
                    .visibility_timeout = milliseconds{90'000},
                    .backoff = Backoff{milliseconds{250}, milliseconds{600'000}}},
          .due = WallTime{milliseconds{1'767'323'045'678}},
          .key = "order 7"};
}

/// The field of a restored task that is refused, or "" if the task is valid.
template <class Change>
std::string refused_of_task(Change change) {
  Task task{.id = TaskId{1}, .queue = "mail"};
  change(task);
  return refused_field(task);
}

TEST(RestoredTask, MustBeATaskThatTheServerCouldHaveCreated) {
  EXPECT_EQ(refused_of_task([](Task&) {}), "");
  EXPECT_EQ(refused_of_task([](Task& t) { t.queue = "no queue"; }), "queue");
  EXPECT_EQ(refused_of_task([](Task& t) { t.id = TaskId{0}; }), "id");
  EXPECT_EQ(refused_of_task([](Task& t) { t.id.value = ~std::uint64_t{0}; }), "id");
  EXPECT_EQ(refused_of_task([](Task& t) { t.created_at = WallTime{milliseconds{-1}}; }),
            "created_at");
  const WallTime end{std::chrono::sys_days{std::chrono::year{10'000} / 1 / 1}};
  EXPECT_EQ(refused_of_task([=](Task& t) { t.created_at = end; }), "created_at");
}

TEST(RestoredTask, HasAttemptsWithinTheLimitsOfAnyTask) {
  const auto with = [](Attempt attempt, std::size_t count) {
    return refused_of_task([=](Task& t) { t.history.assign(count, attempt); });
  };
  // More attempts than a rule allows: a beanstalk job with many expired reservations.
  EXPECT_EQ(refused_of_task([](Task& t) { t.attempts = kMaxAttempts + 1; }), "");
  EXPECT_EQ(refused_of_task([](Task& t) { t.attempts = 1u << 31; }), "");
  EXPECT_EQ(refused_of_task([](Task& t) { t.attempts = (1u << 31) + 1; }), "attempts");
  const Attempt longest{.worker = std::string(kMaxWorkerBytes, 'w'),
                        .error = std::string(kMaxErrorBytes, 'e')};
  EXPECT_EQ(with(longest, kMaxHistory), "");
  EXPECT_EQ(with(longest, kMaxHistory + 1), "history");
  EXPECT_EQ(with({.worker = longest.worker + "w"}, 1), "history");
  EXPECT_EQ(with({.error = longest.error + "e"}, 1), "history");
}

// The hashes are stored. If this test fails, a request that is repeated after an update of the
// server is taken for a different request. The values come from another program that follows the
// same description.
TEST(ContentHash, NeverChanges) {
  EXPECT_EQ(content_hash(good_schedule()), std::uint64_t{0xB8A5'EA06'46C6'6A31});
  EXPECT_EQ(content_hash(full_schedule()), std::uint64_t{0x31C5'ECE8'52F1'16AC});
}

// Compares requests that differ in only one field, or have the same bytes in different fields.
TEST(ContentHash, DiffersWhereverTheRequestDiffers) {
  using Change = void (*)(ScheduleRequest&);
  constexpr Change kChanges[] = {
      [](ScheduleRequest&) {},
      [](ScheduleRequest& r) { r.queue = "maim"; },
      [](ScheduleRequest& r) { r.queue = "mai"; },
      [](ScheduleRequest& r) { r.key = "l"; },
      [](ScheduleRequest& r) { r.payload.data = "null "; },
      [](ScheduleRequest& r) { r.payload.data = ""; },
      [](ScheduleRequest& r) { r.payload.kind = Payload::Kind::bytes; },
      [](ScheduleRequest& r) { r.rules.priority = 1025; },
      [](ScheduleRequest& r) { r.rules.priority = 1024 << 8; },
      [](ScheduleRequest& r) { r.rules.max_attempts = 0; },
      [](ScheduleRequest& r) { r.rules.max_attempts = 1; },
      [](ScheduleRequest& r) { r.rules.visibility_timeout = milliseconds{0}; },
      [](ScheduleRequest& r) { r.rules.visibility_timeout = milliseconds{1}; },
      [](ScheduleRequest& r) { r.rules.backoff = Backoff{}; },
      [](ScheduleRequest& r) {
        r.rules.backoff = Backoff{milliseconds{0}, milliseconds{1}};
      },
      [](ScheduleRequest& r) {
        r.rules.backoff = Backoff{milliseconds{1}, milliseconds{0}};
      },
      [](ScheduleRequest& r) { r.due = WallTime{}; },
      [](ScheduleRequest& r) { r.due = milliseconds{1}; },
      [](ScheduleRequest& r) { r.due = WallTime{milliseconds{1}}; }};
  std::map<std::uint64_t, std::size_t> seen;
  for (std::size_t i = 0; i < std::size(kChanges); ++i) {
    ScheduleRequest request = good_schedule();
    kChanges[i](request);
    const auto [at, is_new] = seen.emplace(content_hash(request), i);
    EXPECT_TRUE(is_new) << "changes " << at->second << " and " << i;
  }
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

TEST(LeaseToken, OtherTextsAreRefused) {
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
