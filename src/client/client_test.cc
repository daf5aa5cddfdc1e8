// Tests which calls the client repeats when the server answers 503, for the whole call or for some
// of its elements. Also tests the access token and errors. The server runs in this process.
#include "detent/client.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/testing/http_server_fixture.h"
#include "tests/support/passing_clock.h"

namespace detent {
namespace {

using client::NewTask;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// A server that keeps all requests. It sends the answers of a script, and then the same answer to
/// every request.
class ClientCallsTest : public testing::Test {
 protected:
  Client make_client() {
    return Client::create("http://127.0.0.1:" + std::to_string(server_->port()),
                          {.token = "t0", .retry_for = 1s, .clock = &clock_})
        .value();
  }
  /// The number of requests since the last call.
  std::size_t asked() {
    std::size_t count = 0;
    for (; !requests_.empty(); ++count) last_ = requests_.pop();
    return count;
  }

  std::vector<std::string> asked_bodies() {
    std::vector<std::string> bodies;
    while (!requests_.empty()) bodies.push_back(requests_.pop().body);
    return bodies;
  }

  net::Mailbox<net::HttpRequest> requests_;
  net::HttpRequest last_;
  std::deque<net::HttpResponse> script_;  // the server's thread takes from it during a call
  net::HttpResponse answer_{.status = 503};
  test::PassingClock clock_;
  std::unique_ptr<net::HttpServer> server_ =
      net::start_server([this](net::HttpRequest request, net::Responder responder) {
        requests_.push(std::move(request));
        if (script_.empty()) return responder.send(answer_);
        responder.send(std::move(script_.front()));
        script_.pop_front();
      });
};

/// Named calls. Each returns the error of its call.
using Calls = std::vector<std::pair<const char*, std::function<ClientError(Client&)>>>;

const std::array<NewTask, 2> kKeyed{NewTask{.queue = "q", .key = "a"},
                                    NewTask{.queue = "q", .key = "b"}};
const std::array<NewTask, 2> kHalfKeyed{kKeyed[0], NewTask{.queue = "q"}};
const std::array<client::TaskName, 1> kTasks{std::uint64_t{256}};
const std::array<std::string, 1> kLeases{"1-1"};
const client::NewSchedule kSchedule{.rule = client::IntervalRule{.every = 1h}, .queue = "q"};

TEST_F(ClientCallsTest, CallsThatMustNotRunTwiceAreSentOnce) {
  const Calls calls{
      {"schedule", [](Client& c) { return c.schedule({.queue = "q"}).error(); }},
      {"schedule_many", [](Client& c) { return c.schedule_many(kHalfKeyed).error(); }},
      {"purge", [](Client& c) { return c.purge("q").error(); }},
      {"redrive", [](Client& c) { return c.redrive("q").error(); }},
      {"trigger_schedule", [](Client& c) { return c.trigger_schedule("s").error(); }},
      {"backfill", [](Client& c) { return c.backfill("s", {}).error(); }},
      {"call", [](Client& c) { return c.call("POST", "/v1/x").error(); }},
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

TEST_F(ClientCallsTest, AllOtherCallsAreRepeated) {
  const Calls calls{
      {"schedule", [](Client& c) { return c.schedule(kKeyed[0]).error(); }},
      {"schedule_many", [](Client& c) { return c.schedule_many(kKeyed).error(); }},
      {"get", [](Client& c) { return c.get(kTasks[0]).error(); }},
      {"list", [](Client& c) { return c.list().error(); }},
      {"cancel", [](Client& c) { return c.cancel(kTasks[0]).error(); }},
      {"cancel_many", [](Client& c) { return c.cancel_many(kTasks).error(); }},
      {"move", [](Client& c) { return c.move(kTasks[0], 1s).error(); }},
      {"move_many", [](Client& c) { return c.move_many(kTasks, 1s).error(); }},
      {"edit", [](Client& c) { return c.edit(kTasks[0], {.priority = 1}).error(); }},
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
      {"schedule_page", [](Client& c) { return c.schedule_page().error(); }},
      {"next_occurrences", [](Client& c) { return c.next_occurrences("s").error(); }},
      {"pause_schedule", [](Client& c) { return c.pause_schedule("s").error(); }},
      {"resume_schedule", [](Client& c) { return c.resume_schedule("s").error(); }},
      {"remove_schedule", [](Client& c) { return c.remove_schedule("s").error(); }},
      {"stats", [](Client& c) { return c.stats().error(); }},
      {"ready", [](Client& c) { return c.ready().error(); }},
      {"call", [](Client& c) { return c.call("GET", "/v1/x").error(); }},
  };
  Client client = make_client();
  for (const auto& [name, call] : calls) {
    const ClientError error = call(client);
    EXPECT_EQ(error.code, ClientError::Code::unavailable) << name;
    EXPECT_GT(asked(), 2U) << name;
    EXPECT_TRUE(error.is_repeated) << name;
  }
}

TEST_F(ClientCallsTest, AnyCallIsRepeatedIfTheServerHasNotSeenIt) {
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

// If one shard of a cluster is away, a call for many elements is still answered with 200. Only the
// elements of that shard have a 503.
class ShardsAwayTest : public ClientCallsTest {
 protected:
  static net::HttpResponse results(const std::string& each) {
    return {.body = R"({"results":[)" + each + "]}"};
  }
  /// The body without its leases.
  static std::string without_leases(const std::string& body, const std::string& leases) {
    const std::size_t at = body.find(leases);
    EXPECT_NE(at, std::string::npos) << body;
    return at == std::string::npos ? "" : body.substr(0, at) + body.substr(at + leases.size());
  }

  const std::string away_ =
      R"({"status":"unavailable","error":{"type":"urn:detent:error:unavailable","status":503}})";
  const std::string held_ = R"({"status":"done"})";
  const std::string task_ =
      R"({"id":"256","queue":"q","state":"scheduled","due_at":"2026-01-02T03:04:05.678Z"})";
  const std::vector<std::string> leases_{"1-1", "1-2", "1-3"};

  using Statuses = ClientResult<std::vector<client::LeaseStatus>>;
  using Leases = std::span<const std::string>;
  const std::array<std::function<Statuses(Client&, Leases)>, 4> verbs_{
      [](Client& c, Leases leases) { return c.complete(leases); },
      [](Client& c, Leases leases) { return c.fail(leases, {.error = "e"}); },
      [](Client& c, Leases leases) { return c.extend(leases, 60s); },
      [](Client& c, Leases leases) { return c.release(leases); }};
};

TEST_F(ShardsAwayTest, LeasesAreRepeatedUntilTheirResultIsKnown) {
  using enum client::LeaseStatus;
  Client client = make_client();
  for (const auto& verb : verbs_) {
    script_ = {results(held_ + "," + away_ + "," + away_),
               results(away_ + R"(,{"status":"conflict"})"),
               {.status = 503},
               results(held_)};
    const Statuses statuses = verb(client, leases_);
    ASSERT_TRUE(statuses) << statuses.error().message;
    EXPECT_EQ(statuses.value(), (std::vector{done, done, conflict}));
    const std::vector<std::string> bodies = asked_bodies();
    ASSERT_EQ(bodies.size(), 4U);
    const std::string rest = without_leases(bodies[0], R"(["1-1","1-2","1-3"])");
    EXPECT_EQ(without_leases(bodies[1], R"(["1-2","1-3"])"), rest);
    EXPECT_EQ(without_leases(bodies[2], R"(["1-2"])"), rest);
    EXPECT_EQ(bodies[3], bodies[2]);
  }
}

/// The problem has no type of Detent, so only its status tells that the element is unavailable.
TEST_F(ShardsAwayTest, AnElementWithoutATypeIsUnavailableByItsStatus) {
  using enum client::LeaseStatus;
  const std::string away =
      R"({"status":"unavailable","error":{"type":"about:blank","status":503,"detail":"d"}})";
  Client client = make_client();
  for (const auto& verb : verbs_) {
    script_ = {results(held_ + "," + away), results(held_)};
    const Statuses statuses = verb(client, std::span(leases_).first(2));
    ASSERT_TRUE(statuses) << statuses.error().message;
    EXPECT_EQ(statuses.value(), (std::vector{done, done}));
    EXPECT_EQ(asked(), 2U);
  }
  const std::array<client::TaskName, 2> tasks{std::uint64_t{256}, std::uint64_t{512}};
  script_ = {results(away + "," + task_), results(task_)};
  const auto made = client.schedule_many(kKeyed);
  EXPECT_TRUE(made && made.value()[0] && made.value()[1]);
  script_ = {results(away + "," + task_), results(task_)};
  const auto moved = client.move_many(tasks, 1s);
  EXPECT_TRUE(moved && moved.value()[0] && moved.value()[1]);
  script_ = {results(R"({"id":"256"},)" + away), results(R"({"id":"512"})")};
  const auto cancelled = client.cancel_many(tasks);
  EXPECT_TRUE(cancelled && cancelled.value()[0] && cancelled.value()[1]);
  EXPECT_EQ(asked(), 6U);
}

TEST_F(ShardsAwayTest, ALeaseOfAnAbsentShardIsUnavailableAndNotAConflict) {
  using enum client::LeaseStatus;
  Client client = make_client();
  for (const auto& verb : verbs_) {
    script_ = {results(held_ + "," + away_)};
    answer_ = results(away_);
    const Statuses statuses = verb(client, std::span(leases_).first(2));
    ASSERT_TRUE(statuses) << statuses.error().message;
    EXPECT_EQ(statuses.value(), (std::vector{done, unavailable}));
    EXPECT_GT(asked(), 3U);
  }
}

TEST_F(ShardsAwayTest, KnownResultsAreReturnedIfARepeatFails) {
  using enum client::LeaseStatus;
  Client client = make_client();
  script_ = {results(held_ + "," + away_ +
                     R"(,{"status":"error","error":{"type":"urn:detent:error:data_loss"}})")};
  answer_ = {.status = 403};
  const Statuses statuses = client.complete(leases_);
  ASSERT_TRUE(statuses) << statuses.error().message;
  EXPECT_EQ(statuses.value(), (std::vector{done, unavailable, error}));
}

TEST_F(ShardsAwayTest, TasksAreRepeatedIfTheCallMayRunTwice) {
  Client client = make_client();
  const std::array<client::TaskName, 2> tasks{std::uint64_t{256}, std::uint64_t{512}};
  script_ = {results(away_ + "," + task_), results(task_)};
  const auto made = client.schedule_many(kKeyed);
  ASSERT_TRUE(made && made.value()[0] && made.value()[1]);
  EXPECT_EQ(asked(), 2U);
  script_ = {results(away_ + "," + task_), results(task_)};
  const auto moved = client.move_many(tasks, 1s);
  ASSERT_TRUE(moved && moved.value()[0] && moved.value()[1]);
  EXPECT_EQ(asked(), 2U);
  script_ = {results(R"({"id":"256","state":"cancelled"},)" + away_),
             results(R"({"error":{"type":"urn:detent:error:not_found","status":404}})")};
  const auto cancelled = client.cancel_many(tasks);
  ASSERT_TRUE(cancelled && cancelled.value()[0]);
  EXPECT_EQ(cancelled.value()[1].error().code, ClientError::Code::not_found);
  EXPECT_TRUE(cancelled.value()[1].error().is_repeated);
  EXPECT_EQ(asked(), 2U);
  script_ = {results(away_ + "," + task_)};
  const auto once = client.schedule_many(kHalfKeyed);
  ASSERT_TRUE(once);
  EXPECT_EQ(once.value()[0].error().code, ClientError::Code::unavailable);
  EXPECT_EQ(asked(), 1U);
}

}  // namespace
}  // namespace detent
