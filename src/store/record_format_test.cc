#include "store/record_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/test_seed.h"
#include "store/record_rig.h"
#include "store/store.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

std::string random_bytes(Rng& rng, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

Task random_task(Rng& rng) {
  // Small and large numbers are equally frequent; both ends of the range occur.
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
  task.standing = static_cast<Standing>(rng.below(4));
  if (rng.below(2) == 0) task.key = random_bytes(rng, rng.below(kMaxKeyBytes + 1));
  const std::size_t attempts = rng.below(2) == 0 ? 0 : rng.below(kMaxHistory + 1);
  for (std::size_t i = 0; i < attempts; ++i) {
    add_attempt(task, {.started_at = WallTime{duration()},
                       .ended_at = WallTime{duration()},
                       .worker = random_bytes(rng, rng.below(30)),
                       .error = random_bytes(rng, rng.below(100))});
  }
  for (Attempt& attempt : task.history) {
    if (rng.below(4) == 0) attempt.late[rng.below(4)] = milliseconds{number32()};
  }
  if (rng.below(4) == 0) task.tally.leases = number32();
  if (rng.below(4) == 0) task.webhook = random_bytes(rng, rng.below(100));
  const std::size_t headers = rng.below(4) == 0 ? rng.below(kMaxHeaders + 1) : 0;
  for (std::size_t i = 0; i < headers; ++i) {
    task.headers.push_back(
        {random_bytes(rng, rng.below(kMaxHeaderNameBytes + 1)), random_bytes(rng, rng.below(100))});
  }
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
  task.key.assign(kMaxKeyBytes, 'k');
  task.history.assign(kMaxHistory, {.started_at = kNeverDue,
                                    .ended_at = WallTime::min(),
                                    .worker = std::string(kMaxWorkerBytes, 'w'),
                                    .error = std::string(kMaxErrorBytes, 'e')});
  task.rules.priority = std::numeric_limits<std::uint32_t>::max();
  task.attempts = std::numeric_limits<std::uint32_t>::max();
  task.due_at = kNeverDue;
  task.id = TaskId{TaskId::kEnd - 1};
  EXPECT_EQ(decode_record(task.id, encode_record(task)).value(), task);
}

TEST(Record, ReadsBackEveryStanding) {
  for (const Standing standing :
       {Standing::live, Standing::dead, Standing::completed, Standing::cancelled}) {
    Task task = plain_task();
    task.standing = standing;
    EXPECT_EQ(decode_record(task.id, encode_record(task)).value(), task);
  }
}

// These two tests fix the format: if one fails, records that are already stored cannot be read.
TEST(Record, APlainTaskIsTheseBytes) {
  const std::string fields = unhex("0104AC0205800800090171027B7D");
  EXPECT_EQ(encode_record(example_task()), sealed(example_task().id, fields));
}

TEST(Record, ATaskWithKeyAndHistoryIsTheseBytes) {
  Task task = example_task();
  task.standing = Standing::completed;
  task.key = "k";
  task.history = {{.started_at = WallTime{milliseconds{301}},
                   .ended_at = WallTime{milliseconds{600}},
                   .worker = "w",
                   .error = "no"}};
  const std::string expected_fields(
      "\x01"      // version
      "\xC6\x01"  // flags: has key, has max_attempts, standing 2, has history
      "\xAC\x02"  // due_at 300
      "\x05"      // created_at
      "\x80\x08"  // priority 1024
      "\x00"      // attempts
      "\x09"      // max_attempts
      "\x01q"     // queue
      "\x01k"     // key
      "\x01"      // attempts in the history
      "\xAD\x02"  // started_at 301
      "\xD8\x04"  // ended_at 600
      "\x01w"     // worker
      "\x02no"    // error
      "\x02{}",   // payload
      27);
  EXPECT_EQ(encode_record(task), sealed(task.id, expected_fields));
}

TEST(Record, EveryFlippedBitIsRefused) {
  const std::string record = encode_record(full_task());
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    std::string damaged = record;
    damaged[bit / 8] =
        static_cast<char>(static_cast<unsigned char>(damaged[bit / 8]) ^ (1u << (bit % 8)));
    const Result<Task> result = decode_record(full_task().id, damaged);
    ASSERT_FALSE(result) << "bit " << bit;
    ASSERT_EQ(result.error().code, ErrorCode::data_loss);
  }
}

TEST(Record, EveryTruncationAndEveryAppendedByteIsRefused) {
  const TaskId id = full_task().id;
  const std::string record = encode_record(full_task());
  for (std::size_t size = 0; size < record.size(); ++size) {
    const Result<Task> result = decode_record(id, std::string_view(record).substr(0, size));
    ASSERT_FALSE(result) << "size " << size;
    ASSERT_EQ(result.error().code, ErrorCode::data_loss);
  }
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_FALSE(decode_record(id, record + static_cast<char>(byte)));
  }
}

bool is_late(const Attempt& attempt) { return attempt.late != LatenessParts{}; }

