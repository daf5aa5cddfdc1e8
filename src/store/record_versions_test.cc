// What versions 3 to 5 of a task's record add: when they are written, and what of them is read.
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

TEST(Record, ATallyMakesItVersion3) {
  Task task = full_task();
  EXPECT_EQ(encode_record(task).front(), '\2');
  for (std::uint32_t TaskTally::*const count :
       {&TaskTally::leases, &TaskTally::run_outs, &TaskTally::releases, &TaskTally::burials,
        &TaskTally::redrives}) {
    task.tally = {};
    task.tally.*count = std::numeric_limits<std::uint32_t>::max();
    EXPECT_EQ(encode_record(task).front(), '\3');
    EXPECT_EQ(decode_record(task.id, encode_record(task)), task);
  }
  task.tally = {.leases = 1,
                .run_outs = 2,
                .releases = 3,
                .burials = 4,
                .redrives = 5,
                .delay = milliseconds{6}};
  EXPECT_EQ(decode_record(task.id, encode_record(task)), task);
  const RawRecord empty{.version = 3, .after = std::string(6, '\0')};
  EXPECT_FALSE(empty.read()) << "would be written as version 2";
  const RawRecord cut_off{.version = 3, .after = std::string(5, '\1')};
  EXPECT_FALSE(cut_off.read());
  const RawRecord whole{.version = 3, .after = std::string(6, '\1')};
  EXPECT_TRUE(whole.read());
}

/// What stands behind the payload in version 4.
std::string extras_of(std::uint8_t which, const std::vector<std::string>& strings,
                      std::size_t headers = 0) {
  std::string bytes(1, static_cast<char>(which));
  ByteWriter writer(bytes);
  if (headers != 0) writer.varint(headers);
  for (const std::string& text : strings) writer.string(text);
  return bytes;
}

TEST(Record, AWebhookOrHeadersMakeItVersion4) {
  const Task plain = example_task();
  Task task = plain;
  task.webhook = "http://a/b";
  EXPECT_EQ(encode_record(task).front(), '\4');
  EXPECT_EQ(decode_record(task.id, encode_record(task)), task);
  task.headers = {{"X-A", "b"}, {"c", ""}};
  EXPECT_EQ(decode_record(task.id, encode_record(task)), task);
  task.webhook.clear();
  task.tally.leases = 1;
  EXPECT_EQ(encode_record(task).front(), '\4');
  EXPECT_EQ(decode_record(task.id, encode_record(task)), task);
  // Without either it is as it always was.
  task.headers.clear();
  EXPECT_EQ(encode_record(task).front(), '\3');
  task.tally = {};
  EXPECT_EQ(encode_record(task), encode_record(plain));
}

TEST(Record, Version4IsTheseBytes) {
  Task task = example_task();
  task.webhook = "http://a";
  task.headers = {{"k", "v"}};
  const std::string record = encode_record(task);
  EXPECT_EQ(record.substr(0, record.size() - 4), unhex("0404AC02058008000901710"
                                                       "27B7D0608687474703A2F2F6101016B0176"));
}

TEST(Record, WhatVersion4AddsIsReadToItsLimitsAndNotBeyond) {
  const auto read = [](std::string after) {
    return RawRecord{.version = 4, .after = std::move(after)}.read().has_value();
  };
  EXPECT_TRUE(read(extras_of(2, {"http://a"})));
  EXPECT_TRUE(read(extras_of(2, {std::string(kMaxWebhookBytes, 'w')})));
  EXPECT_TRUE(read(extras_of(4, {"a", "b"}, 1)));
  EXPECT_TRUE(read(extras_of(4, {std::string(64, 'n'), std::string(1'024, 'v')}, 1)));
  EXPECT_FALSE(read("")) << "it does not say what there is";
  EXPECT_FALSE(read(extras_of(0, {}))) << "would be written as version 2";
  EXPECT_FALSE(read(extras_of(1, {}) + std::string(6, '\1'))) << "would be written as version 3";
  EXPECT_FALSE(read(extras_of(2 | 8, {"http://a"}))) << "a bit that nobody knows";
  EXPECT_FALSE(read(extras_of(2, {""})));
  EXPECT_FALSE(read(extras_of(2, {std::string(kMaxWebhookBytes + 1, 'w')})));
  EXPECT_FALSE(read(extras_of(4, {std::string(65, 'n'), ""}, 1)));
  EXPECT_FALSE(read(extras_of(4, {"n", std::string(1'025, 'v')}, 1)));
  EXPECT_FALSE(read(extras_of(4, std::vector<std::string>(34, "n"), 17)));
  EXPECT_FALSE(read(extras_of(4, std::vector<std::string>(10, std::string(60, 'n')), 4)));
  EXPECT_FALSE(read(extras_of(4,
                              {"a", std::string(1'024, 'v'), "b", std::string(1'024, 'v'), "c",
                               std::string(1'024, 'v'), "d", std::string(1'021, 'v')},
                              4)));
  EXPECT_FALSE(read(extras_of(2, {"http://a"}) + "x"));
}

TEST(Record, AnAttemptThatBeganLateMakesItVersion5) {
  Task task = example_task();
  task.history = {{.worker = "w"}, {.error = "no"}};
  EXPECT_EQ(encode_record(task).front(), '\2');
  task.history[1].late = {milliseconds{0}, milliseconds{1}, milliseconds{2}, milliseconds{300}};
  const std::string record = encode_record(task);
  EXPECT_EQ(record.front(), '\5');
  EXPECT_EQ(record.substr(record.size() - 4 - 10, 10), unhex("0800000000000102AC02"));
  EXPECT_EQ(decode_record(task.id, record), task);
  task.webhook = "http://a";
  task.headers = {{"k", "v"}};
  task.tally.leases = 2;
  EXPECT_EQ(encode_record(task).front(), '\5');
  EXPECT_EQ(decode_record(task.id, encode_record(task)), task);
}

TEST(Record, WhatVersion5AddsIsOfTheAttemptsThereAre) {
  const auto read = [](std::uint8_t flags, const std::string& history, const std::string& after) {
    return RawRecord{.version = 5, .flags = flags, .rest = history, .after = after}
        .read()
        .has_value();
  };
  constexpr std::uint8_t kHistory = 1u << 7;
  const std::string one("\1\0\0\0\0", 5);  // attempts
  EXPECT_TRUE(read(kHistory, one, unhex("0800000001")));
  EXPECT_FALSE(read(kHistory, one, unhex("0800000000"))) << "would be written as version 2";
  EXPECT_FALSE(read(kHistory, one, unhex("08000001"))) << "a cause is missing";
  EXPECT_FALSE(read(kHistory, one, unhex("080000000001"))) << "of two attempts";
  EXPECT_FALSE(read(0, "", unhex("08"))) << "of none";
  EXPECT_FALSE(read(kHistory, one, unhex("08000000FFFFFFFFFFFFFFFFFF01"))) << "early";
  EXPECT_FALSE(read(0, "", unhex("0208") + "http://a")) << "would be written as version 4";
  EXPECT_FALSE(read(kHistory, one, unhex("1800000001"))) << "a bit that nobody knows";
}

}  // namespace
}  // namespace detent
