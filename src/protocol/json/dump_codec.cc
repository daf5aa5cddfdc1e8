#include "protocol/json/dump_codec.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "protocol/json/field_table.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_fields.h"
#include "protocol/json/schedule_codec.h"
#include "protocol/json/task_fields.h"

namespace detent::json {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r";
constexpr std::string_view kOneKind =
    "a dump line must have exactly one of queue, task, damaged, schedule, next and end";

using QueueFields =
    Table<Required<"queue", &DumpedQueue::queue>, Part<&DumpedQueue::settings, SettingFields>>;

/// The state of a task. A dump has only live and dead tasks.
struct StateCodec {
  static Result<void> read(auto /*form*/, const JsonField& field, Standing& standing) {
    ASSIGN_OR_RETURN(const std::string text, read_string(field));
    if (text != "scheduled" && text != "dead") return wrong_field(field, "scheduled or dead");
    standing = text == "dead" ? Standing::dead : Standing::live;
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, Standing standing) {
    writer.string(standing == Standing::dead ? "dead" : "scheduled");
  }
};
using WebhookFields = Table<Sparse<"webhook", &Task::webhook>, Sparse<"headers", &Task::headers>>;
using TaskFields =
    Table<Required<"id", &Task::id>, Required<"queue", &Task::queue>,
          Required<"state", &Task::standing, StateCodec>, Required<"due_at", &Task::due_at>,
          Required<"created_at", &Task::created_at>, Part<&Task::rules, RuleFields>,
          Required<"attempts", &Task::attempts>, Sparse<"key", &Task::key>,
          OnlyWritten<WebhookFields>,
          Sparse<"history", &Task::history, Objects<AttemptFields, kMaxHistory>>,
          PayloadField<&Task::payload>, OnlyRead<WebhookFields>>;

struct ScheduleCodec {
  static Result<void> read(auto /*form*/, const JsonField& field, ScheduleRecord& record) {
    auto read = parse_schedule_record(*field.value);
    if (!read) return inside_field(field, std::move(read).error());
    record = *std::move(read);
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const ScheduleRecord& record) {
    write_schedule_record(writer, record);
  }
};

using CountFields = Table<Required<"queues", &LineCounts::queues, Count>,
                          Required<"tasks", &LineCounts::tasks, Count>,
                          Required<"schedules", &LineCounts::schedules, Count>,
                          Required<"damaged_tasks", &LineCounts::damaged, Count>>;

using NextSchedule = Sparse<"next_schedule", &DumpNext::schedule>;
/// The start of the next page. A server without tasks has no id after which the page could begin.
struct NextField : Table<Required<"next", &DumpNext::after>, NextSchedule> {
  static Result<void> read(auto form, const JsonField* slots, DumpNext& next) {
    const bool has_task = !slots[1].given() || !slots[0].is(JsonKind::null);
    return has_task ? Table::read(form, slots, next) : NextSchedule::read(form, slots + 1, next);
  }
  static void write(auto form, JsonWriter& writer, const DumpNext& next) {
    writer.name("next").string_or_null(next.after == TaskId{} ? "" : to_string(next.after));
    NextSchedule::write(form, writer, next);
  }
};

/// A member that is always true.
struct EndField : Required<"end", std::identity{}> {
  static Result<void> read(auto /*form*/, const JsonField* slot, DumpEnd& /*end*/) {
    if (slot->value->text != "true") return wrong_field(*slot, "true");
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const DumpEnd& /*end*/) {
    write_bool(writer.name("end"), true);
  }
};

// The members of each kind of line. A kind is identified by its first member.
using QueueLine = Table<Required<"queue", std::identity{}, Object<QueueFields>>>;
using TaskLine = Table<Required<"task", std::identity{}, Object<TaskFields>>>;
using DamagedLine = Table<Required<"damaged", &DamagedTask::id>>;
using ScheduleLine = Table<Required<"schedule", std::identity{}, ScheduleCodec>>;
using NextLine = Table<NextField, Part<&DumpNext::counts, CountFields>>;
using EndCounts =
    Table<Part<&DumpEnd::counts, CountFields>, Sparse<"external", &DumpEnd::external, Count>>;
using EndLine = Table<EndField, EndCounts>;

/// All members that a line can have. The counts are members of NextLine and of EndLine.
using LineFields = Table<QueueLine, TaskLine, DamagedLine, ScheduleLine, EndField, NextLine,
                         Sparse<"external", &DumpEnd::external>>;
constexpr std::size_t kEndSlot = 4;
constexpr std::size_t kNextSlot = 5;
constexpr std::size_t kCountSlot = 7;
constexpr std::size_t kExternalSlot = 11;
static_assert(LineFields::kNames<kDump>[kEndSlot] == "end");
static_assert(LineFields::kNames<kDump>[kNextSlot] == "next");
static_assert(LineFields::kNames<kDump>[kCountSlot] == "queues");
static_assert(LineFields::kNames<kDump>[kExternalSlot] == "external");
/// The slot of each DumpLineKind.
constexpr std::array<std::size_t, 6> kSlotOf{0, 1, 2, 3, kNextSlot, kEndSlot};

/// Returns the kind of the line. Errors: it has no kind, or more than one, or a member that does
/// not belong to this kind of line.
Result<DumpLineKind> kind_of(const LineFields::Slots& slots) {
  const auto error = [](std::string_view message, std::string_view field) {
    return Error{ErrorCode::invalid_argument, std::string(message), std::string(field)};
  };
  std::optional<DumpLineKind> kind;
  for (std::size_t i = 0; i < kSlotOf.size(); ++i) {
    const JsonField& slot = slots.at(kSlotOf.at(i));
    if (!slot.given()) continue;
    if (kind) return error(kOneKind, slot.name);
    kind = static_cast<DumpLineKind>(i);
  }
  if (!kind) return error(kOneKind, "");
  const bool is_next = kind == DumpLineKind::next;
  const bool is_end = kind == DumpLineKind::end;
  for (std::size_t i = kCountSlot; i < slots.size(); ++i) {
    const bool belongs = is_end || (is_next && i != kExternalSlot);
    if (slots.at(i).given() && !belongs) {
      return error("unknown field in a line of this kind", slots.at(i).name);
    }
  }
  if (slots.at(kNextSlot + 1).given() && !is_next) {
    return error("unknown field in a line of this kind", slots.at(kNextSlot + 1).name);
  }
  return *kind;
}

template <class Fields, class T>
Result<DumpLine> read_line(const JsonField* slots, T line = {}) {
  TRY((Fields::read(kDump, slots, line)));
  return DumpLine{std::move(line)};
}

template <class Fields>
void write_line(JsonWriter& writer, const auto& line) {
  write_object<Fields>(kDump, writer, line);
}
void write(JsonWriter& writer, const DumpedQueue& line) { write_line<QueueLine>(writer, line); }
void write(JsonWriter& writer, const Task& line) { write_line<TaskLine>(writer, line); }
void write(JsonWriter& writer, const DamagedTask& line) { write_line<DamagedLine>(writer, line); }
void write(JsonWriter& writer, const ScheduleRecord& line) {
  write_line<ScheduleLine>(writer, line);
}
void write(JsonWriter& writer, const DumpNext& line) { write_line<NextLine>(writer, line); }
void write(JsonWriter& writer, const DumpEnd& line) { write_line<EndLine>(writer, line); }

struct ProblemCodec {
  static Result<void> read(auto /*form*/, const JsonField& field, Error& error) {
    if (!field.given()) return missing_field(field);
    error = parse_problem(*field.value);
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const Error& error) {
    write_problem(writer, error);
  }
};
using LineError = RestoreAnswer::LineError;
using ErrorFields = Table<Required<"line", &LineError::line, Range<1, kMaxInt64>>,
                          Required<"problem", &LineError::error, ProblemCodec>>;
/// Older servers do not send the counts of schedules.
using RestoredFields =
    AnswerBody<RestoreAnswer, Required<"restored", &RestoreAnswer::restored>,
               Required<"there", &RestoreAnswer::there>, Required<"queues", &RestoreAnswer::queues>,
               Optional<"schedules", &RestoreAnswer::schedules>,
               Optional<"schedules_there", &RestoreAnswer::schedules_there>,
               Required<"errors", &RestoreAnswer::errors, Objects<ErrorFields>>>;

}  // namespace