// encode_record() stops the process if a task exceeds a limit. So the reader must refuse such
// tasks: each task that it returns can be written again.
TEST(Record, BytesWithARightChecksumCrashNeitherTheReaderNorTheWriter) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  constexpr TaskId kId{77};
  std::size_t readable = 0;
  std::array<std::size_t, 4> with_extra{};  // a tally, a webhook, headers, a late attempt
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = encode_record(random_task(rng));
    bytes.resize(bytes.size() - 4);
    const std::size_t damages = 1 + rng.below(3);
    for (std::size_t n = 0; n < damages; ++n) {
      bytes[1 + rng.below(static_cast<std::uint32_t>(bytes.size() - 1))] =
          static_cast<char>(rng.below(256));
    }
    if (const Result<Task> task = decode_record(kId, sealed(kId, bytes))) {
      ++readable;
      if (task->tally != TaskTally{}) ++with_extra[0];
      if (!task->webhook.empty()) ++with_extra[1];
      if (!task->headers.empty()) ++with_extra[2];
      if (std::ranges::any_of(task->history, is_late)) ++with_extra[3];
      ASSERT_EQ(decode_record(kId, encode_record(*task)).value(), *task);
    } else {
      ASSERT_EQ(task.error().code, ErrorCode::data_loss);
    }
  }
  // Each extra field was read at least once, so the seals of the damaged records are right.
  for (const std::size_t count : with_extra) EXPECT_GT(count, 0u);
  EXPECT_LT(readable, 50'000u);
}

std::string string_of(std::size_t size) {
  std::string bytes;
  ByteWriter(bytes).string(std::string(size, 's'));
  return bytes;
}

std::string history_of(std::size_t count, std::size_t worker_size, std::size_t error_size) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.varint(count);
  for (std::size_t i = 0; i < count; ++i) {
    writer.raw(std::string(2, '\0'));  // started_at, ended_at
    writer.raw(string_of(worker_size) + string_of(error_size));
  }
  return bytes;
}

TEST(Record, AFieldIsReadUpToItsLimitAndRefusedBeyond) {
  constexpr unsigned kKey = 1u << 1;
  constexpr unsigned kHistory = 1u << 7;
  const RawRecord kept[] = {{.queue = std::string(kMaxQueueNameBytes, 'q')},
                            {.payload = std::string(kMaxPayloadBytes, 'p')},
                            {.flags = kKey, .rest = string_of(1)},
                            {.flags = kKey, .rest = string_of(kMaxKeyBytes)},
                            {.flags = kHistory, .rest = history_of(1, 0, 0)},
                            {.flags = kHistory, .rest = history_of(kMaxHistory, 1, 1)},
                            {.flags = kHistory, .rest = history_of(1, kMaxWorkerBytes, 0)},
                            {.flags = kHistory, .rest = history_of(1, 0, kMaxErrorBytes)}};
  for (const RawRecord& record : kept) {
    EXPECT_TRUE(record.read()) << "record " << &record - kept;
  }
  const RawRecord broken[] = {{.queue = std::string(kMaxQueueNameBytes + 1, 'q')},
                              {.payload = std::string(kMaxPayloadBytes + 1, 'p')},
                              {.flags = kKey, .rest = string_of(0)},
                              {.flags = kKey, .rest = string_of(kMaxKeyBytes + 1)},
                              {.flags = kHistory, .rest = history_of(0, 0, 0)},
                              {.flags = kHistory, .rest = history_of(kMaxHistory + 1, 1, 1)},
                              {.flags = kHistory, .rest = history_of(1, kMaxWorkerBytes + 1, 0)},
                              {.flags = kHistory, .rest = history_of(1, 0, kMaxErrorBytes + 1)}};
  for (const RawRecord& record : broken) {
    const Result<Task> result = record.read();
    ASSERT_FALSE(result) << "record " << &record - broken;
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  }
}

TEST(Record, AnUnknownFlagIsRefused) {
  EXPECT_TRUE(RawRecord{}.read());
  for (unsigned bit = 12; bit < 32; ++bit) {
    const Result<Task> result = RawRecord{.flags = 1u << bit}.read();
    ASSERT_FALSE(result) << "bit " << bit;
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
    EXPECT_NE(result.error().message.find("flag"), std::string::npos) << result.error().message;
  }
}

TEST(Record, IsRefusedUnderAnotherId) {
  const Task task = full_task();
  const Result<Task> result = decode_record(task.id.next(), encode_record(task));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::data_loss);
}

TEST(Record, AnUnknownVersionIsRefusedWithItsNumber) {
  std::string record = encode_record(plain_task());
  for (const char version : {'\0', '\2'}) {
    record[0] = version;
    const Result<Task> result = decode_record(TaskId{256}, record);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
    const std::string expected = "task 256: its version is " + std::to_string(int{version}) +
                                 ", this program reads version 1";
    EXPECT_NE(result.error().message.find(expected), std::string::npos) << result.error().message;
  }
}

// Uses only records whose first byte, a part of the checksum, looks like a known version.
TEST(Record, ARecordOfOnlyAMatchingChecksumIsRefused) {
  int looked_at = 0;
  for (std::uint64_t n = 1; n < 2'000; ++n) {
    const std::string record = sealed(TaskId{n}, "");
    if (record[0] != 1) continue;
    ++looked_at;
    const Result<Task> result = decode_record(TaskId{n}, record);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  }
  EXPECT_GT(looked_at, 0);
}

TEST(RecordDeathTest, EncodingATaskAboveItsLimitsIsABug) {
  Task task = plain_task();
  task.payload.data.assign(kMaxPayloadBytes + 1, 'x');
  EXPECT_DEATH(encode_record(task), "kMaxPayloadBytes");
  task = plain_task();
  task.key.assign(kMaxKeyBytes + 1, 'x');
  EXPECT_DEATH(encode_record(task), "kMaxKeyBytes");
  task = plain_task();
  task.history.resize(kMaxHistory + 1);
  EXPECT_DEATH(encode_record(task), "kMaxHistory");
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
