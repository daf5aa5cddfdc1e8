#include "bench/json/json_documents.h"

#include <utility>

namespace detent::bench {
namespace {

using namespace std::string_literals;

constexpr std::uint32_t kTasks = 100;
constexpr std::size_t kLargePayloadBytes = 64 * 1024;

std::string payload_of(std::uint32_t number) {
  return R"({"order":)" + std::to_string(10'000 + number) +
         R"(,"action":"cancel","paid":false,"shop":"berlin-2"})";
}

std::string small_request(std::uint32_t number) {
  return R"({"queue":"orders","delay_ms":1800000,"payload":)" + payload_of(number) + "}";
}

std::string full_request() {
  return R"({"queue":"orders","delay_ms":1800000,"priority":100,"max_attempts":5,)"
         R"("visibility_timeout_ms":60000,"backoff":{"initial_ms":1000,"max_ms":3600000},)"
         R"("key":"order-10000","webhook":"https://shop.example/hooks/orders",)"
         R"("headers":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",)"
         R"("x-tenant":"caf\u00e9"},"payload":)" +
         payload_of(0) + "}";
}

/// An object with text, numbers, and UTF-8 of more than one byte.
std::string large_payload() {
  std::string payload = R"({"lines":[)";
  for (std::uint32_t line = 0; payload.size() < kLargePayloadBytes - 128; ++line) {
    if (line > 0) payload += ',';
    payload += R"({"sku":"A-)" + std::to_string(100'000 + line) +
               R"(","name":"Tür \"klein\", weiß",)" + R"("count":)" + std::to_string(line % 7 + 1) +
               R"(,"price":19.95,"gift":false})";
  }
  return payload + "]}";
}

std::string leased_task(std::uint32_t number) {
  const std::string digits = std::to_string(100'000 + number);
  return R"({"id":"4198)" + digits + R"(","lease":"0000000500000000)" + digits +
         R"(","attempt":1,"queue":"orders","key":"order-)" + digits + R"(","payload":)" +
         payload_of(number) +
         R"(,"priority":100,"due_at":"2026-11-28T12:00:00.000Z",)"
         R"("lease_until":"2026-11-28T12:01:00.000Z","lateness_ms":2})";
}

std::string joined(std::string (*element)(std::uint32_t)) {
  std::string array = "[";
  for (std::uint32_t n = 0; n < kTasks; ++n) array += (n > 0 ? "," : "") + element(n);
  return array + "]";
}

/// A request whose payload is `payload`.
std::string with_payload(const std::string& payload) {
  return R"({"queue":"q","payload":)" + payload + R"( ,"delay_ms":1})";
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

std::vector<JsonDocument> measured_documents() {
  std::vector<JsonDocument> documents{
      {"small", Shape::request, 1, small_request(0)},
      {"full", Shape::request, 1, full_request()},
      {"batch", Shape::batch, kTasks, joined(small_request)},
      {"large", Shape::request, 1,
       R"({"queue":"orders","delay_ms":1800000,"payload":)" + large_payload() + "}"},
      {"lease", Shape::lease_answer, kTasks, R"({"tasks":)" + joined(leased_task) + "}"},
  };
  for (JsonDocument& document : documents) {
    document.text.reserve(document.text.size() + kPaddingBytes);
  }
  return documents;
}

std::vector<CheckedRequest> refused_requests() {
  std::vector<CheckedRequest> requests{
      {"field twice", R"({"queue":"q","queue":"q"})", ""},
      {"unknown field", R"({"queue":"q","delya_ms":1})", ""},
      {"text after the end", R"({"queue":"q"} x)", ""},
      {"brace after the end", R"({"queue":"q"}})", ""},
      {"NUL after the end", "{\"queue\":\"q\"}\0"s, ""},
      {"truncated", R"({"queue":"q","payload":{"a":1})", ""},
  };
  const std::vector<std::pair<std::string, std::string>> payloads{
      {"invalid UTF-8", "{\"a\":\"\xFF\"}"},
      {"overlong UTF-8", "{\"a\":\"\xC0\xAF\"}"},
      {"surrogate in UTF-8", "{\"a\":\"\xED\xA0\x80\"}"},
      {"control character", "{\"a\":\"\x01\"}"},
      {"unknown escape", R"({"a":"\x"})"},
      {"high surrogate alone", R"({"a":"\ud800"})"},
      {"low surrogate alone", R"({"a":"\udc00"})"},
      {"no colon", R"({"a" 1})"},
      {"no comma", "[1 2]"},
      {"comma at the end", "[1,]"},
      {"other bracket", "[1}"},
      {"unknown word", "[nul]"},
      {"leading zero", "[01]"},
      {"no digit after the point", "[1.]"},
      {"name without quotes", "{a:1}"},
      {"deeper than the limit", nested(kMostNested)},
  };
  for (const auto& [name, payload] : payloads)
    requests.push_back({name, with_payload(payload), ""});
  return requests;
}

std::vector<CheckedRequest> kept_requests() {
  std::vector<CheckedRequest> requests;
  const std::vector<std::pair<std::string, std::string>> payloads{
      {"spaces", "{ \"a\" : [ 1 ,\t2 ]\r\n}"},
      {"escapes", R"({"a":"\u00e9\ud83d\ude00\n\/"})"},
      {"number of 30 digits", "[123456789012345678901234567890]"},
      {"1e400", "[1e400]"},
      {"exponent of 11 digits", "[1e99999999999]"},
      {"-0", "-0"},
      {"a name twice", R"({"a":1,"a":2})"},
      {"text", R"("a\"b")"},
      {"null", "null"},
      {"as deep as the limit", nested(kMostNested - 1)},
  };
  for (const auto& [name, payload] : payloads) {
    requests.push_back({name, with_payload(payload), payload});
  }
  return requests;
}

}  // namespace detent::bench
