#include "tracing/otlp_json.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/json/json_writer.h"
#include "task/sink_name.h"

namespace detent {
namespace {

using json::JsonWriter;

// Values of enums in the protocol's trace.proto. JSON of OTLP has them as numbers.
constexpr int kInternal = 1;
constexpr int kServer = 2;
constexpr int kClient = 3;
constexpr int kStatusError = 2;

int kind_of(SpanStep step) noexcept {
  if (step == SpanStep::accept) return kServer;
  return step == SpanStep::deliver ? kClient : kInternal;
}

/// `messaging.operation.type`; empty for a step that is no operation.
std::string_view type_of(SpanStep step) noexcept {
  switch (step) {
    case SpanStep::accept:
      return "send";
    case SpanStep::wait:
      return "";
    case SpanStep::lease:
      return "receive";
    case SpanStep::deliver:
      return "process";
    case SpanStep::complete:
    case SpanStep::fail:
    case SpanStep::release:
    case SpanStep::bury:
      break;
  }
  return "settle";
}

void write_text(JsonWriter& writer, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  writer.begin_object().name("key").string(key).name("value").begin_object();
  writer.name("stringValue").string(value).end_object().end_object();
}

/// JSON of protobuf has 64-bit numbers as strings.
void write_number(JsonWriter& writer, std::string_view key, std::uint64_t value) {
  writer.begin_object().name("key").string(key).name("value").begin_object();
  writer.name("intValue").string(std::to_string(value)).end_object().end_object();
}

void write_time(JsonWriter& writer, std::string_view name, WallInstant time) {
  writer.name(name).string(std::to_string(time.time_since_epoch().count()));
}

/// "host", "host:8080" or "[::1]:8080".
void write_server(JsonWriter& writer, std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && authority.back() != ']';
  write_text(writer, "server.address", authority.substr(0, has_port ? colon : authority.size()));
  std::uint64_t port = 0;
  if (!has_port) return;
  std::from_chars(authority.data() + colon + 1, authority.data() + authority.size(), port);
  write_number(writer, "server.port", port);
}

void write_receiver(JsonWriter& writer, const Span& span) {
  if (span.receiver.empty()) return;
  if (const std::string_view sink = sink_of(span.receiver); !sink.empty()) {
    return write_text(writer, "detent.sink", sink);
  }
  write_text(writer, "http.request.method", "POST");
  write_server(writer, span.receiver);
  if (span.status) {
    write_number(writer, "http.response.status_code", static_cast<std::uint64_t>(*span.status));
  }
}

void write_attributes(JsonWriter& writer, const Span& span) {
  writer.name("attributes").begin_array();
  write_text(writer, "messaging.system", "detent");
  write_text(writer, "messaging.destination.name", span.queue);
  const std::string_view type = type_of(span.step);
  if (!type.empty()) {
    write_text(writer, "messaging.operation.name", to_string(span.step));
    write_text(writer, "messaging.operation.type", type);
  }
  write_text(writer, "messaging.message.id", to_string(span.task));
  if (span.step == SpanStep::accept) {
    write_number(writer, "messaging.message.body.size", span.payload_bytes);
  }
  if (span.attempt > 0) write_number(writer, "detent.attempt", span.attempt);
  write_receiver(writer, span);
  write_text(writer, "error.type", span.error);
  writer.end_array();
}

void write_span(JsonWriter& writer, const Span& span) {
  std::string id;
  append_hex(id, span.trace);
  writer.begin_object().name("traceId").string(id);
  id.clear();
  append_hex(id, span.id);
  writer.name("spanId").string(id);
  if (span.parent != SpanId{}) {
    id.clear();
    append_hex(id, span.parent);
    writer.name("parentSpanId").string(id);
  }
  writer.name("name").string(std::string(to_string(span.step)) + " " + span.queue);
  writer.name("kind").number(kind_of(span.step));
  write_time(writer, "startTimeUnixNano", span.began);
  write_time(writer, "endTimeUnixNano", span.ended);
  write_attributes(writer, span);
  if (!span.error.empty()) {
    writer.name("status").begin_object().name("code").number(kStatusError).end_object();
  }
  writer.end_object();
}

}  // namespace

std::string render_otlp(std::span<const Span> spans, const TracedService& service) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("resourceSpans").begin_array().begin_object();
  writer.name("resource").begin_object().name("attributes").begin_array();
  write_text(writer, "service.name", "detent");
  write_text(writer, "service.version", service.version);
  write_text(writer, "service.instance.id", service.instance);
  writer.end_array().end_object();
  writer.name("scopeSpans").begin_array().begin_object();
  writer.name("scope").begin_object().name("name").string("detent").end_object();
  writer.name("spans").begin_array();
  for (const Span& span : spans) write_span(writer, span);
  writer.end_array().end_object().end_array();
  writer.end_object().end_array().end_object();
  return body;
}

}  // namespace detent
