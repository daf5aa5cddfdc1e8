#include "delivery/sink_message.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/wall_time.h"
#include "task/webhook.h"

namespace detent {
namespace {

std::string encode_percent(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (c > ' ' && c <= '~' && c != '%') {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

}  // namespace

SinkMessage make_sink_message(LeasedTask leased) {
  Task& task = leased.task;
  const bool is_json = task.payload.kind == Payload::Kind::json;
  SinkMessage message{.id = to_string(task.id), .body = std::move(task.payload.data)};
  message.fields = {
      {"content-type", is_json ? "application/json" : "application/octet-stream"},
      {"detent-id", message.id},
      {"detent-queue", task.queue},
      {"detent-attempt", std::to_string(leased.attempt)},
      {"detent-due-at", format_rfc3339(task.due_at)},
  };
  if (!task.key.empty()) message.fields.emplace_back("detent-key", encode_percent(task.key));
  for (TaskHeader& header : task.headers) {
    if (is_delivery_header(header.name)) continue;
    message.fields.emplace_back(std::move(header.name), std::move(header.value));
  }
  return message;
}

}  // namespace detent
