// Which calls the client repeats when the server answers 503, and what becomes of a token and of an
// error, with a server in this process.
#include "detent/client.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http_server_fixture.h"
#include "tests/support/passing_clock.h"

namespace detent {
namespace {

using client::NewTask;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Answers every request alike, and keeps it.
class ClientCallsTest : public testing::Test {
 protected:
  Client make_client() {
    return Client::create("http://127.0.0.1:" + std::to_string(server_->port()),
                          {.token = "t0", .retry_for = 1s, .clock = &clock_})
        .value();
  }
  /// How often the server was asked.
  std::size_t asked() {
    std::size_t count = 0;
    for (; !requests_.empty(); ++count) last_ = requests_.pop();
    return count;
  }

  net::Mailbox<net::HttpRequest> requests_;
  net::HttpRequest last_;
  net::HttpResponse answer_{.status = 503};
  test::PassingClock clock_;
  std::unique_ptr<net::HttpServer> server_ =
      net::start_server([this](net::HttpRequest request, net::Responder responder) {
        requests_.push(std::move(request));
        responder.send(answer_);
      });
};

/// Some calls, and what becomes of each.
using Calls = std::vector<std::pair<const char*, std::function<ClientError(Client&)>>>;

const std::array<NewTask, 2> kKeyed{NewTask{.queue = "q", .key = "a"},
                                    NewTask{.queue = "q", .key = "b"}};
const std::array<NewTask, 2> kHalfKeyed{kKeyed[0], NewTask{.queue = "q"}};
const std::array<client::TaskName, 1> kTasks{std::uint64_t{256}};
const std::array<std::string, 1> kLeases{"1-1"};
const client::NewSchedule kSchedule{.rule = client::IntervalRule{.every = 1h}, .queue = "q"};

TEST_F(ClientCallsTest, CallsOfWhichTwiceIsNotOnceAreMadeOnce) {
  const Calls calls{
      {"schedule", [](Client& c) { return c.schedule({.queue = "q"}).error(); }},
      {"schedule_many", [](Client& c) { return c.schedule_many(kHalfKeyed).error(); }},
      {"purge", [](Client& c) { return c.purge("q").error(); }},
      {"redrive", [](Client& c) { return c.redrive("q").error(); }},
      {"trigger_schedule", [](Client& c) { return c.trigger_schedule("s").error(); }},
  };
  Client client = make_client();
  for (const auto& [name, call] : calls) {
    const ClientError error = call(client);
    EXPECT_EQ(error.code, ClientError::Code::unavailable) << name;
    EXPECT_EQ(asked(), 1U) << name;
    EXPECT_FALSE(error.is_repeated) << name;
    EXPECT_EQ(error.status, 503) << name;
  }
}

TEST_F(ClientCallsTest, TheOthersAreRepeated) {
  const Calls calls{
      {"schedule", [](Client& c) { return c.schedule(kKeyed[0]).error(); }},
      {"schedule_many", [](Client& c) { return c.schedule_many(kKeyed).error(); }},
      {"get", [](Client& c) { return c.get(kTasks[0]).error(); }},
      {"list", [](Client& c) { return c.list().error(); }},
      {"cancel", [](Client& c) { return c.cancel(kTasks[0]).error(); }},
      {"cancel_many", [](Client& c) { return c.cancel_many(kTasks).error(); }},
      {"move", [](Client& c) { return c.move(kTasks[0], 1s).error(); }},
      {"move_many", [](Client& c) { return c.move_many(kTasks, 1s).error(); }},
      {"run_now", [](Client& c) { return c.run_now(256).error(); }},
      {"lease", [](Client& c) { return c.lease("q", {.wait = 1s}).error(); }},
      {"complete", [](Client& c) { return c.complete(kLeases).error(); }},
      {"fail", [](Client& c) { return c.fail(kLeases).error(); }},
      {"extend", [](Client& c) { return c.extend(kLeases, 1s).error(); }},
      {"release", [](Client& c) { return c.release(kLeases).error(); }},
      {"queues", [](Client& c) { return c.queues().error(); }},
      {"queue", [](Client& c) { return c.queue("q").error(); }},
      {"change_queue", [](Client& c) { return c.change_queue("q", {.paused = true}).error(); }},
      {"remove_queue", [](Client& c) { return c.remove_queue("q").error(); }},
      {"pause", [](Client& c) { return c.pause("q").error(); }},
      {"resume", [](Client& c) { return c.resume("q").error(); }},
      {"put_schedule", [](Client& c) { return c.put_schedule("s", kSchedule).error(); }},
      {"get_schedule", [](Client& c) { return c.get_schedule("s").error(); }},
      {"schedules", [](Client& c) { return c.schedules().error(); }},
      {"next_occurrences", [](Client& c) { return c.next_occurrences("s").error(); }},
      {"pause_schedule", [](Client& c) { return c.pause_schedule("s").error(); }},
      {"resume_schedule", [](Client& c) { return c.resume_schedule("s").error(); }},
      {"remove_schedule", [](Client& c) { return c.remove_schedule("s").error(); }},
      {"stats", [](Client& c) { return c.stats().error(); }},
  };
  Client client = make_client();
  for (const auto& [name, call] : calls) {
    const ClientError error = call(client);
    EXPECT_EQ(error.code, ClientError::Code::unavailable) << name;
    EXPECT_GT(asked(), 2U) << name;
    EXPECT_TRUE(error.is_repeated) << name;
  }
}

TEST_F(ClientCallsTest, WhatTheServerHasNotSeenIsRepeatedWhateverItIsAndWasNotSentTwice) {
  Client client = make_client();
  server_.reset();
  const ClientError error = client.schedule({.queue = "q"}).error();
  EXPECT_EQ(error.code, ClientError::Code::unavailable);
  EXPECT_EQ(error.status, 0);
  EXPECT_FALSE(error.is_repeated);
  EXPECT_FALSE(clock_.pauses.empty());
}

TEST_F(ClientCallsTest, AnErrorCarriesTheProblemAndTheRequestItsToken) {
  answer_ = {.status = 409,
             .content_type = "application/problem+json",
             .body = R"({"type":"urn:detent:error:conflict","detail":"no","field":"key"})"};
  const ClientError error = make_client().get(kTasks[0]).error();
  EXPECT_EQ(error.code, ClientError::Code::conflict);
  EXPECT_EQ(error.status, 409);
  EXPECT_EQ(error.message, "no");
  EXPECT_EQ(error.field, "key");
  EXPECT_EQ(error.problem, answer_.body);
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(last_.header("authorization"), "Bearer t0");
}

}  // namespace
}  // namespace detent
