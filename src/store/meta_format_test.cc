#include "store/meta_format.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

QueueRecord full_record() {
  QueueRecord record{.queue = "a/b",
                     .number = 7,
                     .waiting = 1'000'000,
                     .dead = 3,
                     .bytes = std::uint64_t{1} << 40,
                     .in_ready_lane = 12};
  record.settings = {.paused = true,
                     .max_attempts = 5,
                     .visibility_timeout = milliseconds{9},
                     .backoff = Backoff{milliseconds{1}, milliseconds{2}},
                     .retention = milliseconds{3},
                     .key_retention = milliseconds{4},
                     .max_tasks = 10,
                     .max_bytes = 11,
                     .rate = 12,
                     .concurrency = 13};
  return record;
}

QueueRecord webhook_record() {
  QueueRecord record = full_record();
  record.in_webhook_lane = 14;
  record.settings.webhook = QueueWebhook{.url = "https://a/b", .keys = {"whsec_1", "whsec_2"}};
  return record;
}

TEST(MetaFormat, NumbersReadBackUnderTheirOwnKeyOnly) {
  const std::string value = meta_value("epoch", number_bytes(42));
  EXPECT_EQ(parse_number_bytes(parse_meta_value("epoch", value).value()).value(), 42u);
  EXPECT_EQ(parse_meta_value("last_id", value).error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_meta_value("epoch", "").error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_number_bytes("1234567").error().code, ErrorCode::data_loss);
}

TEST(MetaFormat, QueueRecordsReadBack) {
  QueueRecord plain;
  plain.queue = "c";
  plain.number = 1;
  QueueRecord with_lane = plain;  // its webhook was removed, but not yet its webhook tasks
  with_lane.in_webhook_lane = 300;
  QueueRecord without_keys = plain;
  without_keys.settings.webhook = QueueWebhook{.url = "http://a"};
  for (const QueueRecord& record :
       {full_record(), plain, webhook_record(), with_lane, without_keys}) {
    const std::string key = queue_key(record.queue);
    EXPECT_EQ(parse_queue(key, queue_value(key, record)).value(), record);
  }
}

TEST(MetaFormat, EachSettingOfAQueueReadsBackAlone) {
  const QueueSettings all = full_record().settings;
  const auto expect_back = [](auto set) {
    QueueRecord record;
    record.queue = "q";
    set(record.settings);
    const std::string key = queue_key("q");
    EXPECT_EQ(parse_queue(key, queue_value(key, record)).value(), record);
  };
  expect_back([&](QueueSettings& s) { s.paused = true; });
  expect_back([&](QueueSettings& s) { s.max_attempts = all.max_attempts; });
  expect_back([&](QueueSettings& s) { s.visibility_timeout = all.visibility_timeout; });
  expect_back([&](QueueSettings& s) { s.backoff = all.backoff; });
  expect_back([&](QueueSettings& s) { s.max_tasks = all.max_tasks; });
  expect_back([&](QueueSettings& s) { s.max_bytes = all.max_bytes; });
  expect_back([&](QueueSettings& s) { s.rate = all.rate; });
  expect_back([&](QueueSettings& s) { s.concurrency = all.concurrency; });
  expect_back([&](QueueSettings& s) { s.partitions = 4; });
}

TEST(MetaFormat, QueueRecordIsTheseBytes) {
  QueueRecord record;
  record.queue = "q";
  record.number = 2;
  record.waiting = 300;
  record.settings.max_attempts = 9;
  const std::string key = queue_key("q");
  EXPECT_EQ(key, "q/q");
  const std::string value = queue_value(key, record);
  // Version, number, waiting, dead, bytes, in_ready_lane, in_webhook_lane; then flags, retention,
  // key retention (600 000), max_attempts.
  EXPECT_EQ(value.substr(0, value.size() - 4),
            std::string("\x01\x02\xAC\x02\0\0\0\0\x02\0\xC0\xCF\x24\x09", 14));
}