void append_dump_line(std::string& out, const DumpLine& line) {
  JsonWriter writer(out);
  std::visit([&writer](const auto& some) { write(writer, some); }, line);
  out.push_back('\n');
}

Result<DumpLine> parse_dump_line(std::string_view text) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const line, document.read(text));
  auto fields = LineFields::empty_slots(kDump);
  TRY(LineFields::take(kDump, *line, fields, UnknownFields::refuse));
  ASSIGN_OR_RETURN(const DumpLineKind kind, kind_of(fields));
  const JsonField* const slots = fields.data() + kSlotOf.at(static_cast<std::size_t>(kind));
  switch (kind) {
    case DumpLineKind::queue:
      return read_line<QueueLine, DumpedQueue>(slots);
    case DumpLineKind::task:
      return read_line<TaskLine, Task>(slots);
    case DumpLineKind::damaged:
      return read_line<DamagedLine, DamagedTask>(slots);
    case DumpLineKind::schedule:
      return read_line<ScheduleLine, ScheduleRecord>(slots);
    case DumpLineKind::next:
      return read_line<NextLine, DumpNext>(slots);
    case DumpLineKind::end:
      break;
  }
  DumpEnd end;
  TRY(EndField::read(kDump, slots, end));
  return read_line<EndCounts>(fields.data() + kCountSlot, end);
}

Result<DumpLineKind> kind_of_dump_line(std::string_view text) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const line, document.read(text));
  auto fields = LineFields::empty_slots(kDump);
  TRY(LineFields::take(kDump, *line, fields, UnknownFields::skip));
  return kind_of(fields);
}

void count_line(LineCounts& counts, DumpLineKind kind) noexcept {
  constexpr std::array kCounts{&LineCounts::queues, &LineCounts::tasks, &LineCounts::damaged,
                               &LineCounts::schedules};
  const auto index = static_cast<std::size_t>(kind);
  if (index < kCounts.size()) ++(counts.*kCounts.at(index));
}

Result<std::vector<NumberedLine>> take_numbered_lines(std::string_view body, std::size_t most) {
  std::vector<NumberedLine> lines;
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(kWhiteSpace) == std::string_view::npos) continue;
    if (lines.size() == most) {
      return Error{ErrorCode::too_large, "at most " + std::to_string(most) + " lines are allowed",
                   ""};
    }
    lines.push_back({number, line});
  }
  return lines;
}

std::string render_restored(const RestoreAnswer& answer) { return RestoredFields::render(answer); }

Result<RestoreAnswer> parse_restored(std::string_view body) { return RestoredFields::parse(body); }

}  // namespace detent::json
