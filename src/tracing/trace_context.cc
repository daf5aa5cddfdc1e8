#include "tracing/trace_context.h"

#include <charconv>

#include "task/webhook.h"

namespace detent {
namespace {

// 00-<trace: 32 digits>-<span: 16 digits>-<flags: 2 digits>
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kSpanAt = 36;
constexpr std::size_t kFlagsAt = 53;
constexpr std::size_t kWordDigits = 16;
constexpr std::uint64_t kSampled = 1;

std::uint64_t hex_at(std::string_view text, std::size_t at, std::size_t digits) noexcept {
  std::uint64_t value = 0;
  std::from_chars(text.data() + at, text.data() + at + digits, value, 16);
  return value;
}

void append_word(std::string& out, std::uint64_t word) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[word >> shift & 0xF];
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) noexcept {
  if (!is_traceparent(text)) return std::nullopt;
  return TraceContext{.trace = {.high = hex_at(text, kTraceAt, kWordDigits),
                                .low = hex_at(text, kTraceAt + kWordDigits, kWordDigits)},
                      .span = {hex_at(text, kSpanAt, kWordDigits)},
                      .is_sampled = (hex_at(text, kFlagsAt, 2) & kSampled) != 0};
}

std::string to_traceparent(const TraceContext& context) {
  std::string text = "00-";
  append_hex(text, context.trace);
  text += '-';
  append_hex(text, context.span);
  text += context.is_sampled ? "-01" : "-00";
  return text;
}

void append_hex(std::string& out, TraceId id) {
  append_word(out, id.high);
  append_word(out, id.low);
}

void append_hex(std::string& out, SpanId id) { append_word(out, id.value); }

bool is_in_sample(TraceId id, double ratio) noexcept {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 56;
  return static_cast<double>(id.low % kEnd) < ratio * static_cast<double>(kEnd);
}

}  // namespace detent
