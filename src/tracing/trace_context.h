// The trace that a task belongs to: the header `traceparent` of W3C Trace Context as a value.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace detent {

/// 16 bytes, not all zero.
struct TraceId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const TraceId&, const TraceId&) = default;
};

/// 8 bytes. Zero names no span.
struct SpanId {
  std::uint64_t value = 0;

  friend auto operator<=>(const SpanId&, const SpanId&) = default;
};

/// A span as its children see it.
struct TraceContext {
  TraceId trace;
  SpanId span;
  bool is_sampled = false;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// Reads a `traceparent`. Returns no value for a malformed header (is_traceparent() in
/// task/webhook.h), so the caller treats it like a missing header. Of the flags, only `sampled` has
/// a meaning here.
std::optional<TraceContext> parse_traceparent(std::string_view text) noexcept;
/// The header of version 00.
std::string to_traceparent(const TraceContext& context);

/// Appends lower-case hex: 32 digits, or 16.
void append_hex(std::string& out, TraceId id);
void append_hex(std::string& out, SpanId id);

/// Decides whether a new trace is sampled: true for this share of all trace ids. Uses the last 56
/// bits of the id, which are random (W3C Trace Context Level 2), so every program with the same
/// ratio decides the same. Requires: 0 <= ratio <= 1.
bool is_in_sample(TraceId id, double ratio) noexcept;

}  // namespace detent
