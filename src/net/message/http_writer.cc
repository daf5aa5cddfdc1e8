#include "net/message/http_writer.h"

#include <array>
#include <charconv>
#include <limits>

#include "base/http_phrase.h"

namespace detent::net {
namespace {

/// The reason phrase has no meaning, but must be there.
std::string_view phrase_of(int status) {
  const std::string_view phrase = http_phrase(status);
  return phrase.empty() ? "Unknown" : phrase;
}

void append_number(std::uint64_t value, std::string& out) {
  std::array<char, std::numeric_limits<std::uint64_t>::digits10 + 1> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_clean(std::string_view text, std::string& out) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back((byte < 0x20 && c != '\t') || byte == 0x7f ? ' ' : c);
  }
}

void append_header(std::string_view name, std::string_view value, std::string& out) {
  append_clean(name, out);
  out.append(": ");
  append_clean(value, out);
  out.append("\r\n");
}

void append_two_digits(unsigned value, std::string& out) {
  out.push_back(static_cast<char>('0' + value / 10 % 10));
  out.push_back(static_cast<char>('0' + value % 10));
}

std::string format_http_date(std::chrono::sys_seconds time) {
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  std::string text(kDays[std::chrono::weekday{day}.c_encoding()]);
  text.append(", ");
  append_two_digits(static_cast<unsigned>(date.day()), text);
  text.append(" ").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append(" ");
  text.append(std::to_string(static_cast<int>(date.year()))).append(" ");
  append_two_digits(static_cast<unsigned>(clock.hours().count()), text);
  text.push_back(':');
  append_two_digits(static_cast<unsigned>(clock.minutes().count()), text);
  text.push_back(':');
  append_two_digits(static_cast<unsigned>(clock.seconds().count()), text);
  return text.append(" GMT");
}

bool is_made_here(std::string_view name) {
  constexpr std::array<std::string_view, 3> kMadeHere{"host", "content-length",
                                                      "transfer-encoding"};
  for (const std::string_view made : kMadeHere) {
    if (name.size() != made.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < made.size(); ++i) same = same && (name[i] | 0x20) == made[i];
    if (same) return true;
  }
  return false;
}

}  // namespace

std::string_view HttpDate::at(WallInstant now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != made_for_) {
    text_ = format_http_date(second);
    made_for_ = second;
  }
  return text_;
}

void write_response_head(const HttpResponse& response, Framing framing, std::string_view date,
                         std::string& out) {
  out.append("HTTP/1.1 ");
  append_number(static_cast<std::uint64_t>(response.status), out);
  out.append(" ").append(phrase_of(response.status)).append("\r\n");
  out.append("Date: ").append(date).append("\r\n");
  if (!response.content_type.empty()) append_header("Content-Type", response.content_type, out);
  if (has_body(response.status)) {
    switch (framing.body_end) {
      case BodyEnd::by_length:
        out.append("Content-Length: ");
        append_number(response.body.size(), out);
        out.append("\r\n");
        break;
      case BodyEnd::by_chunk:
        out.append("Transfer-Encoding: chunked\r\n");
        break;
      case BodyEnd::by_close:
        break;
    }
  }
  switch (framing.persistence) {
    case Persistence::keep:
      break;
    case Persistence::keep_announced:
      out.append("Connection: keep-alive\r\n");
      break;
    case Persistence::close:
      out.append("Connection: close\r\n");
      break;
  }
  for (const auto& [name, value] : response.headers) append_header(name, value, out);
  out.append("\r\n");
}

void write_chunk(ChunkPlace place, std::string& head, std::string& body) {
  if (!body.empty()) {
    std::array<char, 2 * sizeof(std::size_t)> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), body.size(), 16).ptr;
    head.append(digits.data(), end).append("\r\n");
    body.append("\r\n");
  }
  if (place == ChunkPlace::last) body.append("0\r\n\r\n");
}

void write_request(const HttpRequest& request, std::string_view host, std::string& out) {
  append_clean(request.method, out);
  out.append(" ");
  append_clean(request.target, out);
  out.append(" HTTP/1.1\r\n");
  append_header("Host", host, out);
  // Write a length of 0 for a request whose method gives a body a meaning (RFC 9110, section 8.6).
  const bool may_have_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (may_have_body || !request.body.empty()) {
    out.append("Content-Length: ");
    append_number(request.body.size(), out);
    out.append("\r\n");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_made_here(name)) append_header(name, value, out);
  }
  out.append("\r\n").append(request.body);
}

}  // namespace detent::net
