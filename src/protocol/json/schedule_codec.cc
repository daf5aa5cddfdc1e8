#include "protocol/json/schedule_codec.h"

#include <array>
#include <functional>
#include <utility>
#include <variant>

#include "protocol/json/field_table.h"
#include "protocol/json/task_fields.h"

namespace detent::json {

using Unit = CalendarRule::Unit;
using MonthEnd = CalendarRule::MonthEnd;
template <>
struct Words<Unit> : WordList<Unit::day, Unit::week, Unit::month, Unit::year> {};
template <>
struct Words<MonthEnd> : WordList<MonthEnd::clamp, MonthEnd::skip> {};
template <>
struct Words<ScheduleGap> : WordList<ScheduleGap::skip, ScheduleGap::run_after> {};
template <>
struct Words<ScheduleRepeat>
    : WordList<ScheduleRepeat::first, ScheduleRepeat::second, ScheduleRepeat::both> {};
template <>
struct Words<Misfire> : WordList<Misfire::skip, Misfire::once, Misfire::all> {};
template <>
struct Words<ScheduleOverlap>
    : WordList<ScheduleOverlap::allow, ScheduleOverlap::skip, ScheduleOverlap::queue_one> {};

namespace {

using CalendarFields =
    Table<Optional<"every", &CalendarRule::every>, Required<"unit", &CalendarRule::unit>,
          Optional<"month_end", &CalendarRule::month_end>>;
using CalendarCodec = Object<CalendarFields, R"(an object such as {"every":3,"unit":"month"})">;
using Period = Duration<"every", &IntervalRule::period, kMaxDelay, kRequired>;

/// The rule: a cron expression, or one of two kinds of rules with an anchor.
struct RuleField {
  static constexpr std::size_t kSlots = 5;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{"cron", "every", "every_ms",
                                                               "calendar", "anchor"};
  static Result<void> read(auto /*form*/, const JsonField* slots, RecurringSchedule& schedule) {
    const JsonField& cron = slots[0];
    const JsonField* const every = slots + 1;
    const JsonField& calendar = slots[3];
    const JsonField& anchor = slots[4];
    const bool has_every = every[0].given() || every[1].given();
    if (int{cron.given()} + int{has_every} + int{calendar.given()} != 1) {
      return Error{ErrorCode::invalid_argument, "give one of cron, every and calendar", "cron"};
    }
    if (cron.given() && anchor.given()) {
      return Error{ErrorCode::invalid_argument, "a cron expression has no anchor", "anchor"};
    }
    std::optional<WallTime> first;
    if (anchor.given()) {
      ASSIGN_OR_RETURN(first, read_time(anchor));
    }
    if (cron.given()) {
      ASSIGN_OR_RETURN(schedule.rule.emplace<CronRule>().expression, read_string(cron));
      return ok();
    }
    if (has_every) {
      auto& rule = schedule.rule.emplace<IntervalRule>();
      rule.anchor = first;
      return Period::read(kRequest, every, rule);
    }
    auto& rule = schedule.rule.emplace<CalendarRule>();
    rule.anchor = first;
    return CalendarCodec::read(kRequest, calendar, rule);
  }
  static void write(auto /*form*/, JsonWriter& writer, const RecurringSchedule& schedule) {
    const auto write_anchor = [&writer](const std::optional<WallTime>& anchor) {
      if (anchor) write_time(writer.name("anchor"), *anchor);
    };
    if (const auto* cron = std::get_if<CronRule>(&schedule.rule)) {
      writer.name("cron").string(cron->expression);
    } else if (const auto* interval = std::get_if<IntervalRule>(&schedule.rule)) {
      writer.name("every_ms").number(interval->period.count());
      write_anchor(interval->anchor);
    } else if (const auto* calendar = std::get_if<CalendarRule>(&schedule.rule)) {
      write_object<CalendarFields>(kRequest, writer.name("calendar"), *calendar);
      write_anchor(calendar->anchor);
    }
  }
};

/// A field that has the form of a request everywhere, also in dumps and answers.
template <class One>
using AsSent = As<Form::request, One>;

/// The part that a user sets, but the payload is only read.
using RuleOfFields = Table<
    RuleField, Optional<"time_zone", &RecurringSchedule::time_zone>,
    Sparse<"gap", &RecurringSchedule::gap>, Sparse<"repeat", &RecurringSchedule::repeat>,
    Required<"queue", &RecurringSchedule::queue>,
    OnlyRead<AsSent<PayloadField<&RecurringSchedule::payload>>>,
    AsSent<Part<&RecurringSchedule::rules, RuleFields>>,
    Sparse<"count", &RecurringSchedule::count, Range<1, kMaxInt64>>,
    Sparse<"start", &RecurringSchedule::start>, Sparse<"end", &RecurringSchedule::end>,
    AsSent<Duration<"jitter", &RecurringSchedule::jitter, kMaxJitter, kOptional>>,
    Optional<"misfire", &RecurringSchedule::misfire>,
    AsSent<Duration<"misfire_grace", &RecurringSchedule::misfire_grace, kMaxDelay, kOptional>>,
    Optional<"misfire_limit", &RecurringSchedule::misfire_limit>,
    Optional<"overlap", &RecurringSchedule::overlap>>;
using ScheduleFields = RequestBody<RecurringSchedule, RuleOfFields,
                                   OnlyWritten<PayloadField<&RecurringSchedule::payload>>>;

using ProgressFields = Table<Required<"created_at", &ScheduleProgress::created_at>,
                             Required<"decided_to", &ScheduleProgress::decided_to>,
                             Required<"paused", &ScheduleProgress::paused>,
                             Required<"made", &ScheduleProgress::made, Count>,
                             Required<"overlapped", &ScheduleProgress::overlapped, Count>,
                             Sparse<"last_at", &ScheduleProgress::last_at>,
                             AsSent<Sparse<"last_task", &ScheduleProgress::last_task>>,
                             Sparse<"queued_at", &ScheduleProgress::queued_at>>;

constexpr auto kSchedule = kAt<&ScheduleView::record, &ScheduleRecord::schedule>;
using ViewFields =
    AnswerBody<ScheduleView, Required<"name", kAt<kSchedule, &RecurringSchedule::name>>,
               OnlyWritten<Required<"state", state_of>>, Sparse<"error", &ScheduleView::broken>,
               Required<"words", &ScheduleView::words>, Sparse<"next_at", &ScheduleView::next_at>,
               AsSent<Part<kSchedule, ScheduleFields>>,
               Part<kAt<&ScheduleView::record, &ScheduleRecord::progress>, ProgressFields>>;

/// The payload of a schedule in a dump, which RuleOfFields reads if it is not a text.
struct DumpedPayload {
  static constexpr std::size_t kSlots = 1;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{"payload_text"};

