#include "delivery/retry_after.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

int number_at(std::string_view text, std::size_t begin, std::size_t size) {
  int number = 0;
  std::from_chars(text.data() + begin, text.data() + begin + size, number);
  return number;
}

std::optional<std::chrono::month> month_of(std::string_view name) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto* const found = std::ranges::find(kMonths, name);
  if (found == kMonths.end()) return std::nullopt;
  return std::chrono::month(static_cast<unsigned>(found - kMonths.begin()) + 1);
}

/// The day of the week is not compared with the date.
std::optional<std::chrono::sys_seconds> parse_date(std::string_view text) {
  // The form of "Sun, 06 Nov 1994 08:49:37 GMT": 0 stands for a digit, a for a letter.
  constexpr std::string_view kForm = "aaa, 00 aaa 0000 00:00:00 GMT";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : kForm[i] != 'a' && kForm[i] != text[i]) return std::nullopt;
  }
  const auto month = month_of(text.substr(8, 3));
  if (!month) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year{number_at(text, 12, 4)}, *month,
      std::chrono::day{static_cast<unsigned>(number_at(text, 5, 2))}};
  const int hour = number_at(text, 17, 2);
  const int minute = number_at(text, 20, 2);
  const int second = number_at(text, 23, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
         seconds{second};
}

}  // namespace

std::optional<milliseconds> parse_retry_after(std::string_view text, WallInstant now) {
  if (is_number(text)) {
    std::uint64_t asked = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), asked);
    constexpr std::uint64_t kMost = kLongestRetryAfter / seconds{1};
    // A number beyond 64 bits is also more than the most.
    if (error != std::errc{}) return kLongestRetryAfter;
    return std::max<milliseconds>(seconds{std::min(asked, kMost)}, kLeastRetryAfter);
  }
  const auto date = parse_date(text);
  if (!date) return std::nullopt;
  // Not in nanoseconds, which end in the year 2262.
  const milliseconds until = *date - std::chrono::floor<milliseconds>(now);
  return std::clamp(until, kLeastRetryAfter, kLongestRetryAfter);
}

}  // namespace detent