TEST(MetaFormat, QueueRecordWithAWebhookIsTheseBytes) {
  QueueRecord record;
  record.queue = "q";
  record.number = 2;
  record.in_webhook_lane = 5;
  record.settings.webhook = QueueWebhook{.url = "http://a", .keys = {"k"}};
  const std::string value = queue_value(queue_key("q"), record);
  // The bytes of the previous test, then the URL and the keys.
  EXPECT_EQ(value.substr(0, value.size() - 4),
            std::string("\x01\x02\0\0\0\0\x05\x80\x02\0\xC0\xCF\x24\x08http://a\x01\x01k", 25));
}

TEST(MetaFormat, QueueRecordWithPartitionsIsTheseBytes) {
  QueueRecord record;
  record.queue = "q";
  record.number = 2;
  record.settings.partitions = 200;
  const std::string value = queue_value(queue_key("q"), record);
  // The bytes of the plain record, then the number of partitions.
  EXPECT_EQ(value.substr(0, value.size() - 4),
            std::string("\x01\x02\0\0\0\0\0\x80\x04\0\xC0\xCF\x24\xC8\x01", 15));
}

TEST(MetaFormat, AnUnknownFlagInAQueueRecordIsRefused) {
  const auto read_with_flags = [](std::uint64_t flags) {
    const std::string key = queue_key("q");
    std::string bytes("\x01\x02\0\0\0\0\0", 7);
    ByteWriter writer(bytes);
    writer.varint(flags);
    writer.raw(std::string(2, '\0'));  // retention, key retention
    return parse_queue(key, meta_value(key, bytes));
  };
  EXPECT_TRUE(read_with_flags(0));
  for (unsigned bit = 10; bit < 64; ++bit) {
    const Result<QueueRecord> result = read_with_flags(std::uint64_t{1} << bit);
    ASSERT_FALSE(result) << "bit " << bit;
    EXPECT_NE(result.error().message.find("flag"), std::string::npos) << result.error().message;
  }
}

TEST(MetaFormat, AWebhookWithMoreThanThreeKeysIsRefused) {
  const std::string key = queue_key("q");
  const auto of_keys = [&](char count) {
    std::string bytes("\x01\x02\0\0\0\0\0\x80\x02\0\0\x01w", 13);
    bytes.push_back(count);
    bytes.append(static_cast<std::size_t>(count), '\0');
    return parse_queue(key, meta_value(key, bytes)).has_value();
  };
  EXPECT_TRUE(of_keys(3));
  EXPECT_FALSE(of_keys(4));
}

TEST(MetaFormat, ADamagedQueueRecordIsDataLoss) {
  const std::string key = queue_key("a/b");
  const std::string value = queue_value(key, webhook_record());
  for (std::size_t bit = 0; bit < 8 * value.size(); ++bit) {
    std::string flipped = value;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Result<QueueRecord> record = parse_queue(key, flipped);
    ASSERT_FALSE(record);
    ASSERT_EQ(record.error().code, ErrorCode::data_loss);
    ASSERT_NE(record.error().message.find("q/a/b"), std::string::npos);
  }
  EXPECT_FALSE(parse_queue(queue_key("c"), value));
}

TEST(MetaFormat, AnUnknownVersionOfAQueueRecordIsRefusedWithItsNumber) {
  const std::string key = queue_key("q");
  for (const char version : {'\0', '\2'}) {
    const Result<QueueRecord> record = parse_queue(key, meta_value(key, std::string(9, version)));
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().code, ErrorCode::data_loss);
    const std::string expected = "read \"q/q\": its version is " + std::to_string(int{version}) +
                                 ", this program reads version 1";
    EXPECT_EQ(record.error().message, expected);
  }
}

TEST(MetaFormat, KeyRecordsReadBackUnderTheirOwnKeyOnly) {
  KeyRecord record;
  record.queue = 3;
  record.key = "order-7";
  record.id = TaskId{256};
  record.content = ~0ull;
  const std::string key = key_key(record.queue, record.key);
  EXPECT_EQ(parse_key_value(key, key_value(key, record)).value(), record);
  record.expires_at = WallTime{milliseconds{1'700'000'000'000}};
  EXPECT_EQ(parse_key_value(key, key_value(key, record)).value(), record);
  EXPECT_EQ(parse_key_value(key_key(4, "order-7"), key_value(key, record)).error().code,
            ErrorCode::data_loss);
  EXPECT_EQ(parse_key_value("x", "").error().code, ErrorCode::data_loss);
}

}  // namespace
}  // namespace detent