  static Result<void> read(auto /*form*/, const JsonField* text, ScheduleRecord& record) {
    if (!text->given()) return ok();
    if (record.schedule.payload != Payload{}) return too_many_forms(*text);
    ASSIGN_OR_RETURN(record.schedule.payload, read_payload_text(*text));
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const ScheduleRecord& record) {
    write_payload(writer, record.schedule.payload, form);
  }
};
using RecordFields =
    Body<Form::dump, ScheduleRecord,
         Required<"name", kAt<&ScheduleRecord::schedule, &RecurringSchedule::name>>,
         Part<&ScheduleRecord::schedule, RuleOfFields>,
         Part<&ScheduleRecord::progress, ProgressFields>, DumpedPayload>;

using LimitField = Sparse<"limit", &BackfillRange::limit, Range<1, kMaxBackfill>>;
using RangeFields =
    RequestBody<BackfillRange, OnlyRead<LimitField>, Required<"from", &BackfillRange::from>,
                Required<"to", &BackfillRange::to>, OnlyWritten<LimitField>>;
using BackfillFields = AnswerBody<BackfillCounts, Required<"made", &BackfillCounts::made, Count>,
                                  Required<"there", &BackfillCounts::there, Count>,
                                  Sparse<"next", &BackfillCounts::next>>;
using Times = std::vector<WallTime>;
using NextFields = AnswerBody<Times, Required<"next", std::identity{}, Array<>>>;

using ListFields =
    AnswerBody<ScheduleList, Required<"schedules", &ScheduleList::schedules, Objects<ViewFields>>,
               Required<"cursor", &ScheduleList::cursor, Cursor>>;

/// Writes {"NAME":"TEXT","next":[TIMES]}.
std::string render_next(std::string_view name, std::string_view text,
                        std::span<const WallTime> next) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name(name).string(text);
  NextFields::write(kAnswer, writer, next);
  writer.end_object();
  return body;
}

}  // namespace

Result<RecurringSchedule> parse_schedule_rule(std::string_view name, std::string_view body) {
  auto schedule = ScheduleFields::parse(body);
  if (schedule) schedule->name = name;
  return schedule;
}

std::string render_schedule_rule(const RecurringSchedule& schedule) {
  return ScheduleFields::render(schedule);
}

Result<BackfillRange> parse_backfill(std::string_view body) { return RangeFields::parse(body); }

std::string render_backfill(const BackfillRange& range) { return RangeFields::render(range); }

Result<ScheduleRecord> parse_schedule_record(const JsonValue& json) {
  return RecordFields::parse(json);
}

void write_schedule_record(JsonWriter& writer, const ScheduleRecord& record) {
  write_object<RecordFields>(kDump, writer, record);
}

std::string render_schedule_view(const ScheduleView& view) { return ViewFields::render(view); }

Result<ScheduleView> parse_schedule_view(std::string_view body) { return ViewFields::parse(body); }

std::string render_schedule_list(std::span<const ScheduleView> views, std::string_view cursor) {
  std::string body;
  JsonWriter writer(body);
  Objects<ViewFields>::write(kRequest, writer.begin_object().name("schedules"), views);
  writer.name("cursor").string_or_null(cursor).end_object();
  return body;
}

Result<ScheduleList> parse_schedule_list(std::string_view body) { return ListFields::parse(body); }

std::string render_next_occurrences(std::string_view name, std::span<const WallTime> next) {
  return render_next("name", name, next);
}

Result<std::vector<WallTime>> parse_next_occurrences(std::string_view body) {
  return NextFields::parse(body);
}

std::string render_schedule_preview(const SchedulePreview& preview) {
  return render_next("words", preview.words, preview.next);
}

std::string render_removed_schedule(std::string_view name) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("name").string(name).name("removed").raw("true").end_object();
  return body;
}

std::string render_backfill_counts(const BackfillCounts& counts) {
  return BackfillFields::render(counts);
}

Result<BackfillCounts> parse_backfill_counts(std::string_view body) {
  return BackfillFields::parse(body);
}

}  // namespace detent::json
