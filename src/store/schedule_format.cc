#include "store/schedule_format.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "detent/check.h"
#include "store/record_fields.h"
#include "store/record_format.h"

namespace detent {

namespace {

// The flags in addition to kTaskFlags. All other bits must be 0.
constexpr unsigned kPaused = 1u << 1;
constexpr unsigned kHasGap = 1u << 5;
constexpr unsigned kHasRepeat = 1u << 6;
constexpr unsigned kHasCount = 1u << 7;
constexpr unsigned kHasStart = 1u << 8;
constexpr unsigned kHasEnd = 1u << 9;
constexpr unsigned kHasLastAt = 1u << 10;
constexpr unsigned kHasQueuedAt = 1u << 11;
constexpr unsigned kKnownFlags = (1u << 12) - 1;
static_assert((kTaskFlags & (kPaused | kHasGap)) == 0 && kTaskFlags < kHasGap);

// A kind of rule is stored as its index in the variant. A choice is stored as its number in the
// enum.
using Rule = decltype(RecurringSchedule::rule);
static_assert(std::is_same_v<std::variant_alternative_t<0, Rule>, CronRule>);
static_assert(std::is_same_v<std::variant_alternative_t<1, Rule>, IntervalRule>);
static_assert(std::is_same_v<std::variant_alternative_t<2, Rule>, CalendarRule>);
static_assert(static_cast<unsigned>(CalendarRule::Unit::year) == 3);
static_assert(static_cast<unsigned>(CalendarRule::MonthEnd::skip) == 1);
static_assert(static_cast<unsigned>(ScheduleGap::run_after) == 1);
static_assert(static_cast<unsigned>(ScheduleRepeat::both) == 2);
static_assert(static_cast<unsigned>(Misfire::all) == 2);
static_assert(static_cast<unsigned>(ScheduleOverlap::queue_one) == 2);

unsigned flags_of(const ScheduleRecord& record) {
  const auto& [schedule, progress] = record;
  unsigned flags = flags_of(schedule.payload, schedule.rules);
  if (progress.paused) flags |= kPaused;
  if (schedule.gap) flags |= kHasGap;
  if (schedule.repeat) flags |= kHasRepeat;
  if (schedule.count) flags |= kHasCount;
  if (schedule.start) flags |= kHasStart;
  if (schedule.end) flags |= kHasEnd;
  if (progress.last_at) flags |= kHasLastAt;
  if (progress.queued_at) flags |= kHasQueuedAt;
  return flags;
}

template <class Choice>
void write_choice(ByteWriter& writer, Choice choice) {
  writer.u8(static_cast<std::uint8_t>(choice));
}

/// `last` is the last value of the enum.
template <class Choice>
Result<Choice> read_choice(ByteReader& reader, Choice last) {
  ASSIGN_OR_RETURN(const std::uint8_t value, reader.u8());
  if (value > static_cast<std::uint8_t>(last))
    return damaged_record("the value " + std::to_string(value) + " of a setting is unknown");
  return static_cast<Choice>(value);
}

// ---- the rule ----

void write_rule(ByteWriter& writer, const Rule& rule) {
  writer.u8(static_cast<std::uint8_t>(rule.index()));
  if (const auto* cron = std::get_if<CronRule>(&rule)) {
    writer.string(cron->expression);
  } else if (const auto* interval = std::get_if<IntervalRule>(&rule)) {
    write_duration(writer, interval->period);
    write_time(writer, interval->anchor.value_or(WallTime{}));
  } else {
    const auto& calendar = std::get<CalendarRule>(rule);
    write_time(writer, calendar.anchor.value_or(WallTime{}));
    write_choice(writer, calendar.unit);
    writer.varint(calendar.every);
    write_choice(writer, calendar.month_end);
  }
}

Result<IntervalRule> read_interval(ByteReader& reader) {
  IntervalRule rule;
  ASSIGN_OR_RETURN(rule.period, read_duration(reader));
  ASSIGN_OR_RETURN(rule.anchor, read_time(reader));
  return rule;
}

Result<CalendarRule> read_calendar(ByteReader& reader) {
  CalendarRule rule;
  ASSIGN_OR_RETURN(rule.anchor, read_time(reader));
  ASSIGN_OR_RETURN(rule.unit, read_choice(reader, CalendarRule::Unit::year));
  ASSIGN_OR_RETURN(rule.every, read_u32(reader));
  ASSIGN_OR_RETURN(rule.month_end, read_choice(reader, CalendarRule::MonthEnd::skip));
  return rule;
}

Result<Rule> read_rule(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint8_t kind, reader.u8());
  if (kind == 0) {
    ASSIGN_OR_RETURN(const std::string_view expression, reader.string());
    return Rule(CronRule{std::string(expression)});
  }
  if (kind == 1) {
    ASSIGN_OR_RETURN(IntervalRule rule, read_interval(reader));
    return Rule(rule);
  }
  if (kind == 2) {
    ASSIGN_OR_RETURN(CalendarRule rule, read_calendar(reader));
    return Rule(rule);
  }
  return damaged_record("its rule has the unknown kind " + std::to_string(kind));
}

// ---- the other parts, in their order in the record ----

void write_task(ByteWriter& writer, const RecurringSchedule& schedule) {
  writer.string(schedule.queue);
  writer.varint(schedule.rules.priority);
  write_optional_rules(writer, schedule.rules);
  writer.string(schedule.payload.data);
}

Result<void> read_task(ByteReader& reader, unsigned flags, RecurringSchedule& schedule) {
  ASSIGN_OR_RETURN(schedule.queue, read_string(reader, kMaxQueueNameBytes));
  ASSIGN_OR_RETURN(schedule.rules.priority, read_u32(reader));
  TRY(read_optional_rules(reader, flags, schedule.rules));
  schedule.payload.kind = payload_kind_of(flags);
  ASSIGN_OR_RETURN(schedule.payload.data, read_string(reader, kMaxPayloadBytes));
  return ok();
}

void write_bounds(ByteWriter& writer, const RecurringSchedule& schedule) {
  if (schedule.count) writer.varint(*schedule.count);
  if (schedule.start) write_time(writer, *schedule.start);
  if (schedule.end) write_time(writer, *schedule.end);
  write_duration(writer, schedule.jitter);
  write_choice(writer, schedule.misfire);
  write_duration(writer, schedule.misfire_grace);
  writer.varint(schedule.misfire_limit);
  write_choice(writer, schedule.overlap);
}

Result<void> read_bounds(ByteReader& reader, unsigned flags, RecurringSchedule& schedule) {
  if (flags & kHasCount) {
    ASSIGN_OR_RETURN(schedule.count, reader.varint());
  }
  if (flags & kHasStart) {
    ASSIGN_OR_RETURN(schedule.start, read_time(reader));
  }
  if (flags & kHasEnd) {
    ASSIGN_OR_RETURN(schedule.end, read_time(reader));
  }
  ASSIGN_OR_RETURN(schedule.jitter, read_duration(reader));
  ASSIGN_OR_RETURN(schedule.misfire, read_choice(reader, Misfire::all));
  ASSIGN_OR_RETURN(schedule.misfire_grace, read_duration(reader));
  ASSIGN_OR_RETURN(schedule.misfire_limit, read_u32(reader));
  ASSIGN_OR_RETURN(schedule.overlap, read_choice(reader, ScheduleOverlap::queue_one));
  return ok();
}

void write_progress(ByteWriter& writer, const ScheduleProgress& progress) {
  write_time(writer, progress.created_at);
  write_time(writer, progress.decided_to);
  writer.varint(progress.made);
  writer.varint(progress.overlapped);
  if (progress.last_at) write_time(writer, *progress.last_at);
  writer.varint(progress.last_task.value);
  if (progress.queued_at) write_time(writer, *progress.queued_at);
}

Result<void> read_progress(ByteReader& reader, unsigned flags, ScheduleProgress& progress) {
  progress.paused = (flags & kPaused) != 0;
  ASSIGN_OR_RETURN(progress.created_at, read_time(reader));
  ASSIGN_OR_RETURN(progress.decided_to, read_time(reader));
  ASSIGN_OR_RETURN(progress.made, reader.varint());
  ASSIGN_OR_RETURN(progress.overlapped, reader.varint());
  if (flags & kHasLastAt) {
    ASSIGN_OR_RETURN(progress.last_at, read_time(reader));
  }
  ASSIGN_OR_RETURN(progress.last_task.value, reader.varint());
  if (flags & kHasQueuedAt) {
    ASSIGN_OR_RETURN(progress.queued_at, read_time(reader));
  }
  return ok();
}

/// Reads the fields in the order of encode_schedule().
Result<ScheduleRecord> read_fields(std::string_view name, std::string_view fields) {
  ByteReader reader(fields);
  TRY(reader.u8());  // the version
  ScheduleRecord record;
  RecurringSchedule& schedule = record.schedule;
  schedule.name = name;
  ASSIGN_OR_RETURN(const std::uint32_t flags, read_u32(reader));
  if ((flags & ~kKnownFlags) != 0) {
    return damaged_record("a flag is set that version 1 does not have");
  }
  ASSIGN_OR_RETURN(schedule.rule, read_rule(reader));
  ASSIGN_OR_RETURN(const std::string_view time_zone, reader.string());
  schedule.time_zone = time_zone;
  if (flags & kHasGap) {
    ASSIGN_OR_RETURN(schedule.gap, read_choice(reader, ScheduleGap::run_after));
  }
  if (flags & kHasRepeat) {
    ASSIGN_OR_RETURN(schedule.repeat, read_choice(reader, ScheduleRepeat::both));
  }
  TRY(read_task(reader, flags, schedule));
  TRY(read_bounds(reader, flags, schedule));
  TRY(read_progress(reader, flags, record.progress));
  TRY(reader.expect_end());
  return record;
}

Result<ScheduleRecord> decode(std::string_view name, std::string_view bytes) {
  ByteReader reader(bytes);
  ASSIGN_OR_RETURN(const unsigned version, reader.u8());
  // Check the version before the checksum, because another version may seal its records
  // differently.
  if (version != kScheduleVersion) {
    return damaged_record("its version is " + std::to_string(version) +
                          ", this program reads version " + std::to_string(kScheduleVersion));
  }
  ASSIGN_OR_RETURN(const std::string_view fields, unseal(bytes, name));
  ASSIGN_OR_RETURN(ScheduleRecord record, read_fields(name, fields));
  if (const Result<void> valid = validate(record.schedule); !valid) {
    return damaged_record(valid.error().field + ": " + valid.error().message);
  }
  return record;
}

}  // namespace

std::string encode_schedule(const ScheduleRecord& record) {
  const auto& [schedule, progress] = record;
  DETENT_CHECK(validate(schedule).has_value());
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u8(kScheduleVersion);
  writer.varint(flags_of(record));
  write_rule(writer, schedule.rule);
  writer.string(schedule.time_zone);
  if (schedule.gap) write_choice(writer, *schedule.gap);
  if (schedule.repeat) write_choice(writer, *schedule.repeat);
  write_task(writer, schedule);
  write_bounds(writer, schedule);
  write_progress(writer, progress);
  seal(bytes, schedule.name);
  DETENT_DCHECK(decode(schedule.name, bytes).value() == record);
  return bytes;
}

Result<ScheduleRecord> decode_schedule(std::string_view name, std::string_view bytes) {
  Result<ScheduleRecord> record = decode(name, bytes);
  if (record) return record;
  return with_context("read schedule \"" + std::string(name) + "\"", std::move(record).error());
}

}  // namespace detent
