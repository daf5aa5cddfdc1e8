#include "base/wall_time.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

namespace detent {

namespace {

using std::chrono::milliseconds;

// Longer texts are refused without parsing. Every useful time or duration is much shorter.
constexpr std::size_t kLongestText = 64;
// Larger than every allowed value. It is small enough for `value * 10 + 9`, and for a product with
// the length of a unit, to fit into 64 bits.
constexpr std::int64_t kTooMany = 10'000'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads a text from front to back. Each method takes the named part from the front, or takes
/// nothing and reports failure.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_either(char a, char b) { return take(a) || take(b); }

  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  /// Exactly `count` digits.
  std::optional<int> take_digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (!is_digit(c)) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  /// Takes one or more digits. Returns kTooMany for every number from kTooMany on.
  std::optional<std::int64_t> take_number() {
    if (!is_digit(peek())) return std::nullopt;
    std::int64_t value = 0;
    while (is_digit(peek())) {
      value = std::min(value * 10 + (rest_.front() - '0'), kTooMany);
      rest_.remove_prefix(1);
    }
    return value;
  }

  /// Takes the digits after a decimal point. Returns them as milliseconds from 0 to 1000, rounded
  /// up.
  std::optional<milliseconds> take_fraction() {
    if (!is_digit(peek())) return std::nullopt;
    int value = 0;
    int scale = 100;
    bool more = false;
    while (is_digit(peek())) {
      const int digit = rest_.front() - '0';
      more = more || (scale == 0 && digit != 0);
      value += digit * scale;
      scale /= 10;
      rest_.remove_prefix(1);
    }
    return milliseconds{value + (more ? 1 : 0)};
  }

 private:
  std::string_view rest_;
};

Error invalid(std::string message) {
  return Error{.code = ErrorCode::invalid_argument, .message = std::move(message), .field = {}};
}

// ---- times --------------------------------------------------------------------------------------

Error not_a_time() { return invalid("must be an RFC 3339 time, such as 2026-01-02T03:04:05.678Z"); }

Result<std::chrono::sys_days> scan_date(Scanner& scanner) {
  const auto year = scanner.take_digits(4);
  if (!year || !scanner.take('-')) return not_a_time();
  const auto month = scanner.take_digits(2);
  if (!month || !scanner.take('-')) return not_a_time();
  const auto day = scanner.take_digits(2);
  if (!day) return not_a_time();
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return invalid("the date does not exist in the calendar");
  return std::chrono::sys_days{date};
}

Result<milliseconds> scan_time_of_day(Scanner& scanner) {
  const auto hour = scanner.take_digits(2);
  if (!hour || !scanner.take(':')) return not_a_time();
  const auto minute = scanner.take_digits(2);
  if (!minute || !scanner.take(':')) return not_a_time();
  const auto second = scanner.take_digits(2);
  if (!second) return not_a_time();
  if (*second == 60)
    return invalid("leap seconds (:60) are not supported; use :59 or the next :00");
  if (*hour > 23 || *minute > 59 || *second > 59)
    return invalid("the time of day must be 00:00:00 to 23:59:59");
  milliseconds fraction{0};
  if (scanner.take('.')) {
    const auto scanned = scanner.take_fraction();
    if (!scanned) return not_a_time();
    fraction = *scanned;
  }
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute} + std::chrono::seconds{*second} +
         fraction;
}

/// Takes the offset: local time minus UTC.
Result<std::chrono::minutes> scan_offset(Scanner& scanner) {
  if (scanner.take_either('Z', 'z')) return std::chrono::minutes{0};
  const bool ahead = scanner.peek() == '+';
  if (!scanner.take_either('+', '-'))
    return invalid("the time needs its offset from UTC, Z or +hh:mm");
  const auto hours = scanner.take_digits(2);
  if (!hours || !scanner.take(':')) return not_a_time();
  const auto minutes = scanner.take_digits(2);
  if (!minutes) return not_a_time();
  if (*hours > 23 || *minutes > 59) return invalid("the offset from UTC must be at most 23:59");
  const std::chrono::minutes offset = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
  return ahead ? offset : -offset;
}

// ---- durations ----------------------------------------------------------------------------------

