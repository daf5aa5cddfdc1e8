#include "calendar/zone_rule.h"

#include <algorithm>

namespace detent {
namespace {

using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;

/// Takes pieces from the front of a text. If a piece is missing, failed() becomes true.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  bool at_end() const noexcept { return text_.empty(); }
  bool failed() const noexcept { return failed_; }

  bool take(char wanted) noexcept {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) noexcept {
    if (!take(wanted)) failed_ = true;
  }

  int number(int low, int high) noexcept {
    int value = 0;
    std::size_t digits = 0;
    for (; digits < std::min<std::size_t>(text_.size(), 3) && is_digit(text_[digits]); ++digits) {
      value = value * 10 + (text_[digits] - '0');
    }
    text_.remove_prefix(digits);
    if (digits == 0 || value < low || value > high) failed_ = true;
    return value;
  }

  /// Skips "CET" or "<+0330>". The abbreviation is not needed here.
  void skip_abbreviation() noexcept {
    const bool is_quoted = take('<');
    std::size_t length = 0;
    while (length < text_.size() && (is_quoted ? text_[length] != '>' : is_letter(text_[length]))) {
      ++length;
    }
    text_.remove_prefix(length);
    if (is_quoted) expect('>');
    if (length < 3) failed_ = true;
  }

  /// Reads "-3:30" or "167:59:59".
  seconds time(int most_hours) noexcept {
    const bool is_negative = take('-');
    if (!is_negative) take('+');
    seconds value = std::chrono::hours{number(0, most_hours)};
    if (take(':')) {
      value += std::chrono::minutes{number(0, 59)};
      if (take(':')) value += seconds{number(0, 59)};
    }
    return is_negative ? -value : value;
  }

  RuleDate date() noexcept {
    RuleDate date;
    expect(',');
    if (take('M')) {
      date.month = number(1, 12);
      expect('.');
      date.week = number(1, 5);
      expect('.');
      date.day = number(0, 6);
    } else if (take('J')) {
      date.kind = RuleDate::Kind::julian;
      date.day = number(1, 365);
    } else {
      date.kind = RuleDate::Kind::day_of_year;
      date.day = number(0, 365);
    }
    if (take('/')) date.time_of_day = time(167);
    return date;
  }

 private:
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) noexcept { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

  std::string_view text_;
  bool failed_ = false;
};

}  // namespace

local_seconds RuleDate::in(std::chrono::year year) const {
  using std::chrono::days;
  const local_days new_year{year / std::chrono::January / 1};
  switch (kind) {
    case Kind::month_week_day: {
      const std::chrono::weekday weekday{static_cast<unsigned>(day)};
      const auto of_month = year / std::chrono::month{static_cast<unsigned>(month)};
      if (week == 5) return local_days{of_month / weekday[std::chrono::last]} + time_of_day;
      return local_days{of_month / weekday[static_cast<unsigned>(week)]} + time_of_day;
    }
    case Kind::julian:
      return new_year + days{day - 1 + (year.is_leap() && day >= 60 ? 1 : 0)} + time_of_day;
    case Kind::day_of_year:
      return new_year + days{day} + time_of_day;
  }
  return new_year;
}

std::array<OffsetChange, 2> ZoneRule::changes_in(std::chrono::year year) const {
  const auto to_utc = [](local_seconds local, seconds offset) {
    return std::chrono::sys_seconds{local.time_since_epoch() - offset};
  };
  std::array<OffsetChange, 2> changes = {{
      {to_utc(saving->begin.in(year), standard), saving->offset},
      {to_utc(saving->end.in(year), saving->offset), standard},
  }};
  if (changes[1].at < changes[0].at) std::swap(changes[0], changes[1]);
  return changes;
}

std::optional<ZoneRule> parse_zone_rule(std::string_view text) {
  Reader reader(text);
  ZoneRule rule;
  reader.skip_abbreviation();
  rule.standard = -reader.time(24);  // POSIX counts hours west of UTC as positive
  if (!reader.at_end() && !reader.failed()) {
    ZoneRule::Saving saving;
    reader.skip_abbreviation();
    Reader after = reader;
    saving.offset = rule.standard + std::chrono::hours{1};
    if (!after.take(',')) saving.offset = -reader.time(24);
    saving.begin = reader.date();
    saving.end = reader.date();
    rule.saving = saving;
  }
  if (reader.failed() || !reader.at_end()) return std::nullopt;
  return rule;
}

}  // namespace detent
