// Tests the records of tasks and recurring schedules:
//
//  - A written record reads back unchanged.
//  - A reader refuses a record with a flipped bit, or under another id or name.
//  - If a reader accepts any bytes as a record, that record can be written again.
#include <chrono>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/wall_time.h"
#include "detent/check.h"
#include "store/record_format.h"
#include "store/schedule_format.h"
#include "task/limits.h"
#include "task/recurring_schedule.h"
#include "tests/fuzz/fuzz_inputs.h"
#include "tests/fuzz/input_bytes.h"

namespace detent::fuzz {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kName = "report";

TaskRules rules_of(InputBytes& bytes) {
  TaskRules rules{.priority = static_cast<std::uint32_t>(bytes.number(4))};
  if (bytes.coin()) {
    rules.max_attempts = static_cast<std::uint32_t>(bytes.number_of(1, kMaxAttempts));
  }
  if (bytes.coin()) {
    rules.visibility_timeout = bytes.duration_of(milliseconds{1}, kMaxVisibilityTimeout);
  }
  if (bytes.coin()) {
    const milliseconds initial = bytes.duration_of(milliseconds{0}, kMaxDelay);
    rules.backoff = Backoff{.initial = initial, .max = bytes.duration_of(initial, kMaxDelay)};
  }
  return rules;
}

Payload payload_of(InputBytes& bytes) {
  const auto kind = bytes.coin() ? Payload::Kind::json : Payload::Kind::bytes;
  return {kind, bytes.text(200)};
}

Task task_of(TaskId id, InputBytes& bytes) {
  Task task{.id = id,
            .queue = bytes.text(kMaxQueueNameBytes),
            .payload = payload_of(bytes),
            .rules = rules_of(bytes),
            .due_at = bytes.time(),
            .created_at = bytes.time()};
  task.attempts = static_cast<std::uint32_t>(bytes.number(4));
  task.standing = static_cast<Standing>(bytes.byte() % 4);
  task.key = bytes.text(kMaxKeyBytes);
  for (unsigned count = bytes.byte() % (kMaxHistory + 1); count > 0; --count) {
    task.history.push_back({.started_at = bytes.time(),
                            .ended_at = bytes.time(),
                            .worker = bytes.text(kMaxWorkerBytes),
                            .error = bytes.text(kMaxErrorBytes)});
  }
  if (!bytes.coin()) return task;
  for (std::uint32_t* count :
       {&task.tally.leases, &task.tally.run_outs, &task.tally.releases, &task.tally.burials}) {
    *count = static_cast<std::uint32_t>(bytes.number(4));
  }
  task.tally.delay = bytes.duration();
  for (Attempt& attempt : task.history) {
    attempt.late[bytes.byte() % kLatenessCauses] = milliseconds{bytes.byte()};
  }
  return task;
}

/// Flips one bit.
std::string flipped(std::string bytes, std::uint64_t at) {
  char& byte = bytes[at / 8 % bytes.size()];
  byte = static_cast<char>(byte ^ (1 << at % 8));
  return bytes;
}

void expect_same_again(const Task& task) {
  const Result<Task> again = decode_record(task.id, encode_record(task));
  DETENT_CHECK(again.has_value() && *again == task);
}

void expect_same_again(const ScheduleRecord& record) {
  const Result<ScheduleRecord> again =
      decode_schedule(record.schedule.name, encode_schedule(record));
  DETENT_CHECK(again.has_value() && *again == record);
}

template <class Record>
void expect_damage(const Result<Record>& read) {
  DETENT_CHECK(!read.has_value() && read.error().code == ErrorCode::data_loss);
  DETENT_CHECK(!read.error().message.empty());
}

template <class Record>
void expect_sound_or_damage(const Result<Record>& read) {
  if (!read) return expect_damage(read);
  expect_same_again(*read);
}

/// A valid instant for a schedule.
WallTime date(InputBytes& bytes) {
  return WallTime{} +
         bytes.duration_of(milliseconds{0}, kWallTimeEnd - WallTime{} - milliseconds{1});
}

decltype(RecurringSchedule::rule) rule_of(InputBytes& bytes) {
  switch (bytes.byte() % 3) {
    case 0:
      return CronRule{bytes.text(200)};
    case 1:
      return IntervalRule{.period = bytes.duration_of(kLeastPeriod, kMaxDelay),
                          .anchor = date(bytes)};
    default:
      return CalendarRule{.anchor = date(bytes),
                          .unit = static_cast<CalendarRule::Unit>(bytes.byte() % 4),
                          .every = static_cast<std::uint32_t>(bytes.number_of(1, 100'000)),
                          .month_end = static_cast<CalendarRule::MonthEnd>(bytes.byte() % 2)};
  }
}

/// A valid schedule, except that its end can be before its start.
RecurringSchedule schedule_of(InputBytes& bytes) {
  RecurringSchedule schedule;
  schedule.name = kName;
  schedule.rule = rule_of(bytes);
  schedule.time_zone = bytes.text(40);
  if (bytes.coin()) schedule.gap = static_cast<ScheduleGap>(bytes.byte() % 2);
  if (bytes.coin()) schedule.repeat = static_cast<ScheduleRepeat>(bytes.byte() % 3);
  schedule.queue = std::string(1 + bytes.byte() % kMaxQueueNameBytes, 'q');
  schedule.payload = payload_of(bytes);
  schedule.rules = rules_of(bytes);
  if (bytes.coin()) schedule.count = bytes.number_of(1, 1'000'000'000'000);
  if (bytes.coin()) schedule.start = date(bytes);
  if (bytes.coin()) schedule.end = date(bytes);
  schedule.jitter = bytes.duration_of(milliseconds{0}, kMaxJitter);
  schedule.misfire = static_cast<Misfire>(bytes.byte() % 3);
  schedule.misfire_grace = bytes.duration_of(milliseconds{0}, kMaxDelay);
  schedule.misfire_limit = static_cast<std::uint32_t>(bytes.number_of(1, kMaxMisfires));
  schedule.overlap = static_cast<ScheduleOverlap>(bytes.byte() % 3);
  return schedule;
}

ScheduleProgress progress_of(InputBytes& bytes) {
  ScheduleProgress progress{.created_at = bytes.time(),
                            .decided_to = bytes.time(),
                            .made = bytes.number(8),
                            .overlapped = bytes.number(8),
                            .last_task = {bytes.number(8)},
                            .paused = bytes.coin()};
  if (bytes.coin()) progress.last_at = bytes.time();
  if (bytes.coin()) progress.queued_at = bytes.time();
  return progress;
}

}  // namespace

void stored_tasks(std::string_view input) {
  InputBytes bytes(input);
  const unsigned how = bytes.byte() % 3;
  const TaskId id{bytes.number_of(1, TaskId::kEnd - 1)};
  if (how == 0) {
    const std::uint64_t bit = bytes.number(4);
    const Task task = task_of(id, bytes);
    expect_same_again(task);
    const std::string record = encode_record(task);
    expect_damage(decode_record(id, flipped(record, bit)));
    expect_damage(decode_record({id.value ^ 1}, record));
    return;
  }
  std::string record(bytes.rest());
  if (how == 2) {
    std::string context;
    ByteWriter(context).u64(id.value);
    seal(record, context);
  }
  expect_sound_or_damage(decode_record(id, record));
}

void stored_schedules(std::string_view input) {
  InputBytes bytes(input);
  const unsigned how = bytes.byte() % 3;
  if (how == 0) {
    const std::uint64_t bit = bytes.number(4);
    const ScheduleRecord record{schedule_of(bytes), progress_of(bytes)};
    if (!validate(record.schedule)) return;  // its end is before its start, so it is never written
    expect_same_again(record);
    const std::string text = encode_schedule(record);
    expect_damage(decode_schedule(kName, flipped(text, bit)));
    expect_damage(decode_schedule("other", text));
    return;
  }
  std::string record(bytes.rest());
  if (how == 2) seal(record, kName);
  const Result<ScheduleRecord> read = decode_schedule(kName, record);
  if (read) DETENT_CHECK(validate(read->schedule).has_value());
  expect_sound_or_damage(read);
}

}  // namespace detent::fuzz
