// Field tables and codecs of the values that requests, answers, dumps and schedules have in common:
// rules, payloads, webhooks, headers and lateness.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/field_table.h"
#include "task/lateness.h"
#include "task/task.h"

namespace detent::json {

/// Reads an array of at most kMaxBatchTasks strings.
Result<std::vector<std::string>> read_strings(const JsonField& field);
void write_strings(JsonWriter& writer, std::span<const std::string> texts);
template <>
struct Codec<std::vector<std::string>> : By<read_strings, write_strings> {};

template <>
struct Codec<TaskId> {
  static Result<void> read(auto form, const JsonField& field, TaskId& id) {
    ASSIGN_OR_RETURN(const std::string text, read_string(field));
    const std::optional<TaskId> parsed = parse_task_id(text);
    id = parsed.value_or(id);
    if (parsed) return ok();
    return wrong_field(field, form == Form::request  ? "the id of a task"
                              : form == Form::answer ? "a task's id"
                                                     : "a task's id, in quotes");
  }
  static void write(auto /*form*/, JsonWriter& writer, TaskId id) { writer.string(to_string(id)); }
};

/// The longest wait of a backoff. If it is missing, it is at least the first wait.
struct BackoffMax : Duration<"max", &Backoff::max, kMaxDelay, kStored> {
  static Result<void> read(auto form, const JsonField* slots, Backoff& backoff) {
    backoff.max = std::max(backoff.max, backoff.initial);
    return Duration::read(form, slots, backoff);
  }
};
using BackoffFields = Table<Duration<"initial", &Backoff::initial, kMaxDelay, kStored>, BackoffMax>;
template <>
struct Codec<Backoff> : Object<BackoffFields, R"(an object such as {"initial":"1s","max":"1h"})"> {
};

/// The rules of a task. An answer has the rules in force.
using PriorityField = Field<"priority", &TaskRules::priority,
                            Presences{Presence::sparse, Presence::required, Presence::required}>;
using RuleFields = Table<
    PriorityField, Field<"max_attempts", &TaskRules::max_attempts, kRule, Limit<1, kMaxAttempts>>,
    Duration<"visibility_timeout", &TaskRules::visibility_timeout, kMaxVisibilityTimeout, kRule>,
    Field<"backoff", &TaskRules::backoff, kRule>>;

/// Reads a payload from the slots of a PayloadField.
Result<Payload> read_payload(const JsonField* forms, Form form);
/// Reads the JSON of a payload from a string.
Result<Payload> read_payload_text(const JsonField& field);
/// Writes the member of the payload.
void write_payload(JsonWriter& writer, const Payload& payload, Form form);
/// The error of a value that is given twice, in different forms.
Error too_many_forms(const JsonField& field);

/// JSON as it was sent, or bytes as base64. A dump also has `payload_text`, for JSON that does not
/// fit into its line.
template <auto kMember>
struct PayloadField {
  static constexpr std::size_t kSlots = 3;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{
      "payload", kForm == Form::dump ? "payload_text" : "", "payload_base64"};

  static Result<void> read(auto form, const JsonField* forms, auto& object) {
    if constexpr (form == Form::request) {
      if (!forms[0].given() && !forms[2].given()) return ok();
    }
    ASSIGN_OR_RETURN(std::invoke(kMember, object), read_payload(forms, form));
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const auto& object) {
    const auto& payload = std::invoke(kMember, object);
    if constexpr (!kIsOptional<std::remove_cvref_t<decltype(payload)>>) {
      write_payload(writer, payload, form);
    } else if (payload) {
      write_payload(writer, *payload, form);
    }
  }
};

/// The URL of a task's own webhook. In a request, null removes it.
struct WebhookUrl {
  static Result<void> read(auto form, const JsonField& field, std::string& url) {
    if (form == Form::request && field.is(JsonKind::null)) return ok();
    ASSIGN_OR_RETURN(url, read_string(field));
    if (form == Form::request && url.empty()) return wrong_field(field, "a URL");
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, std::string_view url) {
    writer.string_or_null(url);
  }
};

/// Reads an object with a string for each header. Checks only the number of headers;
/// validate_headers() checks names and values.
Result<TaskHeaders> read_headers(const JsonField& field);
/// Writes null if there are no headers.
void write_headers(JsonWriter& writer, const TaskHeaders& headers);
template <>
struct Codec<TaskHeaders> : By<read_headers, write_headers> {
  static Result<void> read(auto form, const JsonField& field, TaskHeaders& headers) {
    if (form == Form::request && field.is(JsonKind::null)) return ok();
    return By::read(form, field, headers);
  }
};

/// Reads a URL, or {"url":…,"keys":[…]} with optional keys.
Result<QueueWebhook> read_queue_webhook(const JsonField& field);
/// Writes the keys in plain; hide them with redacted().
void write_queue_webhook(JsonWriter& writer, const QueueWebhook& webhook);
template <>
struct Codec<QueueWebhook> : By<read_queue_webhook, write_queue_webhook> {};

/// An object with a number for each cause of lateness. LatenessParts are whole milliseconds.
template <class T>
struct Codec<ByCause<T>> {
  template <LatenessCause kCause>
  struct Part {
    constexpr auto& operator()(auto& values) const {
      return values[static_cast<std::size_t>(kCause)];
    }
  };
  using Fields = Table<Required<"before_start", Part<LatenessCause::before_start>{}, Count>,
                       Required<"engine", Part<LatenessCause::engine>{}, Count>,
                       Required<"limit", Part<LatenessCause::limit>{}, Count>,
                       Required<"worker", Part<LatenessCause::worker>{}, Count>>;

  static Result<void> read(auto form, const JsonField& field, ByCause<T>& values) {
    if (!field.given()) return missing_field(field);
    return read_into<Fields>(form, values, *field.value, unknown_in(form));
  }
  static void write(auto form, JsonWriter& writer, const ByCause<T>& values) {
    write_object<Fields>(form, writer, values);
  }
};

/// Reads text of at most `most` bytes from the slots of a TextField.
Result<std::string> read_text(const JsonField* forms, std::size_t most);
/// Writes a text into one of these members. A text that is not valid UTF-8 would change in a JSON
/// string, so it is written as base64.
void write_text(JsonWriter& writer, std::string_view name, std::string_view base64_name,
                std::string_view text);

/// A text that may be empty, and is then left out. A dump has texts that are not UTF-8 as base64.
template <FixedText kName, auto kMember, std::size_t kMost>
struct TextField : Sparse<kName, kMember> {
  static constexpr auto kBase64Name = kName + FixedText("_base64");
  static constexpr std::size_t kSlots = 2;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{
      kName.view(), kForm == Form::dump ? kBase64Name.view() : std::string_view()};

  static Result<void> read(auto /*form*/, const JsonField* forms, auto& object) {
    ASSIGN_OR_RETURN(std::invoke(kMember, object), read_text(forms, kMost));
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const auto& object) {
    if constexpr (form != Form::dump) {
      Sparse<kName, kMember>::write(form, writer, object);
    } else if (!is_unset<kMember>(object)) {
      write_text(writer, kName.view(), kBase64Name.view(), std::invoke(kMember, object));
    }
  }
};

using AttemptFields =
    Table<Required<"started_at", &Attempt::started_at>, Required<"ended_at", &Attempt::ended_at>,
          TextField<"worker", &Attempt::worker, kMaxWorkerBytes>,
          TextField<"error", &Attempt::error, kMaxErrorBytes>, Sparse<"late_ms", &Attempt::late>>;

}  // namespace detent::json
