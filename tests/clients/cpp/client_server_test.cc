// Tests the C++ client with the real server: every verb, calls for many tasks, odd names and
// payloads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "base/testing/test_folder.h"
#include "detent/client.h"
#include "tests/durability/child_server.h"

namespace detent {
namespace {

using client::LeaseStatus;
using client::NewTask;
using client::Payload;
using client::TaskKey;
using client::TaskState;
using Code = ClientError::Code;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class ClientServerTest : public testing::Test {
 protected:
  ClientServerTest() { EXPECT_TRUE(server_.start()); }

  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY, .data = folder_ / "data"}};
  std::optional<Client> made_;
  Client& client() {
    if (!made_) made_ = Client::create(server_.url(), {.retry_for = 60s}).value();
    return *made_;
  }
  client::LeasedTask lease_one(const client::LeaseOptions& options = {}) {
    const auto leased = client().lease("q", options).value();
    EXPECT_EQ(leased.size(), 1U);
    return leased.at(0);
  }
};

TEST_F(ClientServerTest, ATaskIsFoundAndMovedByIdAndKey) {
  const NewTask wanted{.queue = "q",
                       .payload = {.data = "{\"n\": 1.0}"},
                       .due = 30 * 24h,
                       .key = "k-1",
                       .priority = 7};
  const auto task = client().schedule(wanted).value();
  EXPECT_EQ(task.queue, "q");
  EXPECT_EQ(task.state, TaskState::scheduled);
  EXPECT_FALSE(task.was_there);
  EXPECT_TRUE(client().schedule(wanted).value().was_there);
  NewTask other = wanted;
  other.priority = 8;
  const auto refused = client().schedule(other);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_EQ(refused.error().status, 409);
  EXPECT_FALSE(refused.error().is_repeated);
  EXPECT_NE(refused.error().problem.find("urn:detent:error:conflict"), std::string::npos);
  const auto found = client().get(TaskKey{"q", "k-1"}).value();
  EXPECT_EQ(found.id, task.id);
  EXPECT_EQ(found.payload, wanted.payload);  // byte for byte
  EXPECT_EQ(found.priority, 7U);
  EXPECT_EQ(found.due_at, task.due_at);
  EXPECT_EQ(client().move(task.id, task.due_at + 1ms).value().due_at, task.due_at + 1ms);
  const auto page = client().list({.queue = "q",
                                   .state = TaskState::scheduled,
                                   .key = "k-1",
                                   .due_after = task.due_at + 1ms,
                                   .due_before = task.due_at + 2ms});
  ASSERT_EQ(page.value().tasks.size(), 1U);
  EXPECT_EQ(page.value().tasks[0].id, task.id);
  EXPECT_EQ(page.value().cursor, "");
  EXPECT_EQ(client().run_now(task.id).value().state, TaskState::ready);
  client().cancel(TaskKey{"q", "k-1"}).value();
  EXPECT_EQ(client().get(task.id).error().code, Code::not_found);
}

TEST_F(ClientServerTest, ALeaseIsExtendedReleasedFailedAndCompleted) {
  const auto task = client().schedule({.queue = "q", .key = "k"}).value();
  client::LeasedTask leased = lease_one({.visibility_timeout = 60s, .worker = "w"});
  EXPECT_EQ(leased.id, task.id);
  EXPECT_EQ(leased.attempt, 1U);
  EXPECT_EQ(leased.key, "k");
  EXPECT_EQ(client().cancel(task.id).error().code, Code::conflict);
  const auto only = [&] { return std::array<std::string, 1>{leased.lease}; };
  const std::vector<LeaseStatus> done{LeaseStatus::done};
  EXPECT_EQ(client().extend(only(), 120s).value(), done);
  EXPECT_EQ(client().release(only(), {.priority = 1}).value(), done);
  leased = lease_one();
  EXPECT_EQ(client().fail(only(), {.error = "no\nroute", .delay = 0ms}).value(), done);
  leased = lease_one({.wait = 5s});
  EXPECT_EQ(leased.attempt, 2U);
  EXPECT_EQ(client().get(task.id).value().last_error, "no\nroute");
  const std::array<std::string, 2> with_another{leased.lease, "1-1"};
  EXPECT_EQ(client().complete(with_another).value(),
            (std::vector{LeaseStatus::done, LeaseStatus::conflict}));
  EXPECT_EQ(client().get(task.id).error().code, Code::not_found);
}