// The units of a short duration, the largest first.
struct Unit {
  std::int64_t ms;
  const char* name;
};
constexpr std::array<Unit, 5> kUnits{
    {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1'000, "s"}, {1, "ms"}}};

Error not_a_duration() {
  return invalid("must be a duration, such as 1500ms, 30s, 5m, 2h, 30d or PT1H30M");
}

/// Adds `count` units to `sum`. Each unit is at most a week and `count` is at most kTooMany, so the
/// numbers cannot overflow. Fails if the result is above kLongestDuration.
Result<milliseconds> add_checked(milliseconds sum, std::int64_t count, milliseconds unit) {
  if (count > kLongestDuration / unit) {
    return invalid("the duration must be at most 4294967295 seconds");
  }
  const milliseconds total = sum + count * unit;
  if (total > kLongestDuration) return invalid("the duration must be at most 4294967295 seconds");
  return total;
}

Result<milliseconds> parse_short_duration(Scanner scanner) {
  const auto count = scanner.take_number();
  if (!count) return not_a_duration();
  if (scanner.at_end()) return invalid("the duration needs a unit (ms, s, m, h or d)");
  for (const Unit& unit : kUnits) {
    Scanner behind = scanner;
    if (behind.take_word(unit.name) && behind.at_end()) {
      return add_checked(milliseconds{0}, *count, milliseconds{unit.ms});
    }
  }
  return not_a_duration();
}

struct IsoUnit {
  char letter;
  bool after_t;
  milliseconds length;  // zero: the unit has no fixed length and is refused
};
// In the order of ISO 8601. M before T means months, and M after T means minutes.
constexpr std::array<IsoUnit, 7> kIsoUnits{{
    {'Y', false, milliseconds{0}},
    {'M', false, milliseconds{0}},
    {'W', false, std::chrono::weeks{1}},
    {'D', false, std::chrono::days{1}},
    {'H', true, std::chrono::hours{1}},
    {'M', true, std::chrono::minutes{1}},
    {'S', true, std::chrono::seconds{1}},
}};

/// Reads one part, such as 30M. `next` is the first unit that is still allowed; it moves behind the
/// unit of this part.
Result<milliseconds> scan_iso_part(Scanner& scanner, milliseconds sum, bool after_t,
                                   std::size_t& next) {
  const auto count = scanner.take_number();
  if (!count) return not_a_duration();
  std::optional<milliseconds> fraction;
  if (scanner.take_either('.', ',')) {
    fraction = scanner.take_fraction();
    if (!fraction) return not_a_duration();
  }
  for (; next < kIsoUnits.size(); ++next) {
    const IsoUnit& unit = kIsoUnits[next];
    if (unit.after_t != after_t || !scanner.take(unit.letter)) continue;
    ++next;
    if (unit.length == milliseconds{0}) {
      return invalid("years and months have no fixed length; give days, hours, minutes or seconds");
    }
    if (fraction && unit.letter != 'S') return invalid("only seconds may have a fraction");
    ASSIGN_OR_RETURN(const milliseconds whole, add_checked(sum, *count, unit.length));
    return add_checked(whole, fraction.value_or(milliseconds{0}).count(), milliseconds{1});
  }
  return not_a_duration();
}

Result<milliseconds> parse_iso_duration(Scanner scanner) {
  milliseconds sum{0};
  bool after_t = false;
  std::size_t next = 0;
  do {
    if (!after_t) after_t = scanner.take('T');
    ASSIGN_OR_RETURN(sum, scan_iso_part(scanner, sum, after_t, next));
  } while (!scanner.at_end());
  return sum;
}

void put_digits(char* end, int digits, std::uint32_t value) {
  for (; digits > 0; --digits, value /= 10) *--end = static_cast<char>('0' + value % 10);
}

/// For years that do not have four digits.
std::string format_unusual(const std::chrono::year_month_day& date,
                           const std::chrono::hh_mm_ss<milliseconds>& clock) {
  std::array<char, 48> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

// Not with snprintf: that takes 3,400 instructions, a fifth of the cost of accepting a task.
std::string format_rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const int year = static_cast<int>(date.year());
  if (year < 0 || year > 9'999) return format_unusual(date, std::chrono::hh_mm_ss{time - day});
  const auto of_day = static_cast<std::uint32_t>((time - day).count());  // ms
  std::string text = "0000-00-00T00:00:00.000Z";
  char* const begin = text.data();
  put_digits(begin + 4, 4, static_cast<std::uint32_t>(year));
  put_digits(begin + 7, 2, static_cast<unsigned>(date.month()));
  put_digits(begin + 10, 2, static_cast<unsigned>(date.day()));
  put_digits(begin + 13, 2, of_day / 3'600'000);
  put_digits(begin + 16, 2, of_day / 60'000 % 60);
  put_digits(begin + 19, 2, of_day / 1'000 % 60);
  put_digits(begin + 23, 3, of_day % 1'000);
  return text;
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  if (text.size() > kLongestText) return not_a_time();
  Scanner scanner(text);
  ASSIGN_OR_RETURN(const std::chrono::sys_days date, scan_date(scanner));
  if (!scanner.take_either('T', 't')) return not_a_time();
  ASSIGN_OR_RETURN(const milliseconds time_of_day, scan_time_of_day(scanner));
  ASSIGN_OR_RETURN(const std::chrono::minutes offset, scan_offset(scanner));
  if (!scanner.at_end()) return not_a_time();
  const WallTime time = date + time_of_day - offset;
  if (time < WallTime{} || time >= kWallTimeEnd) {
    return invalid("the time must be in the years 1970 to 9999 (UTC)");
  }
  return time;
}

Result<milliseconds> parse_duration(std::string_view text) {
  if (text.size() > kLongestText) return not_a_duration();
  Scanner scanner(text);
  if (scanner.peek() == '-' || text.starts_with("P-") || text.starts_with("PT-")) {
    return invalid("the duration must not be negative");
  }
  return scanner.take('P') ? parse_iso_duration(scanner) : parse_short_duration(scanner);
}

std::string show_duration(milliseconds duration) {
  for (const Unit& unit : kUnits) {
    if (duration.count() != 0 && duration.count() % unit.ms == 0) {
      return std::to_string(duration.count() / unit.ms) + unit.name;
    }
  }
  return "0ms";
}

std::string show_age(milliseconds age) {
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    const Unit& large = kUnits[i];
    const Unit& small = kUnits[i + 1];
    if (age.count() < large.ms) continue;
    std::string text = std::to_string(age.count() / large.ms) + large.name;
    if (const std::int64_t rest = age.count() % large.ms / small.ms; rest > 0) {
      text += " " + std::to_string(rest) + small.name;
    }
    return text;
  }
  return show_duration(age);
}

}  // namespace detent
