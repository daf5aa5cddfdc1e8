#include "protocol/json/webhook_json.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace detent::json {

namespace {

constexpr std::string_view kHeadersForm = R"(an object such as {"X-Tenant":"a"})";
constexpr std::string_view kWebhookForm = R"(a URL or {"url":"https://…","keys":["whsec_…"]})";

Result<std::vector<std::string>> read_keys(const JsonField& field) {
  std::vector<std::string> keys;
  if (!field.given()) return keys;
  constexpr std::string_view kForm = "an array of at most 3 strings";
  if (!field.is(JsonKind::array)) return wrong_field(field, kForm);
  const auto elements = take_elements(field.text, kMaxWebhookKeys);
  if (!elements) return wrong_field(field, kForm);
  for (const std::string_view element : *elements) {
    if (kind_of(element) != JsonKind::string) return wrong_field(field, kForm);
    keys.push_back(unescape(element));
  }
  return keys;
}

Result<QueueWebhook> read_webhook_members(std::string_view json) {
  JsonField url{"url"};
  JsonField keys{"keys"};
  const std::array<JsonField*, 2> fields{&url, &keys};
  TRY(take_fields(json, fields, UnknownFields::refuse));
  QueueWebhook webhook;
  ASSIGN_OR_RETURN(webhook.url, read_string(url));
  ASSIGN_OR_RETURN(webhook.keys, read_keys(keys));
  return webhook;
}

}  // namespace

Result<TaskHeaders> read_headers(const JsonField& field) {
  if (!field.given()) return missing_field(field);
  JsonReader reader(field.text);
  if (!reader.enter_object()) return wrong_field(field, kHeadersForm);
  TaskHeaders headers;
  while (const auto member = reader.next_member()) {
    if (headers.size() == kMaxHeaders) return wrong_field(field, "at most 16 headers");
    if (kind_of(member->value) != JsonKind::string) return wrong_field(field, kHeadersForm);
    headers.push_back({unescape(member->name), unescape(member->value)});
  }
  return headers;
}

Result<QueueWebhook> read_queue_webhook(const JsonField& field) {
  if (field.is(JsonKind::string)) {
    ASSIGN_OR_RETURN(std::string url, read_string(field));
    return QueueWebhook{.url = std::move(url)};
  }
  if (!field.is(JsonKind::object)) return wrong_field(field, kWebhookForm);
  auto webhook = read_webhook_members(field.text);
  if (!webhook) return inside_field(field, std::move(webhook).error());
  return webhook;
}

void write_webhook(JsonWriter& writer, const std::string& webhook, const TaskHeaders& headers) {
  if (!webhook.empty()) writer.name("webhook").string(webhook);
  write_headers(writer, headers);
}

void write_headers(JsonWriter& writer, const TaskHeaders& headers) {
  if (headers.empty()) return;
  writer.name("headers").begin_object();
  // The name of a header is a token, which never needs an escape.
  for (const TaskHeader& header : headers) writer.name(header.name).string(header.value);
  writer.end_object();
}

void write_queue_webhook(JsonWriter& writer, const QueueWebhook& webhook) {
  writer.begin_object();
  writer.name("url").string(webhook.url);
  writer.name("keys").begin_array();
  for (const std::string& key : webhook.keys) writer.string(key);
  writer.end_array().end_object();
}

}  // namespace detent::json