TEST_F(ClientServerTest, ManyAreCancelledAndMovedByIdsOrKeys) {
  std::vector<client::TaskName> ids;
  for (const char* const key : {"0", "1", "2"}) {
    ids.emplace_back(client().schedule({.queue = "q", .due = 60s, .key = key}).value().id);
  }
  const std::array<client::TaskName, 2> some{ids[0], std::uint64_t{1}};
  const auto moved = client().move_many(some, 1h).value();
  EXPECT_TRUE(moved[0]);
  EXPECT_EQ(moved[1].error().code, Code::not_found);
  const std::array<client::TaskName, 3> keys{TaskKey{"q", "0"}, TaskKey{"q", "2"},
                                             TaskKey{"q", "none"}};
  const auto cancelled = client().cancel_many(keys).value();
  EXPECT_TRUE(cancelled[0] && cancelled[1]);
  EXPECT_EQ(cancelled[2].error().code, Code::not_found);
  client().cancel(ids[1]).value();
  EXPECT_TRUE(client().list().value().tasks.empty());
  const std::array<client::TaskName, 2> mixed{ids[0], keys[0]};
  EXPECT_EQ(client().cancel_many(mixed).error().code, Code::invalid_argument);
}

TEST_F(ClientServerTest, TenThousandTasksAreScheduledAndReadBackByPages) {
  std::vector<NewTask> tasks;
  for (int n = 0; n < 10'000; ++n) {
    tasks.push_back({.queue = "q",
                     .payload = {.data = std::to_string(n)},
                     .due = 1h,
                     .key = std::to_string(n)});
  }
  const auto first = client().schedule_many(tasks).value();
  const auto again = client().schedule_many(tasks).value();  // like a repeat after a lost answer
  ASSERT_EQ(first.size(), tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    ASSERT_EQ(again[i].value().id, first[i].value().id);
    ASSERT_TRUE(again[i].value().was_there);
  }
  tasks.push_back({.queue = "q"});
  EXPECT_EQ(client().schedule_many(tasks).error().code, Code::too_large);
  std::set<int> seen;
  client::ListOptions options{.queue = "q", .limit = 1'000};
  do {
    const auto page = client().list(options).value();
    for (const client::Task& task : page.tasks) seen.insert(std::stoi(task.payload.data));
    options.cursor = page.cursor;
  } while (!options.cursor.empty());
  EXPECT_EQ(seen.size(), 10'000U);
}

TEST_F(ClientServerTest, AWrongTaskAmongManyFailsAlone) {
  const std::array<NewTask, 2> tasks{NewTask{.queue = "q"}, NewTask{.queue = "a b"}};
  const auto results = client().schedule_many(tasks).value();
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[1].error().code, Code::invalid_argument);
  EXPECT_EQ(results[1].error().field, "queue");
}

TEST_F(ClientServerTest, OddNamesAndPayloadsComeBackUnchanged) {
  const std::string key = "é?#%\"🕰";
  for (const std::string& name : {std::string("A-+/;:.$_()z9"), std::string(200, 'q'),
                                  std::string("/"), std::string("."), std::string("..")}) {
    (void)client().schedule({.queue = name, .key = key}).value();
    EXPECT_EQ(client().queue(name).value().ready, 1U);
    EXPECT_TRUE(client().get(TaskKey{name, key}));
    EXPECT_EQ(client().lease(name).value().at(0).queue, name);
  }
  const std::array<Payload, 6> payloads{Payload{},
                                        {.data = "9007199254740993"},
                                        {.data = " [1.0, \"\\ud83d\\ude00 é\"]"},
                                        {Payload::Kind::bytes, ""},
                                        {Payload::Kind::bytes, {"\0\xff\r\n", 4}},
                                        {Payload::Kind::bytes, std::string(60'000, 'x')}};
  for (const Payload& payload : payloads) {
    (void)client().schedule({.queue = "q", .payload = payload}).value();
    const Payload back = lease_one().payload;
    EXPECT_EQ(back.kind, payload.kind);
    const std::size_t skipped = payload.data.starts_with(' ') ? 1 : 0;  // surrounding white space
    EXPECT_EQ(back.data, payload.data.substr(skipped));
  }
  const auto refused = client().schedule({.queue = "q", .payload = {.data = "1}"}});
  EXPECT_EQ(refused.error().field, "payload");
}

TEST_F(ClientServerTest, QueuesAreChangedAndEmptied) {
  client::QueueChange change;
  change.max_tasks = 1;
  change.retention = 24h;
  EXPECT_EQ(client().change_queue("q", change).value().settings.max_tasks, 1U);
  (void)client().schedule({.queue = "q", .due = 60s}).value();
  EXPECT_EQ(client().schedule({.queue = "q"}).error().code, Code::resource_exhausted);
  change = {};
  change.max_tasks = std::optional<std::uint64_t>();
  const auto settings = client().change_queue("q", change).value().settings;
  EXPECT_FALSE(settings.max_tasks);
  EXPECT_EQ(settings.retention, 24h);
  EXPECT_TRUE(client().pause("q").value().settings.paused);
  EXPECT_FALSE(client().resume("q").value().settings.paused);
  const auto queues = client().queues().value();
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0].name, "q");
  EXPECT_EQ(queues[0].scheduled, 1U);
  EXPECT_EQ(client().remove_queue("q").error().code, Code::conflict);
  EXPECT_EQ(client().redrive("q").value(), 0U);
  EXPECT_EQ(client().purge("q").value(), 1U);
  EXPECT_NE(client().stats().value().find("\"queue_count\":1"), std::string::npos);
}

TEST_F(ClientServerTest, SchedulesAreMadeTriggeredAndRemoved) {
  const client::NewSchedule wanted{.rule = client::CronRule{"0 9 LW * *"},
                                   .time_zone = "Asia/Shanghai",
                                   .queue = "q",
                                   .payload = {.data = "[1]"},
                                   .jitter = 60s};
  const auto schedule = client().put_schedule("s/1", wanted).value();
  EXPECT_EQ(schedule.name, "s/1");
  EXPECT_EQ(schedule.state, "active");
  EXPECT_EQ(client().next_occurrences("s/1", 3).value().at(0), schedule.next_at);
  EXPECT_EQ(client().get_schedule("s/1").value().words, schedule.words);
  EXPECT_EQ(client().schedules().value().size(), 1U);
  EXPECT_EQ(client().pause_schedule("s/1").value().state, "paused");
  EXPECT_EQ(client().resume_schedule("s/1").value().state, "active");
  const auto task = client().trigger_schedule("s/1").value();
  EXPECT_EQ(client().get(task.id).value().payload.data, "[1]");
  client().remove_schedule("s/1").value();
  EXPECT_EQ(client().get_schedule("s/1").error().code, Code::not_found);
}

TEST_F(ClientServerTest, SchedulingContinuesAfterAKill) {
  int made = 0;
  for (int kill = 0; kill < 3; ++kill) {
    for (int n = 0; n < 50; ++n, ++made) {
      (void)client().schedule({.queue = "q", .due = 1h, .key = std::to_string(made)}).value();
    }
    server_.kill();
    ASSERT_TRUE(server_.start());
  }
  EXPECT_EQ(client().queue("q").value().scheduled, 150U);
  server_.kill();
  Client impatient = Client::create(server_.url(), {.retry_for = 1s}).value();
  const auto refused = impatient.schedule({.queue = "q"});
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_FALSE(refused.error().is_repeated) << "no server saw a request";
  EXPECT_EQ(refused.error().status, 0);
}

TEST(ClientUrl, IsRefusedIfItIsMoreThanAHost) {
  for (const char* const url : {"127.0.0.1:7070", "http://", "http://a/b", "ftp://a"}) {
    EXPECT_EQ(Client::create(url).error().code, Code::invalid_argument) << url;
  }
  EXPECT_EQ(Client::create("https://a", {.ca_file = "/nowhere"}).error().code,
            Code::invalid_argument);
}

TEST(ClientTimeout, IsRefusedIfItIsZeroOrMoreThanADay) {
  for (const std::chrono::milliseconds timeout : {0ms, -1ms, std::chrono::milliseconds::max()}) {
    const auto made = Client::create("http://a", {.timeout = timeout});
    ASSERT_FALSE(made) << timeout.count();
    EXPECT_EQ(made.error().code, Code::invalid_argument);
    EXPECT_EQ(made.error().field, "timeout");
  }
  EXPECT_TRUE(Client::create("http://a", {.timeout = 24h}));
}

}  // namespace
}  // namespace detent
