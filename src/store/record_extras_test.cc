// Tests of the optional fields after the payload in the record of a task: when they are written,
// and which values are read.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/record_format.h"
#include "store/record_rig.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kHistory = 1u << 7;
constexpr unsigned kTally = 1u << 8;
constexpr unsigned kWebhook = 1u << 9;
constexpr unsigned kHeaders = 1u << 10;
constexpr unsigned kLate = 1u << 11;

Result<Task> read_back(const Task& task) { return decode_record(task.id, encode_record(task)); }

TEST(RecordExtras, ATallyIsReadBack) {
  Task task = full_task();
  for (std::uint32_t TaskTally::*const count :
       {&TaskTally::leases, &TaskTally::run_outs, &TaskTally::releases, &TaskTally::burials,
        &TaskTally::redrives}) {
    task.tally = {};
    task.tally.*count = std::numeric_limits<std::uint32_t>::max();
    EXPECT_EQ(read_back(task), task);
  }
  task.tally = {.leases = 1,
                .run_outs = 2,
                .releases = 3,
                .burials = 4,
                .redrives = 5,
                .delay = milliseconds{6}};
  EXPECT_EQ(read_back(task), task);
  const RawRecord empty{.flags = kTally, .after = std::string(6, '\0')};
  EXPECT_FALSE(empty.read()) << "the tally is empty, so the writer would not set the flag";
  const RawRecord cut_off{.flags = kTally, .after = std::string(5, '\1')};
  EXPECT_FALSE(cut_off.read());
  const RawRecord whole{.flags = kTally, .after = std::string(6, '\1')};
  EXPECT_TRUE(whole.read());
  const RawRecord without_flag{.after = std::string(6, '\1')};
  EXPECT_FALSE(without_flag.read());
}

std::string extras_of(const std::vector<std::string>& strings, std::size_t headers = 0) {
  std::string bytes;
  ByteWriter writer(bytes);
  if (headers != 0) writer.varint(headers);
  for (const std::string& text : strings) writer.string(text);
  return bytes;
}

TEST(RecordExtras, AWebhookAndHeadersAreReadBack) {
  const Task plain = example_task();
  Task task = plain;
  task.webhook = "http://a/b";
  EXPECT_EQ(read_back(task), task);
  task.headers = {{"X-A", "b"}, {"c", ""}};
  EXPECT_EQ(read_back(task), task);
  task.webhook.clear();
  task.tally.leases = 1;
  EXPECT_EQ(read_back(task), task);
  // Without these fields, the record is as short as before.
  task.headers.clear();
  EXPECT_EQ(read_back(task), task);
  task.tally = {};
  EXPECT_EQ(encode_record(task), encode_record(plain));
}

// Fixes the format: if this test fails, records that are already stored cannot be read.
TEST(RecordExtras, EachFieldIsTheseBytesInThisOrder) {
  Task task = example_task();
  task.history = {{.started_at = WallTime{milliseconds{301}},
                   .ended_at = WallTime{milliseconds{600}},
                   .late = {milliseconds{0}, milliseconds{1}, milliseconds{2}, milliseconds{300}}}};
  task.tally = {.leases = 1,
                .run_outs = 2,
                .releases = 3,
                .burials = 4,
                .redrives = 5,
                .delay = milliseconds{6}};
  task.webhook = "http://a";
  task.headers = {{"k", "v"}};
  const std::string fields(
      "\x01"                   // version
      "\x84\x1F"               // flags: max_attempts, history, tally, webhook, headers, late
      "\xAC\x02"               // due_at 300
      "\x05"                   // created_at
      "\x80\x08"               // priority 1024
      "\x00"                   // attempts
      "\x09"                   // max_attempts
      "\x01q"                  // queue
      "\x01"                   // attempts in the history
      "\xAD\x02"               // started_at 301
      "\xD8\x04"               // ended_at 600
      "\x00\x00"               // worker, error
      "\x02{}"                 // payload
      "\x01\x02\x03\x04\x05"   // tally: leases, run_outs, releases, burials, redrives
      "\x06"                   // … delay of the last release
      "\x08http://a"           // webhook
      "\x01"                   // headers
      "\x01k\x01v"             // … name, value
      "\x00\x01\x02\xAC\x02",  // late: before the start, engine, limit, worker 300
      47);
  EXPECT_EQ(encode_record(task), sealed(task.id, fields));
}

