// The server must read equal values from the requests that clients write.
#include "protocol/json/request_renderer.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace detent::json {
namespace {

using std::chrono::milliseconds;

std::vector<ScheduleRequest> examples() {
  std::vector<ScheduleRequest> requests(4);
  requests[0].queue = "plain";
  requests[1] = {.queue = "a/b;$(x)",
                 .payload = {Payload::Kind::json, "{ \"n\" : 1.0 ,\n\"s\":\"}\\\"\" }"},
                 .rules = {.priority = 0,
                           .max_attempts = 3,
                           .visibility_timeout = milliseconds{1500},
                           .backoff = Backoff{milliseconds{0}, milliseconds{1}}},
                 .due = kMaxDelay,
                 .key = "a \"key\"",
                 .webhook = "https://a/b?c='d'",
                 .headers = {{"X-A", "\"\\"}, {"!#$%&'*+-.^_`|~", ""}}};
  requests[2] = {.queue = "bytes",
                 .payload = {Payload::Kind::bytes, std::string("\0\xFF\"\\\n", 5)},
                 .rules = {},
                 .due = WallTime{milliseconds{253'402'300'799'999}}};
  requests[3] = {
      .queue = "empty", .payload = {Payload::Kind::bytes, ""}, .rules = {}, .due = WallTime{}};
  return requests;
}

void expect_same(const ScheduleRequest& read, const ScheduleRequest& written) {
  EXPECT_EQ(read.queue, written.queue);
  EXPECT_EQ(read.payload, written.payload);
  EXPECT_EQ(read.rules, written.rules);
  EXPECT_EQ(read.due, written.due);
  EXPECT_EQ(read.key, written.key);
  EXPECT_EQ(read.webhook, written.webhook);
  EXPECT_EQ(read.headers, written.headers);
}

TEST(RenderRequest, ASchedulingComesBackAsItWas) {
  for (const ScheduleRequest& written : examples()) {
    const auto read = parse_schedule(render_schedule(written));
    ASSERT_TRUE(read) << read.error().message;
    expect_same(*read, written);
  }
}

TEST(RenderRequest, ABatchComesBackAsItWas) {
  const std::vector<ScheduleRequest> written = examples();
  const auto read = parse_schedule_batch(render_schedule_batch(written), "application/json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), written.size());
  for (std::size_t i = 0; i < written.size(); ++i) expect_same(*(*read)[i], written[i]);
}

TEST(RenderRequest, NamesOfManyTasksComeBackAsTheyWere) {
  const TaskNames ids{.ids = {TaskId{256}, TaskId{512}}};
  EXPECT_EQ(parse_cancel_batch(render_cancel_batch(ids))->ids, ids.ids);
  const TaskNames keys{.queue = "q", .keys = {"a \"1\"", "é"}};
  const auto read = parse_move_batch(render_move_batch({.tasks = keys, .due = milliseconds{5}}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tasks.queue, "q");
  EXPECT_EQ(read->tasks.keys, keys.keys);
  EXPECT_EQ(read->due, Due{milliseconds{5}});
}

TEST(RenderRequest, AnEditComesBackAsItWasAndSaysNothingElse) {
  const TaskEdit whole{.due = WallTime{milliseconds{7}},
                       .priority = 3,
                       .payload = Payload{Payload::Kind::json, "[1, 2]"},
                       .webhook = "https://example.org/hook",
                       .headers = TaskHeaders{{"X-Tenant", "a \"1\""}}};
  const auto read = parse_edit(render_edit(whole));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->due, whole.due);
  EXPECT_EQ(read->priority, whole.priority);
  EXPECT_EQ(read->payload, whole.payload);
  EXPECT_EQ(read->webhook, whole.webhook);
  EXPECT_EQ(read->headers, whole.headers);
  EXPECT_EQ(render_edit({.priority = 0}), R"({"priority":0})");
  EXPECT_EQ(render_edit({.webhook = ""}), R"({"webhook":null})");
  EXPECT_EQ(render_edit({.headers = TaskHeaders()}), R"({"headers":null})");
}

TEST(RenderRequest, ALeaseComesBackAsItWas) {
  LeaseCall call;
  call.lease = {.queue = "q", .max = 7, .visibility_timeout = milliseconds{9}, .worker = "w \"1\""};
  call.wait = milliseconds{20'000};
  const auto read = parse_lease("q", render_lease(call));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->lease.max, 7U);
  EXPECT_EQ(read->lease.visibility_timeout, milliseconds{9});
  EXPECT_EQ(read->lease.worker, "w \"1\"");
  EXPECT_EQ(read->wait, milliseconds{20'000});
}

TEST(RenderRequest, LeasesComeBackAsTheyWere) {
  const std::array<std::string, 2> leases{to_string(LeaseToken{1, 2}), "no \"lease\""};
  const LeaseList expected{LeaseToken{1, 2}, std::nullopt};
  EXPECT_EQ(parse_complete(render_complete(leases)), expected);

  const auto failed = parse_fail(render_fail(leases, {milliseconds{5}, "why\n"}));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->leases, expected);
  EXPECT_EQ(failed->delay, milliseconds{5});
  EXPECT_EQ(failed->error, "why\n");
  EXPECT_EQ(parse_fail(render_fail(leases, {}))->delay, std::nullopt);
}

}  // namespace
}  // namespace detent::json
