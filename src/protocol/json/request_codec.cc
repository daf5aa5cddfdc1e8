#include "protocol/json/request_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>

#include "protocol/json/dump_codec.h"
#include "protocol/json/field_table.h"
#include "protocol/json/task_fields.h"

namespace detent::json {

template <>
struct Words<OnKey> : WordList<OnKey::keep, OnKey::replace, OnKey::postpone> {};

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kWhiteSpace = " \t\r\n";

Error refused(std::string_view field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}

/// When a task is due: a delay or a date.
template <auto kMember, Presence kPresence>
struct DueField {
  static constexpr std::size_t kSlots = 3;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{"delay", "delay_ms", "due_at"};

  static Result<void> read(auto /*form*/, const JsonField* slots, auto& object) {
    const DurationFields delay{slots[0], slots[1]};
    const JsonField& due_at = slots[2];
    if (due_at.given()) {
      if (delay.given()) return refused(due_at.name, "give a delay or due_at, not both");
      ASSIGN_OR_RETURN(std::invoke(kMember, object), read_time(due_at));
    } else if (delay.given()) {
      ASSIGN_OR_RETURN(const auto length, read_duration(delay, kMaxDelay));
      std::invoke(kMember, object) = *length;
    } else if (kPresence == Presence::required) {
      return refused(due_at.name, "give a delay or due_at");
    }
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const auto& object) {
    if (kPresence == Presence::sparse && is_unset<kMember>(object)) return;
    const std::optional<Due> due = std::invoke(kMember, object);
    if (const milliseconds* delay = std::get_if<milliseconds>(&*due)) {
      writer.name("delay_ms").number(delay->count());
    } else {
      write_time(writer.name("due_at"), std::get<WallTime>(*due));
    }
  }
};

using ScheduleDue = DueField<&ScheduleRequest::due, Presence::sparse>;
using ScheduleFields = RequestBody<
    ScheduleRequest, Required<"queue", &ScheduleRequest::queue>,
    PayloadField<&ScheduleRequest::payload>, OnlyWritten<ScheduleDue>,
    Part<&ScheduleRequest::rules, RuleFields>, OnlyRead<ScheduleDue>,
    Sparse<"key", &ScheduleRequest::key>, Sparse<"webhook", &ScheduleRequest::webhook, WebhookUrl>,
    Sparse<"headers", &ScheduleRequest::headers>, Sparse<"on_key", &ScheduleRequest::on_key>,
    Duration<"max_wait", &ScheduleRequest::max_wait, kMaxDelay>>;

using EditFields =
    RequestBody<TaskEdit, DueField<&TaskEdit::due, Presence::sparse>,
                Sparse<"priority", &TaskEdit::priority>, PayloadField<&TaskEdit::payload>,
                Sparse<"webhook", &TaskEdit::webhook, WebhookUrl>,
                Sparse<"headers", &TaskEdit::headers>>;

constexpr auto kWorker = kAt<&LeaseCall::lease, &LeaseRequest::worker>;
using LeaseFields = RequestBody<
    LeaseCall,
    Optional<"max", kAt<&LeaseCall::lease, &LeaseRequest::max>, Range<1, kMaxLeaseTasks>>,
    OnlyRead<Sparse<"worker", kWorker>>,
    Duration<"wait", &LeaseCall::wait, kMaxLeaseWait, kOptional>,
    Duration<"visibility_timeout", kAt<&LeaseCall::lease, &LeaseRequest::visibility_timeout>,
             kMaxVisibilityTimeout>,
    OnlyWritten<Sparse<"worker", kWorker>>>;

Result<LeaseList> read_leases(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, read_strings(field));
  LeaseList leases;
  leases.reserve(texts.size());
  for (const std::string& text : texts) leases.push_back(parse_lease_token(text));
  return leases;
}

