#include "base/log/log_line.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/log/redact.h"
#include "base/wall_time.h"

namespace detent {

namespace {

/// The first character of a text that is not empty: its size in bytes and its code point. If the
/// bytes are not valid UTF-8 (overlong, surrogate, truncated, above U+10FFFF), it is one byte
/// without a code point.
struct Character {
  std::size_t size = 1;
  bool valid = false;
  std::uint32_t code_point = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80u) return {.size = 1, .valid = true, .code_point = byte(0)};
  if (byte(0) < 0xC2u || byte(0) > 0xF4u) return {};
  const std::size_t size = byte(0) < 0xE0u ? 2 : byte(0) < 0xF0u ? 3 : 4;
  if (text.size() < size) return {};
  std::uint32_t code_point = byte(0) & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  const bool overlong = (size == 3 && code_point < 0x800u) || (size == 4 && code_point < 0x10000u);
  const bool surrogate = code_point >= 0xD800u && code_point <= 0xDFFFu;
  if (overlong || surrogate || code_point > 0x10FFFFu) return {};
  return {.size = size, .valid = true, .code_point = code_point};
}

/// True for the controls C0, DEL and C1, and for the line and paragraph separators, because some
/// viewers break lines there.
bool is_control(std::uint32_t code_point) {
  return code_point < 0x20u || (code_point >= 0x7Fu && code_point < 0xA0u) ||
         code_point == 0x2028u || code_point == 0x2029u;
}

template <class... Args>
std::string printed(const char* format, Args... args) {
  std::array<char, 16> text{};
  const int size = std::snprintf(text.data(), text.size(), format, args...);
  return {text.data(), static_cast<std::size_t>(size)};
}

/// The first character of `text`, as it is written in a line.
std::string escaped(LogFormat format, std::string_view text, const Character& character) {
  const bool json = format == LogFormat::json;
  if (!character.valid) {
    if (json) return "\\ufffd";
    return printed("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text.front())));
  }
  switch (character.code_point) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    case '"':
      return "\\\"";
  }
  if (!is_control(character.code_point)) return std::string(text.substr(0, character.size));
  const unsigned code_point = character.code_point;
  return printed(json || code_point > 0xFFu ? "\\u%04x" : "\\x%02x", code_point);
}

/// Builds the line. Appends no more text once the event would exceed the limit.
class LineWriter {
 public:
  LineWriter(LogFormat format, std::string head) : format_(format), line_(std::move(head)) {
    limit_ = line_.size() + kLongestLogEvent;
  }

  bool cut() const { return cut_; }

  /// Appends our own punctuation as a whole. If it does not fit, the line is cut here.
  void add(std::string_view text) {
    cut_ = cut_ || line_.size() + text.size() > limit_;
    if (!cut_) line_.append(text);
  }

  /// Appends a text from outside, escaped and between two `quote` texts. A text that does not fit
  /// is cut between two characters. There is always room for the closing quote.
  void add_escaped(std::string_view text, std::string_view quote) {
    if (line_.size() + 2 * quote.size() > limit_) cut_ = true;
    if (cut_) return;
    line_.append(quote);
    while (!text.empty()) {
      const Character character = first_character(text);
      const std::string piece = escaped(format_, text, character);
      if (line_.size() + piece.size() + quote.size() > limit_) {
        cut_ = true;
        break;
      }
      line_.append(piece);
      text.remove_prefix(character.size);
    }
    line_.append(quote);
  }

  std::size_t size() const { return line_.size(); }
  void drop_after(std::size_t size) { line_.resize(size); }
  std::string finish(std::string_view end) && { return std::move(line_.append(end)); }

 private:
  const LogFormat format_;
  std::string line_;
  std::size_t limit_ = 0;
  bool cut_ = false;
};

/// True if a text line needs quotes around the value, to separate it from the next field.
bool needs_quotes(std::string_view value) {
  return value.empty() || value.find_first_of(" =\"") != std::string_view::npos;
}

std::string render_text(const LogEvent& event, std::string head) {
  head.append(" ").append(to_string(event.level)).append(" ");
  LineWriter line(LogFormat::text, std::move(head));
  line.add_escaped(redact(event.message), "");
  for (const LogField& field : event.fields) {
    if (!field.is_there()) continue;
    line.add(" ");
    line.add(field.key());
    line.add("=");
    const std::string value = redact(field.value());
    line.add_escaped(value, needs_quotes(value) ? "\"" : "");
  }
  return std::move(line).finish(line.cut() ? " [cut]" : "");
}

std::string render_json(const LogEvent& event, const std::string& time) {
  std::string head = R"({"time":")" + time + R"(","level":")";
  head.append(to_string(event.level)).append(R"(","message":)");
  LineWriter line(LogFormat::json, std::move(head));
  line.add_escaped(redact(event.message), "\"");
  for (const LogField& field : event.fields) {
    if (line.cut()) break;
    if (!field.is_there()) continue;
    const std::size_t before = line.size();
    line.add(",\"");
    line.add(field.key());
    line.add("\":");
    const std::size_t key_end = line.size();
    if (field.quoted()) {
      line.add_escaped(redact(field.value()), "\"");
    } else {
      line.add(field.value());
    }
    if (line.size() == key_end) line.drop_after(before);  // a key without a value is invalid JSON
  }
  return std::move(line).finish(line.cut() ? R"(,"cut":true})" : "}");
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "unknown";  // only for a value that is not an enumerator
}

std::string render_log_line(LogFormat format, const LogEvent& event) {
  const std::string time = format_rfc3339(event.time);
  switch (format) {
    case LogFormat::text:
      return render_text(event, time);
    case LogFormat::json:
      return render_json(event, time);
  }
  return {};
}

}  // namespace detent
