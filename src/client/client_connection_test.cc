// Tests which requests are repeated, and the pauses between the tries. The clock does not really
// wait.
#include "client/client_impl.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/passing_clock.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

using Repeat = ServerCall::Repeat;

enum class Seen : std::uint8_t { no, yes };

/// The outcome of one try.
struct Try {
  Result<net::HttpResponse> answer;
  Seen seen = Seen::yes;
};

class Tries final : public net::HttpClient {
 public:
  explicit Tries(std::deque<Try>& script) : script_(script) {}
  Result<net::HttpResponse> send(const net::HttpRequest&) override {
    Try next = std::move(script_.front());
    script_.pop_front();
    seen_ = next.seen;
    return std::move(next.answer);
  }
  Result<std::vector<net::HttpResponse>> send_all(const std::vector<net::HttpRequest>&) override {
    return Error{ErrorCode::internal, "not scripted", ""};
  }
  bool may_have_been_seen() const noexcept override { return seen_ == Seen::yes; }

 private:
  std::deque<Try>& script_;
  Seen seen_ = Seen::no;
};

Try lost(Seen seen = Seen::yes) {
  return {.answer = Error{ErrorCode::unavailable, "lost", ""}, .seen = seen};
}
Try answered(int status, net::HttpHeaders headers = {}) {
  return {.answer = net::HttpResponse{.status = status, .headers = std::move(headers)}};
}

/// The HTTP status of the last answer, and whether the server may have seen more than one request.
struct Outcome {
  int status = 0;  // 0: there was no answer
  ClientError error = {};
};

class ClientConnectionTest : public testing::Test {
 protected:
  /// Makes a call. An answer of 2xx has the status 200 here.
  Outcome send(Repeat repeat, milliseconds retry_for = 100s) {
    ClientConnection connection(std::make_unique<Tries>(script_), std::make_unique<Tries>(script_),
                                retry_for, clock_);
    ServerCall call = post_call("/");
    call.repeat = repeat;
    const ClientResult<void> done = connection.call(call);
    return {.status = done ? 200 : done.error().status, .error = done.error()};
  }

  std::deque<Try> script_;
  test::PassingClock clock_;
};

TEST_F(ClientConnectionTest, RepeatsA503AfterTheSecondsItNames) {
  script_.push_back(answered(503, {{"retry-after", "7"}}));
  script_.push_back(answered(503));
  script_.push_back(answered(200));
  EXPECT_EQ(send(Repeat::always).status, 200);
  ASSERT_EQ(clock_.pauses.size(), 2U);
  EXPECT_EQ(clock_.pauses[0], 7s);
  EXPECT_LE(clock_.pauses[1], 200ms);
}

TEST_F(ClientConnectionTest, RepeatsAfterTheAnswerOfAProxyThatReachesNoServer) {
  for (const int status : {408, 502, 504}) {
    script_ = {answered(status), answered(200)};
    EXPECT_EQ(send(Repeat::always).status, 200) << status;
    script_ = {answered(status)};
    EXPECT_EQ(send(Repeat::never).status, status);
  }
}

TEST_F(ClientConnectionTest, ARetryAfterOfZeroDoesNotShortenThePauses) {
  for (int i = 0; i < 3; ++i) script_.push_back(answered(503, {{"retry-after", "0"}}));
  script_.push_back(answered(200));
  EXPECT_EQ(send(Repeat::always).status, 200);
  ASSERT_EQ(clock_.pauses.size(), 3U);
  EXPECT_GE(clock_.pauses[0], 50ms);
  EXPECT_GE(clock_.pauses[2], 200ms);
}

TEST_F(ClientConnectionTest, RepeatsForTheLongestPossibleTime) {
  script_ = {lost(), answered(200)};
  EXPECT_EQ(send(Repeat::always, milliseconds::max()).status, 200);
}

TEST_F(ClientConnectionTest, IgnoresARetryAfterThatIsNotANumberOfSeconds) {
  for (const char* const text : {"", "-1", "1.5", "99999999999", "Fri, 02 Jan 2026 03:04:05 GMT"}) {
    script_.push_back(answered(503, {{"retry-after", text}}));
    script_.push_back(answered(200));
    EXPECT_EQ(send(Repeat::always).status, 200);
    EXPECT_LE(clock_.pauses.back(), 100ms) << text;
  }
}

TEST_F(ClientConnectionTest, RepeatsLostCallsOnlyIfTheyMayRunTwice) {
  script_ = {lost(), answered(200)};
  EXPECT_EQ(send(Repeat::always).status, 200);
  script_ = {lost()};
  const ClientError error = send(Repeat::never).error;
  EXPECT_EQ(error.code, ClientError::Code::unavailable);
  EXPECT_EQ(error.status, 0);
  EXPECT_FALSE(error.is_repeated);
  script_ = {answered(503)};
  EXPECT_EQ(send(Repeat::never).status, 503);
}

TEST_F(ClientConnectionTest, RepeatsAnyCallThatTheServerHasNotSeen) {
  script_ = {lost(Seen::no), lost(Seen::no), answered(201)};
  EXPECT_EQ(send(Repeat::never).status, 200);
  script_ = {lost(Seen::no), answered(404)};
  EXPECT_FALSE(send(Repeat::always).error.is_repeated);
  script_ = {lost(Seen::no), lost(Seen::yes), answered(404)};
  const Outcome outcome = send(Repeat::always);
  EXPECT_EQ(outcome.status, 404);
  EXPECT_TRUE(outcome.error.is_repeated);
}

TEST_F(ClientConnectionTest, LeavesOtherAnswersAndErrorsAlone) {
  for (const int status : {200, 400, 404, 409, 429, 500}) {
    script_ = {answered(status)};
    EXPECT_EQ(send(Repeat::always).status, status);
  }
  script_ = {{.answer = Error{ErrorCode::too_large, "", ""}}};
  EXPECT_EQ(send(Repeat::always).error.code, ClientError::Code::too_large);
  EXPECT_TRUE(clock_.pauses.empty());
}

TEST_F(ClientConnectionTest, PausesGrowToFiveSecondsAndEndInTime) {
  script_.resize(100, lost());
  EXPECT_EQ(send(Repeat::always, 60s).status, 0);
  const auto sum = std::accumulate(clock_.pauses.begin(), clock_.pauses.end(), milliseconds{0});
  EXPECT_LE(sum, 60s);
  EXPECT_GE(sum, 55s);
  milliseconds most = 100ms;
  for (const milliseconds pause : clock_.pauses) {
    EXPECT_GE(pause, most / 2);
    EXPECT_LE(pause, most);
    most = std::min(2 * most, milliseconds{5'000});
  }
}

TEST_F(ClientConnectionTest, DoesNotMakeAPauseThatEndsTooLate) {
  script_ = {answered(503, {{"retry-after", "101"}})};
  EXPECT_EQ(send(Repeat::always).status, 503);
  EXPECT_TRUE(clock_.pauses.empty());
  script_ = {lost(Seen::no)};
  EXPECT_EQ(send(Repeat::always, 0s).status, 0);
}

}  // namespace
}  // namespace detent