/// The body of a call about leases: the leases, and the options for all of them. The server reads
/// tokens into a Call, and a client writes texts.
template <class Call, class... Options>
struct LeaseCallFields {
  static Result<Call> parse(std::string_view body) {
    using Leases = Required<"leases", &Call::leases, By<read_leases, write_strings>>;
    return RequestBody<Call, OnlyRead<Leases>, Options...>::parse(body);
  }
  static std::string render(std::span<const std::string> leases, const auto& options) {
    std::string body;
    JsonWriter writer(body);
    writer.begin_object();
    write_strings(writer.name("leases"), leases);
    Table<Options...>::write(kRequest, writer, options);
    writer.end_object();
    return body;
  }
};
struct CompleteCall {
  LeaseList leases;
};
using CompleteFields = LeaseCallFields<CompleteCall>;
using FailFields =
    LeaseCallFields<FailCall, Duration<"delay", &Failure::delay, kMaxDelay>,
                    Sparse<"error", &Failure::error>, Sparse<"final", &Failure::final>>;
using ExtendFields =
    LeaseCallFields<ExtendCall, Duration<"by", &ExtendCall::by, kMaxVisibilityTimeout, kRequired>>;
using ReleaseFields = LeaseCallFields<ReleaseCall, Duration<"delay", &Release::delay, kMaxDelay>,
                                      Sparse<"priority", &Release::priority>>;

/// The tasks of a call: ids, or a queue and keys.
template <auto kMember>
struct NameFields {
  static constexpr std::size_t kSlots = 3;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{"ids", "queue", "keys"};

  static Result<void> read(auto /*form*/, const JsonField* slots, auto& call) {
    TaskNames& names = std::invoke(kMember, call);
    if (slots[0].given()) {
      for (const JsonField& other : {slots[1], slots[2]}) {
        if (!other.given()) continue;
        return refused(other.name, "give ids, or a queue and keys, not both");
      }
      ASSIGN_OR_RETURN(const std::vector<std::string> texts, read_strings(slots[0]));
      for (const std::string& text : texts) names.ids.push_back(parse_task_id(text));
      return ok();
    }
    if (!slots[1].given() && !slots[2].given()) return missing_field(slots[0]);
    ASSIGN_OR_RETURN(names.queue, read_string(slots[1]));
    ASSIGN_OR_RETURN(names.keys, read_strings(slots[2]));
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const auto& call) {
    const TaskNames& names = std::invoke(kMember, call);
    if (names.keys.empty()) {
      writer.name("ids").begin_array();
      for (const std::optional<TaskId>& id : names.ids) writer.string(to_string(id.value()));
      writer.end_array();
    } else {
      writer.name("queue").string(names.queue);
      write_strings(writer.name("keys"), names.keys);
    }
  }
};
using CancelFields = RequestBody<TaskNames, NameFields<std::identity{}>>;
using MoveFields = RequestBody<MoveCall, NameFields<&MoveCall::tasks>,
                               DueField<&MoveCall::due, Presence::required>>;

std::string_view trim(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

/// Returns the lines of NDJSON that are not blank.
Result<std::vector<std::string_view>> take_lines(std::string_view body) {
  ASSIGN_OR_RETURN(const auto numbered, take_numbered_lines(body, kMaxBatchTasks));
  std::vector<std::string_view> lines;
  lines.reserve(numbered.size());
  for (const NumberedLine& line : numbered) lines.push_back(trim(line.text));
  return lines;
}

bool is_ndjson(std::string_view body, std::string_view content_type) noexcept {
  const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
  return type == "application/x-ndjson" || trim(body).starts_with('{');
}

}  // namespace

Result<ScheduleRequest> parse_schedule(std::string_view body) {
  return ScheduleFields::parse(body);
}

std::string render_schedule(const ScheduleRequest& request) {
  return ScheduleFields::render(request);
}

