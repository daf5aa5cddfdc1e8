#include "store/record_format.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/test_seed.h"
#include "store/store.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Every field differs from its default.
Task full_task() {
  Task task;
  task.id = TaskId{0x1234567};
  task.queue = "mail.out";
  task.payload = {Payload::Kind::bytes, std::string("\x00\xFF payload", 10)};
  task.rules = {.priority = 7,
                .max_attempts = 3,
                .visibility_timeout = milliseconds{90'000},
                .backoff = Backoff{milliseconds{10}, milliseconds{70}}};
  task.due_at = WallTime{milliseconds{1'700'000'000'123}};
  task.created_at = WallTime{milliseconds{1'600'000'000'456}};
  task.attempts = 2;
  task.dead = true;
  task.last_error = "connection refused";
  return task;
}

Task plain_task() {
  Task task;
  task.id = TaskId{256};
  task.queue = "q";
  return task;
}

std::string random_bytes(Rng& rng, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

Task random_task(Rng& rng) {
  // As many small numbers as large ones, and both ends.
  const auto number = [&rng] { return rng.next() >> rng.below(64); };
  const auto number32 = [&rng] {
    return static_cast<std::uint32_t>(rng.next() >> (32 + rng.below(32)));
  };
  const auto duration = [&] { return milliseconds{static_cast<std::int64_t>(number())}; };
  Task task;
  task.id = TaskId{1 + rng.next() % (TaskId::kEnd - 1)};
  task.queue.assign(1 + rng.below(200), static_cast<char>('a' + rng.below(26)));
  task.payload.kind = rng.below(2) == 0 ? Payload::Kind::json : Payload::Kind::bytes;
  task.payload.data = random_bytes(rng, rng.below(300));
  task.rules.priority = number32();
  if (rng.below(2) == 0) task.rules.max_attempts = number32();
  if (rng.below(2) == 0) task.rules.visibility_timeout = duration();
  if (rng.below(2) == 0) task.rules.backoff = Backoff{duration(), duration()};
  task.due_at = WallTime{duration()};
  task.created_at = WallTime{duration()};
  task.attempts = number32();
  task.dead = rng.below(2) == 0;
  task.last_error = random_bytes(rng, rng.below(100));
  return task;
}

TEST(Record, ReadsBackEveryField) {
  for (const Task& task : {full_task(), plain_task()}) {
    EXPECT_EQ(decode_record(task.id, encode_record(task)).value(), task);
  }
}

TEST(Record, ReadsBackRandomTasks) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int i = 0; i < 20'000; ++i) {
    const Task task = random_task(rng);
    ASSERT_EQ(decode_record(task.id, encode_record(task)).value(), task);
  }
}

TEST(Record, ReadsBackTheLimits) {
  Task task = full_task();
  task.queue.assign(kMaxQueueNameBytes, 'q');
  task.payload.data.assign(kMaxPayloadBytes, '\xEE');
  task.last_error.assign(kMaxErrorBytes, 'e');
  task.rules.priority = std::numeric_limits<std::uint32_t>::max();
  task.attempts = std::numeric_limits<std::uint32_t>::max();
  task.due_at = kNeverDue;
  task.id = TaskId{TaskId::kEnd - 1};
  EXPECT_EQ(decode_record(task.id, encode_record(task)).value(), task);
}

// Holds the format still: if this fails, stored records of earlier versions no longer read.
TEST(Record, Version1IsTheseBytes) {
  Task task = plain_task();
  task.payload = {Payload::Kind::json, "{}"};
  task.due_at = WallTime{milliseconds{300}};
  task.created_at = WallTime{milliseconds{5}};
  task.rules.max_attempts = 9;
  const std::string expected_fields(
      "\x01"      // version
      "\x04"      // flags: has max_attempts
      "\xAC\x02"  // due_at 300
      "\x05"      // created_at
      "\x80\x08"  // priority 1024
      "\x00"      // attempts
      "\x09"      // max_attempts
      "\x01q"     // queue
      "\x00"      // last_error
      "\x02{}",
      15);  // payload
  const std::string record = encode_record(task);
  EXPECT_EQ(record.substr(0, record.size() - 4), expected_fields);
  EXPECT_EQ(record.size(), 19u);
}

TEST(Record, EveryFlippedBitIsRefused) {
  const Task task = full_task();
  const std::string record = encode_record(task);
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    std::string damaged = record;
    damaged[bit / 8] =
        static_cast<char>(static_cast<unsigned char>(damaged[bit / 8]) ^ (1u << (bit % 8)));
    const Result<Task> result = decode_record(task.id, damaged);
    ASSERT_FALSE(result) << "bit " << bit;
    ASSERT_EQ(result.error().code, ErrorCode::data_loss);
  }
}

TEST(Record, EveryTruncationAndEveryAppendedByteIsRefused) {
  const Task task = full_task();
  const std::string record = encode_record(task);
  for (std::size_t size = 0; size < record.size(); ++size) {
    const Result<Task> result = decode_record(task.id, std::string_view(record).substr(0, size));
    ASSERT_FALSE(result) << "size " << size;
    ASSERT_EQ(result.error().code, ErrorCode::data_loss);
  }
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_FALSE(decode_record(task.id, record + static_cast<char>(byte)));
  }
}

TEST(Record, NoBytesThatPassTheChecksumCrashTheReader) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::size_t readable = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = encode_record(random_task(rng));
    bytes.resize(bytes.size() - 4);
    const std::size_t damages = 1 + rng.below(3);
    for (std::size_t n = 0; n < damages; ++n) {
      bytes[1 + rng.below(static_cast<std::uint32_t>(bytes.size() - 1))] =
          static_cast<char>(rng.below(256));
    }
    const TaskId id{77};
    std::string context;
    ByteWriter(context).u64(id.value);
    seal(bytes, context);
    if (const Result<Task> task = decode_record(id, bytes)) {
      ++readable;
    } else {
      ASSERT_EQ(task.error().code, ErrorCode::data_loss);
    }
  }
  EXPECT_GT(readable, 0u);  // the seal was right, so the fields were reached
  EXPECT_LT(readable, 50'000u);
}

TEST(Record, IsRefusedUnderAnotherId) {
  const Task task = full_task();
  const Result<Task> result = decode_record(task.id.next(), encode_record(task));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::data_loss);
}

TEST(Record, UnknownVersionIsSaidClearly) {
  std::string record = encode_record(plain_task());
  record[0] = 2;
  const Result<Task> result = decode_record(TaskId{256}, record);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  EXPECT_NE(result.error().message.find("task 256"), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find("version is 2"), std::string::npos)
      << result.error().message;
}

TEST(RecordDeathTest, OversizeIsABugOfTheCaller) {
  Task task = plain_task();
  task.payload.data.assign(kMaxPayloadBytes + 1, 'x');
  EXPECT_DEATH(encode_record(task), "kMaxPayloadBytes");
}

TEST(Seal, ContextIsPartOfTheChecksum) {
  std::string bytes = "value";
  seal(bytes, "key");
  EXPECT_EQ(unseal(bytes, "key").value(), "value");
  EXPECT_FALSE(unseal(bytes, "kez"));
  EXPECT_FALSE(unseal("", "key"));
}

}  // namespace
}  // namespace detent