TEST(RecordExtras, AreReadUpToTheirLimitsAndRefusedBeyond) {
  const auto read = [](unsigned flags, std::string after) {
    return RawRecord{.flags = flags, .after = std::move(after)}.read().has_value();
  };
  EXPECT_TRUE(read(kWebhook, extras_of({"http://a"})));
  EXPECT_TRUE(read(kWebhook, extras_of({std::string(kMaxWebhookBytes, 'w')})));
  EXPECT_TRUE(read(kHeaders, extras_of({"a", "b"}, 1)));
  EXPECT_TRUE(read(kHeaders, extras_of({std::string(64, 'n'), std::string(1'024, 'v')}, 1)));
  EXPECT_FALSE(read(kWebhook, "")) << "the webhook is missing";
  EXPECT_FALSE(read(kWebhook | kHeaders, extras_of({"http://a"}))) << "headers are missing";
  EXPECT_FALSE(read(0, extras_of({"http://a"}))) << "the webhook has no flag";
  EXPECT_FALSE(read(kWebhook, extras_of({""})));
  EXPECT_FALSE(read(kWebhook, extras_of({std::string(kMaxWebhookBytes + 1, 'w')})));
  EXPECT_FALSE(read(kHeaders, extras_of({std::string(65, 'n'), ""}, 1)));
  EXPECT_FALSE(read(kHeaders, extras_of({"n", std::string(1'025, 'v')}, 1)));
  EXPECT_FALSE(read(kHeaders, std::string(1, '\0'))) << "no header";
  EXPECT_FALSE(read(kHeaders, extras_of(std::vector<std::string>(34, "n"), 17)));
  EXPECT_FALSE(read(kHeaders, extras_of(std::vector<std::string>(10, std::string(60, 'n')), 4)));
  EXPECT_FALSE(
      read(kHeaders, extras_of({"a", std::string(1'024, 'v'), "b", std::string(1'024, 'v'), "c",
                                std::string(1'024, 'v'), "d", std::string(1'021, 'v')},
                               4)));
  EXPECT_FALSE(read(kWebhook, extras_of({"http://a"}) + "x"));
}

TEST(RecordExtras, ALateAttemptIsReadBack) {
  Task task = example_task();
  task.history = {{.worker = "w"}, {.error = "no"}};
  const std::size_t plain_size = encode_record(task).size();
  task.history[1].late = {milliseconds{0}, milliseconds{1}, milliseconds{2}, milliseconds{300}};
  const std::string record = encode_record(task);
  EXPECT_EQ(record.size(), plain_size + 9) << "four parts of two attempts, one of two bytes";
  EXPECT_EQ(record.substr(record.size() - 4 - 9, 9), unhex("00000000000102AC02"));
  EXPECT_EQ(read_back(task), task);
  task.webhook = "http://a";
  task.headers = {{"k", "v"}};
  task.tally.leases = 2;
  EXPECT_EQ(read_back(task), task);
}

TEST(RecordExtras, LatenessIsReadOnlyForTheAttemptsInTheHistory) {
  const auto read = [](unsigned flags, const std::string& history, const std::string& after) {
    return RawRecord{.flags = flags, .rest = history, .after = after}.read().has_value();
  };
  const std::string one("\1\0\0\0\0", 5);  // a history of one attempt
  EXPECT_TRUE(read(kHistory | kLate, one, unhex("00000001")));
  EXPECT_FALSE(read(kHistory | kLate, one, unhex("00000000")))
      << "no attempt is late, so the writer would not set the flag";
  EXPECT_FALSE(read(kHistory | kLate, one, unhex("000001"))) << "a cause is missing";
  EXPECT_FALSE(read(kHistory | kLate, one, unhex("0000000001"))) << "a part of a second attempt";
  EXPECT_FALSE(read(kLate, "", "")) << "no attempts";
  EXPECT_FALSE(read(kHistory | kLate, one, unhex("000000FFFFFFFFFFFFFFFFFF01")))
      << "negative lateness";
}

}  // namespace
}  // namespace detent