Result<BatchElements> split_schedule_batch(std::string_view body, std::string_view content_type) {
  using enum BatchElements::Framing;
  BatchElements batch{.framing = is_ndjson(body, content_type) ? lines : array, .elements = {}};
  ASSIGN_OR_RETURN(batch.elements,
                   batch.framing == lines ? take_lines(body) : take_elements(body, kMaxBatchTasks));
  return batch;
}

Result<std::vector<Result<ScheduleRequest>>> parse_schedule_batch(std::string_view body,
                                                                  std::string_view content_type) {
  std::vector<Result<ScheduleRequest>> requests;
  if (is_ndjson(body, content_type)) {
    ASSIGN_OR_RETURN(const auto lines, take_lines(body));
    for (const std::string_view line : lines) requests.push_back(parse_schedule(line));
    return requests;
  }
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const tasks, document.read(body));
  ASSIGN_OR_RETURN(const std::size_t count, count_elements(*tasks, kMaxBatchTasks));
  requests.reserve(count);
  for (const JsonValue& task : *tasks) requests.push_back(ScheduleFields::parse(task));
  return requests;
}

std::string render_schedule_batch(std::span<const ScheduleRequest> requests) {
  std::string body;
  JsonWriter writer(body);
  Objects<ScheduleFields>::write(kRequest, writer, requests);
  return body;
}

Result<TaskEdit> parse_edit(std::string_view body) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const json, document.read(body));
  auto fields = EditFields::empty_slots(kRequest);
  TRY(EditFields::take(kRequest, *json, fields, UnknownFields::refuse));
  if (std::ranges::none_of(fields, &JsonField::given)) {
    return refused("due_at", "give a delay or due_at, a priority, a payload, a webhook or headers");
  }
  TaskEdit edit;
  TRY(EditFields::read(kRequest, fields.data(), edit));
  return edit;
}

std::string render_edit(const TaskEdit& edit) { return EditFields::render(edit); }

Result<TaskNames> parse_cancel_batch(std::string_view body) { return CancelFields::parse(body); }

std::string render_cancel_batch(const TaskNames& tasks) { return CancelFields::render(tasks); }

Result<MoveCall> parse_move_batch(std::string_view body) { return MoveFields::parse(body); }

std::string render_move_batch(const MoveCall& call) { return MoveFields::render(call); }

Result<LeaseCall> parse_lease(std::string queue, std::string_view body) {
  LeaseCall call;
  call.lease.queue = std::move(queue);
  if (trim(body).empty()) return call;
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const json, document.read(body));
  TRY((read_into<LeaseFields>(kRequest, call, *json, UnknownFields::refuse)));
  return call;
}

std::string render_lease(const LeaseCall& call) { return LeaseFields::render(call); }

Result<LeaseList> parse_complete(std::string_view body) {
  ASSIGN_OR_RETURN(CompleteCall call, CompleteFields::parse(body));
  return std::move(call.leases);
}

std::string render_complete(std::span<const std::string> leases) {
  return CompleteFields::render(leases, CompleteCall());
}

Result<FailCall> parse_fail(std::string_view body) {
  Result<FailCall> call = FailFields::parse(body);
  if (call && call->final && call->delay) {
    return refused("final", "give a delay or final, not both");
  }
  return call;
}

std::string render_fail(std::span<const std::string> leases, const Failure& failure) {
  return FailFields::render(leases, failure);
}

Result<ExtendCall> parse_extend(std::string_view body) {
  Result<ExtendCall> call = ExtendFields::parse(body);
  if (call && call->by == milliseconds{0}) return wrong_field({"by"}, "1 ms to 30 days");
  return call;
}

std::string render_extend(std::span<const std::string> leases, milliseconds by) {
  return ExtendFields::render(leases, ExtendCall{.leases = {}, .by = by});
}

Result<ReleaseCall> parse_release(std::string_view body) { return ReleaseFields::parse(body); }

std::string render_release(std::span<const std::string> leases, const Release& release) {
  return ReleaseFields::render(leases, release);
}

}  // namespace detent::json
