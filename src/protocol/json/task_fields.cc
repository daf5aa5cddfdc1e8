#include "protocol/json/task_fields.h"

#include <utility>

#include "base/base64.h"
#include "base/utf8.h"

namespace detent::json {

namespace {

constexpr std::string_view kStringsForm = "an array of strings";
constexpr std::string_view kKeysForm = "an array of at most 3 strings";
constexpr std::string_view kHeadersForm = R"(an object such as {"X-Tenant":"a"})";
constexpr FixedText kWebhookForm = R"(a URL or {"url":"https://…","keys":["whsec_…"]})";
constexpr std::string_view kBase64Form = "base64 with padding (RFC 4648, section 4)";

/// Returns the `count` elements of the array, or an error if one of them is not a string.
Result<std::vector<std::string>> unescape_all(const JsonField& field, std::string_view allowed,
                                              std::size_t count) {
  std::vector<std::string> strings;
  strings.reserve(count);
  for (const JsonValue& element : *field.value) {
    if (kind_of(element.text) != JsonKind::string) return wrong_field(field, allowed);
    strings.push_back(unescape(element.text));
  }
  return strings;
}

Result<std::vector<std::string>> read_keys(const JsonField& field) {
  if (!field.is(JsonKind::array)) return wrong_field(field, kKeysForm);
  const Result<std::size_t> count = count_elements(*field.value, kMaxWebhookKeys);
  if (!count) return wrong_field(field, kKeysForm);
  return unescape_all(field, kKeysForm, *count);
}

using WebhookFields = Table<Required<"url", &QueueWebhook::url>,
                            Optional<"keys", &QueueWebhook::keys, By<read_keys, write_strings>>>;

Result<std::string> read_base64(const JsonField& field, std::string_view allowed) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  if (auto bytes = decode_base64(text)) return *std::move(bytes);
  return wrong_field(field, allowed);
}

/// The number of nested arrays and objects at the deepest place of a JSON text.
int depth_of(std::string_view json) noexcept {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (c == '\\') ++i;  // skip the escaped character; a backslash occurs only in strings
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

/// True if a payload can be part of a dump's line as it was sent. It must have no line breaks, and
/// its nesting plus the two objects of the line must not exceed the depth limit of the reader.
bool fits_in_line(std::string_view json) noexcept {
  return json.find_first_of("\r\n") == std::string_view::npos &&
         depth_of(json) + 2 <= kMaxJsonDepth;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = utf8_character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>> read_strings(const JsonField& field) {
  if (!field.given()) return missing_field(field);
  if (!field.is(JsonKind::array)) return wrong_field(field, kStringsForm);
  Result<std::size_t> count = count_elements(*field.value, kMaxBatchTasks);
  if (!count) return inside_field(field, std::move(count).error());
  return unescape_all(field, kStringsForm, *count);
}

void write_strings(JsonWriter& writer, std::span<const std::string> texts) {
  writer.begin_array();
  for (const std::string& text : texts) writer.string(text);
  writer.end_array();
}

Error too_many_forms(const JsonField& field) {
  return {ErrorCode::invalid_argument, "the value is given in more than one form",
          std::string(field.name)};
}

Result<Payload> read_payload(const JsonField* forms, Form form) {
  const JsonField& json = forms[0];
  const JsonField& text = forms[1];
  const JsonField& base64 = forms[2];
  if (form == Form::request && json.given() && base64.given()) {
    return Error{ErrorCode::invalid_argument, "give payload or payload_base64, not both",
                 std::string(base64.name)};
  }
  if (form == Form::dump) {
    if (json.given() && text.given()) return too_many_forms(text);
    if ((json.given() || text.given()) && base64.given()) return too_many_forms(base64);
    if (text.given()) return read_payload_text(text);
    if (!base64.given() && !json.given()) return missing_field(json);
  }
  if (json.given()) return Payload{Payload::Kind::json, std::string(json.value->text)};
  ASSIGN_OR_RETURN(std::string bytes,
                   read_base64(base64, form == Form::answer ? "base64" : kBase64Form));
  return Payload{Payload::Kind::bytes, std::move(bytes)};
}

Result<Payload> read_payload_text(const JsonField& field) {
  ASSIGN_OR_RETURN(std::string text, read_string(field));
  const Result<std::string_view> value = read_json(text);
  if (!value || value->size() != text.size()) return wrong_field(field, "JSON, in quotes");
  return Payload{Payload::Kind::json, std::move(text)};
}

void write_payload(JsonWriter& writer, const Payload& payload, Form form) {
  if (payload.kind == Payload::Kind::bytes) {
    writer.name("payload_base64").base64(payload.data);
  } else if (form != Form::dump || fits_in_line(payload.data)) {
    writer.name("payload").raw(payload.data);
  } else {
    writer.name("payload_text").string(payload.data);
  }
}

Result<TaskHeaders> read_headers(const JsonField& field) {
  if (!field.given()) return missing_field(field);
  if (!field.is(JsonKind::object)) return wrong_field(field, kHeadersForm);
  TaskHeaders headers;
  for (const JsonValue& member : *field.value) {
    if (headers.size() == kMaxHeaders) return wrong_field(field, "at most 16 headers");
    if (kind_of(member.text) != JsonKind::string) return wrong_field(field, kHeadersForm);
    headers.push_back({unescape(member.name), unescape(member.text)});
  }
  return headers;
}

void write_headers(JsonWriter& writer, const TaskHeaders& headers) {
  if (headers.empty()) {
    writer.null();
    return;
  }
  writer.begin_object();
  // The name of a header is a token, which never needs an escape.
  for (const TaskHeader& header : headers) writer.name(header.name).string(header.value);
  writer.end_object();
}

Result<QueueWebhook> read_queue_webhook(const JsonField& field) {
  QueueWebhook webhook;
  if (field.is(JsonKind::string)) {
    webhook.url = unescape(field.value->text);
  } else {
    TRY((Object<WebhookFields, kWebhookForm>::read(kRequest, field, webhook)));
  }
  return webhook;
}

void write_queue_webhook(JsonWriter& writer, const QueueWebhook& webhook) {
  write_object<WebhookFields>(kRequest, writer, webhook);
}

Result<std::string> read_text(const JsonField* forms, std::size_t most) {
  const JsonField& given = forms[1].given() ? forms[1] : forms[0];
  if (forms[0].given() && forms[1].given()) return too_many_forms(given);
  if (!given.given()) return std::string();
  ASSIGN_OR_RETURN(std::string text,
                   forms[1].given() ? read_base64(given, kBase64Form) : read_string(given));
  if (text.size() <= most) return text;
  return wrong_field(given, "at most " + std::to_string(most) + " bytes");
}

void write_text(JsonWriter& writer, std::string_view name, std::string_view base64_name,
                std::string_view text) {
  if (is_utf8(text)) {
    writer.name(name).string(text);
  } else {
    writer.name(base64_name).base64(text);
  }
}

}  // namespace detent::json
