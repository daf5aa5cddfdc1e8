#include "store/schedule_format.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/test_seed.h"
#include "store/record_format.h"
#include "store/store.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr WallTime at(std::int64_t ms) { return WallTime{milliseconds{ms}}; }

/// A record in which each field differs from its default.
ScheduleRecord full_record() {
  ScheduleRecord record;
  record.schedule = {.name = "mail/report",
                     .rule = CronRule{"0 9 * * mon-fri"},
                     .time_zone = "Europe/Berlin",
                     .gap = ScheduleGap::run_after,
                     .repeat = ScheduleRepeat::both,
                     .queue = "mail.out",
                     .payload = {Payload::Kind::bytes, std::string("\x00\xFF payload", 10)},
                     .rules = {.priority = 7,
                               .max_attempts = 3,
                               .visibility_timeout = milliseconds{90'000},
                               .backoff = Backoff{milliseconds{10}, milliseconds{70}}},
                     .count = 365,
                     .start = at(1'600'000'000'456),
                     .end = at(1'800'000'000'789),
                     .jitter = milliseconds{30'000},
                     .misfire = Misfire::all,
                     .misfire_grace = milliseconds{5'000},
                     .misfire_limit = 10,
                     .overlap = ScheduleOverlap::queue_one};
  record.progress = {.created_at = at(1'500'000'000'123),
                     .decided_to = at(1'700'000'000'000),
                     .made = 77,
                     .overlapped = 2,
                     .last_at = at(1'699'999'000'000),
                     .last_task = TaskId{0x1234500},
                     .queued_at = at(1'700'000'000'000),
                     .paused = true};
  return record;
}

ScheduleRecord plain_record() {
  ScheduleRecord record;
  record.schedule.name = "s";
  record.schedule.queue = "q";
  return record;
}

/// One record for each kind of rule.
std::array<ScheduleRecord, 3> records_of_each_rule() {
  std::array<ScheduleRecord, 3> records{full_record(), full_record(), plain_record()};
  records[1].schedule.rule = IntervalRule{milliseconds{90'000}, at(1'600'000'000'000)};
  records[2].schedule.rule = CalendarRule{.anchor = at(1'700'000'000'000),
                                          .unit = CalendarRule::Unit::year,
                                          .every = 4,
                                          .month_end = CalendarRule::MonthEnd::skip};
  return records;
}

Result<ScheduleRecord> decoded(const ScheduleRecord& record) {
  return decode_schedule(record.schedule.name, encode_schedule(record));
}

std::string sealed(std::string_view name, std::string bytes) {
  seal(bytes, name);
  return bytes;
}

std::string random_bytes(Rng& rng, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

/// Makes valid records in which all fields are random.
class RandomRecords {
 public:
  explicit RandomRecords(Rng& rng) : rng_(rng) {}

  ScheduleRecord next() {
    ScheduleRecord record{random_schedule(), {}};
    ScheduleProgress& progress = record.progress;
    progress = {.created_at = any_time(), .decided_to = any_time(), .made = number()};
    progress.overlapped = number();
    if (coin()) progress.last_at = any_time();
    progress.last_task = TaskId{rng_.next()};
    if (coin()) progress.queued_at = any_time();
    progress.paused = coin();
    return record;
  }

 private:
  bool coin() { return rng_.below(2) == 0; }
  /// Small and large numbers are equally frequent; both ends of the range occur.
  std::uint64_t number() { return rng_.next() >> rng_.below(64); }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(number() % static_cast<std::uint64_t>(end));
  }
  milliseconds duration(milliseconds longest) { return milliseconds{below(longest.count() + 1)}; }
  WallTime any_time() { return at(static_cast<std::int64_t>(number())); }
  WallTime instant() { return at(below(253'402'300'800'000)); }
  template <class Choice>
  Choice choice(Choice last) {
    return static_cast<Choice>(rng_.below(static_cast<std::uint32_t>(last) + 1));
  }
  std::string name(std::uint32_t longest) {
    return std::string(1 + rng_.below(longest), static_cast<char>('a' + rng_.below(26)));
  }

  decltype(RecurringSchedule::rule) random_rule() {
    switch (rng_.below(3)) {
      case 0:
        return CronRule{random_bytes(rng_, rng_.below(60))};
      case 1:
        return IntervalRule{kLeastPeriod + duration(kMaxDelay - kLeastPeriod), instant()};
      default:
        return CalendarRule{.anchor = instant(),
                            .unit = choice(CalendarRule::Unit::year),
                            .every = 1 + rng_.below(100'000),
                            .month_end = choice(CalendarRule::MonthEnd::skip)};
    }
  }

  TaskRules random_rules() {
    TaskRules rules{.priority = static_cast<std::uint32_t>(number())};
    if (coin()) rules.max_attempts = 1 + rng_.below(kMaxAttempts);
    if (coin()) {
      rules.visibility_timeout = milliseconds{1} + duration(kMaxVisibilityTimeout) / 2;
    }
    if (coin()) {
      const milliseconds initial = duration(kMaxDelay);
      rules.backoff = Backoff{initial, initial + duration(kMaxDelay - initial)};
    }
    return rules;
  }

  RecurringSchedule random_schedule() {
    RecurringSchedule schedule{.name = name(kMaxScheduleNameBytes), .rule = random_rule()};
    schedule.time_zone = random_bytes(rng_, rng_.below(30));
    if (coin()) schedule.gap = choice(ScheduleGap::run_after);
    if (coin()) schedule.repeat = choice(ScheduleRepeat::both);
    schedule.queue = name(kMaxQueueNameBytes);
    schedule.payload = {choice(Payload::Kind::bytes), random_bytes(rng_, rng_.below(300))};
    schedule.rules = random_rules();
    if (coin()) schedule.count = number() | 1;
    if (coin()) schedule.start = instant();
    if (coin()) schedule.end = instant();
    if (schedule.start && schedule.end && *schedule.end <= *schedule.start) schedule.start.reset();
    schedule.jitter = duration(kMaxJitter);
    schedule.misfire = choice(Misfire::all);
    schedule.misfire_grace = duration(kMaxDelay);
    schedule.misfire_limit = 1 + rng_.below(kMaxMisfires);
    schedule.overlap = choice(ScheduleOverlap::queue_one);
    return schedule;
  }

  Rng& rng_;
};

TEST(ScheduleFormat, ReadsBackEveryField) {
  for (const ScheduleRecord& record : records_of_each_rule()) {
    EXPECT_EQ(decoded(record).value(), record);
  }
  EXPECT_EQ(decoded(plain_record()).value(), plain_record());
}

TEST(ScheduleFormat, ReadsBackEachOptionalFieldAlone) {
  const auto expect_back =
      [](const std::function<void(RecurringSchedule&, ScheduleProgress&)>& set) {
        ScheduleRecord record = plain_record();
        set(record.schedule, record.progress);
        EXPECT_NE(record, plain_record());
        EXPECT_EQ(decoded(record).value(), record);
      };
  expect_back([](auto& s, auto&) { s.gap = ScheduleGap::skip; });
  expect_back([](auto& s, auto&) { s.repeat = ScheduleRepeat::first; });
  expect_back([](auto& s, auto&) { s.payload.kind = Payload::Kind::bytes; });
  expect_back([](auto& s, auto&) { s.rules.max_attempts = 1; });
  expect_back([](auto& s, auto&) { s.rules.visibility_timeout = milliseconds{1}; });
  expect_back([](auto& s, auto&) { s.rules.backoff = Backoff{}; });
  expect_back([](auto& s, auto&) { s.count = 1; });
  expect_back([](auto& s, auto&) { s.start = WallTime{}; });
  expect_back([](auto& s, auto&) { s.end = WallTime{}; });
  expect_back([](auto&, auto& p) { p.last_at = WallTime{}; });
  expect_back([](auto&, auto& p) { p.queued_at = WallTime{}; });
  expect_back([](auto&, auto& p) { p.paused = true; });
}

TEST(ScheduleFormat, ReadsBackRandomSchedules) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  RandomRecords records(rng);
  for (int i = 0; i < 20'000; ++i) {
    const ScheduleRecord record = records.next();
    ASSERT_EQ(decoded(record).value(), record);
  }
}

TEST(ScheduleFormat, ReadsBackTheLimits) {
  ScheduleRecord record = full_record();
  RecurringSchedule& schedule = record.schedule;
  schedule.name.assign(kMaxScheduleNameBytes, 's');
  schedule.rule = IntervalRule{kMaxDelay, WallTime{}};
  schedule.queue.assign(kMaxQueueNameBytes, 'q');
  schedule.payload.data.assign(kMaxPayloadBytes, '\xEE');
  schedule.count = ~std::uint64_t{0};
  schedule.jitter = kMaxJitter;
  schedule.misfire_limit = kMaxMisfires;
  record.progress.created_at = WallTime::min();
  record.progress.decided_to = kNeverDue;
  record.progress.made = record.progress.overlapped = ~std::uint64_t{0};
  EXPECT_EQ(decoded(record).value(), record);
}

// These three tests fix the format: if one fails, schedules that are already stored cannot be read.
TEST(ScheduleFormat, AScheduleByCronIsTheseBytes) {
  ScheduleRecord record = plain_record();
  RecurringSchedule& schedule = record.schedule;
  schedule.rule = CronRule{"0 9 * * *"};
  schedule.gap = ScheduleGap::run_after;
  schedule.repeat = ScheduleRepeat::second;
  schedule.rules = {.priority = 7,
                    .max_attempts = 3,
                    .visibility_timeout = milliseconds{9},
                    .backoff = Backoff{milliseconds{5}, milliseconds{6}}};
  schedule.payload = {Payload::Kind::bytes, "hi"};
  schedule.count = 300;
  schedule.start = at(1);
  schedule.end = at(2);
  schedule.jitter = milliseconds{4};
  schedule.misfire = Misfire::all;
  schedule.overlap = ScheduleOverlap::queue_one;
  record.progress = {.created_at = at(11),
                     .decided_to = at(12),
                     .made = 13,
                     .overlapped = 14,
                     .last_at = at(15),
                     .last_task = TaskId{256},
                     .queued_at = at(16),
                     .paused = true};
  const std::string expected(
      "\x01"          // version
      "\xFF\x1F"      // flags: all twelve
      "\x00"          // cron
      "\x09"          // … its expression
      "0 9 * * *"     //
      "\x03UTC"       // time zone
      "\x01"          // gap: run_after
      "\x01"          // repeat: second
      "\x01q"         // queue
      "\x07"          // priority
      "\x03"          // max_attempts
      "\x09"          // visibility_timeout
      "\x05\x06"      // backoff
      "\x02hi"        // payload
      "\xAC\x02"      // count 300
      "\x01"          // start
      "\x02"          // end
      "\x04"          // jitter
      "\x02"          // misfire: all
      "\xE0\xD4\x03"  // misfire_grace 60 000
      "\x64"          // misfire_limit 100
      "\x02"          // overlap: queue_one
      "\x0B\x0C"      // created_at, decided_to
      "\x0D\x0E"      // made, overlapped
      "\x0F"          // last_at
      "\x80\x02"      // last_task 256
      "\x10",         // queued_at
      49);
  EXPECT_EQ(encode_schedule(record), sealed("s", expected));
}

TEST(ScheduleFormat, AScheduleByIntervalIsTheseBytes) {
  ScheduleRecord record = plain_record();
  record.schedule.rule = IntervalRule{milliseconds{1'000}, at(300)};
  const std::string expected(
      "\x01"          // version
      "\x00"          // flags
      "\x01"          // interval
      "\xE8\x07"      // … its period 1 000
      "\xAC\x02"      // … its anchor 300
      "\x03UTC"       // time zone
      "\x01q"         // queue
      "\x80\x08"      // priority 1024
      "\x04null"      // payload
      "\x00"          // jitter
      "\x01"          // misfire: once
      "\xE0\xD4\x03"  // misfire_grace 60 000
      "\x64"          // misfire_limit 100
      "\x00"          // overlap: allow
      "\0\0\0\0\0",
      32);  // created_at, decided_to, made, overlapped, last_task
  EXPECT_EQ(encode_schedule(record), sealed("s", expected));
}

TEST(ScheduleFormat, AScheduleByTheCalendarIsTheseBytes) {
  ScheduleRecord record = plain_record();
  record.schedule.rule = CalendarRule{.anchor = at(300),
                                      .unit = CalendarRule::Unit::month,
                                      .every = 3,
                                      .month_end = CalendarRule::MonthEnd::skip};
  const std::string expected(
      "\x01\x00"  // version, flags
      "\x02"      // calendar
      "\xAC\x02"  // … its anchor 300
      "\x02"      // … its unit: month
      "\x03"      // … every
      "\x01"      // … at the end of a month: skip
      "\x03UTC\x01q\x80\x08\x04null\x00\x01\xE0\xD4\x03\x64\x00\0\0\0\0\0",
      33);
  EXPECT_EQ(encode_schedule(record), sealed("s", expected));
}

TEST(ScheduleFormat, EveryFlippedBitIsRefused) {
  for (const ScheduleRecord& record : records_of_each_rule()) {
    const std::string bytes = encode_schedule(record);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] =
          static_cast<char>(static_cast<unsigned char>(damaged[bit / 8]) ^ (1u << (bit % 8)));
      const Result<ScheduleRecord> result = decode_schedule(record.schedule.name, damaged);
      ASSERT_FALSE(result) << "bit " << bit;
      ASSERT_EQ(result.error().code, ErrorCode::data_loss);
    }
  }
}

TEST(ScheduleFormat, EveryTruncationAndEveryAppendedByteIsRefused) {
  const std::string& name = full_record().schedule.name;
  const std::string bytes = encode_schedule(full_record());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A cut record is not a schedule, even if it is sealed again.
    const std::string cut = bytes.substr(0, size);
    for (const std::string& some : {cut, sealed(name, cut)}) {
      if (some == bytes) continue;
      const Result<ScheduleRecord> result = decode_schedule(name, some);
      ASSERT_FALSE(result) << "size " << size;
      ASSERT_EQ(result.error().code, ErrorCode::data_loss);
    }
  }
  const std::string fields = bytes.substr(0, bytes.size() - 4);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_FALSE(decode_schedule(name, bytes + static_cast<char>(byte)));
    EXPECT_FALSE(decode_schedule(name, sealed(name, fields + static_cast<char>(byte))));
  }
}

// The reader must return only schedules that encode_schedule() accepts without stopping the
// process.
TEST(ScheduleFormat, BytesWithARightChecksumCrashNeitherTheReaderNorTheWriter) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  RandomRecords records(rng);
  int readable = 0;
  constexpr int kRuns = 50'000;
  for (int i = 0; i < kRuns; ++i) {
    std::string bytes = encode_schedule(records.next());
    bytes.resize(bytes.size() - 4);
    const std::uint32_t damages = 1 + rng.below(3);
    for (std::uint32_t n = 0; n < damages; ++n) {
      bytes[1 + rng.below(static_cast<std::uint32_t>(bytes.size() - 1))] =
          static_cast<char>(rng.below(256));
    }
    if (const Result<ScheduleRecord> record = decode_schedule("s", sealed("s", bytes))) {
      ++readable;
      ASSERT_EQ(decoded(*record).value(), *record);
    } else {
      ASSERT_EQ(record.error().code, ErrorCode::data_loss);
    }
  }
  EXPECT_GT(readable, 0);  // some were read, so the seals are right
  EXPECT_LT(readable, kRuns);
}

/// Encodes a calendar schedule, changes one byte, seals the bytes again and decodes them.
Result<ScheduleRecord> decode_changed(std::size_t position, int byte) {
  ScheduleRecord record = plain_record();
  record.schedule.rule = CalendarRule{.anchor = WallTime{}};
  record.schedule.gap = ScheduleGap::skip;
  record.schedule.repeat = ScheduleRepeat::first;
  std::string bytes = encode_schedule(record);
  bytes.resize(bytes.size() - 4);
  bytes.at(position) = static_cast<char>(byte);
  return decode_schedule("s", sealed("s", bytes));
}

TEST(ScheduleFormat, AnUnknownChoiceIsRefused) {
  struct Choice {
    std::size_t position;
    int count;
  };
  // Positions: version, flags; kind, anchor, unit, every, month_end; time zone (4 bytes), gap,
  // repeat; queue (2), priority (2), payload (5); jitter, misfire, grace (3), limit, overlap.
  for (const auto& [position, count] :
       {Choice{4, 4}, Choice{6, 2}, Choice{11, 2}, Choice{12, 3}, Choice{23, 3}, Choice{28, 3}}) {
    for (int value = 0; value < 256; ++value) {
      const Result<ScheduleRecord> result = decode_changed(position, value);
      ASSERT_EQ(result.has_value(), value < count) << "at " << position << ", " << value;
      if (!result) {
        EXPECT_EQ(result.error().message, "read schedule \"s\": the value " +
                                              std::to_string(value) + " of a setting is unknown");
      }
    }
  }
  for (int value = 3; value < 256; ++value) EXPECT_FALSE(decode_changed(2, value));
}

TEST(ScheduleFormat, AnUnknownFlagIsRefused) {
  const auto read_with_flags = [](std::uint64_t flags) {
    std::string bytes = encode_schedule(plain_record());
    bytes =
        bytes.substr(2, bytes.size() - 6);  // the bytes after version and flags, without the seal
    std::string changed;
    ByteWriter writer(changed);
    writer.u8(1);
    writer.varint(flags);
    writer.raw(bytes);
    return decode_schedule("s", sealed("s", changed));
  };
  EXPECT_EQ(read_with_flags(0).value(), plain_record());
  for (unsigned bit = 12; bit < 64; ++bit) {
    const Result<ScheduleRecord> result = read_with_flags(std::uint64_t{1} << bit);
    ASSERT_FALSE(result) << "bit " << bit;
    ASSERT_EQ(result.error().code, ErrorCode::data_loss);
    if (bit < 32) {
      EXPECT_NE(result.error().message.find("flag"), std::string::npos);
    }
  }
}

TEST(ScheduleFormat, AnInvalidScheduleIsRefused) {
  const Result<ScheduleRecord> result = decode_changed(5, 0);  // every 0 years
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  EXPECT_EQ(result.error().message.find("read schedule \"s\": calendar: "), 0u);
  EXPECT_FALSE(decode_changed(14, '!'));    // the name of the queue
  EXPECT_FALSE(decode_changed(22 + 5, 0));  // misfire_limit
}

TEST(ScheduleFormat, IsRefusedUnderAnotherName) {
  const Result<ScheduleRecord> result = decode_schedule("t", encode_schedule(plain_record()));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  EXPECT_EQ(result.error().message, "read schedule \"t\": its checksum does not match");
}

TEST(ScheduleFormat, AnUnknownVersionIsRefusedWithItsNumber) {
  std::string bytes = encode_schedule(plain_record());
  for (const char version : {'\0', '\2'}) {
    bytes[0] = version;
    const Result<ScheduleRecord> result = decode_schedule("s", bytes);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
    const std::string expected = "schedule \"s\": its version is " + std::to_string(int{version});
    EXPECT_NE(result.error().message.find(expected), std::string::npos) << result.error().message;
  }
}

// Uses only records whose first byte, a part of the checksum, looks like a known version.
TEST(ScheduleFormat, ARecordOfOnlyAMatchingChecksumIsRefused) {
  int looked_at = 0;
  for (int n = 0; n < 2'000; ++n) {
    const std::string name = "s" + std::to_string(n);
    const std::string bytes = sealed(name, "");
    if (bytes[0] != 1) continue;
    ++looked_at;
    const Result<ScheduleRecord> result = decode_schedule(name, bytes);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  }
  EXPECT_GT(looked_at, 0);
}

TEST(ScheduleFormatDeathTest, EncodingAnInvalidScheduleIsABug) {
  ScheduleRecord record = plain_record();
  record.schedule.name.assign(kMaxScheduleNameBytes + 1, 's');
  EXPECT_DEATH(encode_schedule(record), "validate");
  record = plain_record();
  record.schedule.misfire_limit = 0;
  EXPECT_DEATH(encode_schedule(record), "validate");
}

}  // namespace
}  // namespace detent
