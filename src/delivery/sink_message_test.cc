#include "delivery/sink_message.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

LeasedTask leased() {
  LeasedTask leased;
  leased.task.id = TaskId{42};
  leased.task.queue = "orders";
  leased.task.payload = {.kind = Payload::Kind::json, .data = R"({ "a":1})"};
  leased.task.due_at = WallTime{std::chrono::milliseconds{1'000}};
  leased.attempt = 3;
  return leased;
}

TEST(SinkMessage, DescribesTheTask) {
  const SinkMessage message = make_sink_message(leased());
  EXPECT_EQ(message.id, "42");
  EXPECT_EQ(message.body, R"({ "a":1})");
  EXPECT_EQ(message.fields, (Fields{{"content-type", "application/json"},
                                    {"detent-id", "42"},
                                    {"detent-queue", "orders"},
                                    {"detent-attempt", "3"},
                                    {"detent-due-at", "1970-01-01T00:00:01.000Z"}}));
}

TEST(SinkMessage, BytesAreBytes) {
  LeasedTask bytes = leased();
  bytes.task.payload = {.kind = Payload::Kind::bytes, .data = std::string("\0\xff", 2)};
  const SinkMessage message = make_sink_message(std::move(bytes));
  EXPECT_EQ(message.body, std::string("\0\xff", 2));
  EXPECT_EQ(message.fields.front().second, "application/octet-stream");
}

TEST(SinkMessage, AKeyCannotStartAnotherHeader) {
  LeasedTask keyed = leased();
  keyed.task.key = "o-1\r\nNats-Rollup: all \xc3\xa9%";
  EXPECT_EQ(make_sink_message(std::move(keyed)).fields.back(),
            (Fields::value_type{"detent-key", "o-1%0D%0ANats-Rollup:%20all%20%C3%A9%25"}));
}

TEST(SinkMessage, TheTasksHeadersAreSentButReplaceNoOther) {
  LeasedTask traced = leased();
  traced.task.headers = {{"traceparent", "00-1-2-03"}, {"Detent-Queue", "other"}, {"X-A", "b"}};
  const SinkMessage message = make_sink_message(std::move(traced));
  const Fields last(message.fields.end() - 2, message.fields.end());
  EXPECT_EQ(last, (Fields{{"traceparent", "00-1-2-03"}, {"X-A", "b"}}));
  EXPECT_EQ(message.fields.size(), 7u);
}

}  // namespace
}  // namespace detent
