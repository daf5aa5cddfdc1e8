#include "calendar/cron_parser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/wall_time.h"

namespace detent {
namespace {

constexpr std::size_t kLongestExpression = 1000;

constexpr std::array<std::string_view, 12> kMonths = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                      "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdays = {"SUN", "MON", "TUE", "WED",
                                                       "THU", "FRI", "SAT"};

/// A field of an expression: its name, and the values that it allows.
struct FieldKind {
  std::string_view name;
  std::string_view allowed;
  unsigned low;
  unsigned high;
  std::span<const std::string_view> names = {};  // the names of low, low + 1, …
};

constexpr FieldKind kSecond{"second", "0-59, *, ranges a-b, steps */n and lists a,b", 0, 59};
constexpr FieldKind kMinute{"minute", kSecond.allowed, 0, 59};
constexpr FieldKind kHour{"hour", "0-23, *, ranges a-b, steps */n and lists a,b", 0, 23};
constexpr FieldKind kDay{"day of month",
                         "1-31, *, ?, ranges a-b, steps */n, lists a,b, L, L-n, nW and LW", 1, 31};
constexpr FieldKind kMonth{"month", "1-12 or JAN-DEC, *, ranges a-b, steps */n and lists a,b", 1,
                           12, kMonths};
constexpr FieldKind kWeekday{"day of week",
                             "0-7 or SUN-SAT, *, ?, ranges a-b, steps */n, lists a,b, n#k and nL",
                             0, 7, kWeekdays};

/// A tab is not a control character here, because it separates fields.
constexpr bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

bool is_equal(std::string_view text, std::string_view upper) {
  if (text.size() != upper.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (to_upper(text[i]) != upper[i]) return false;
  }
  return true;
}

constexpr std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

/// A position in the expression. Only the first error is kept; later reads have no effect on it.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t begin, std::size_t end)
      : text_(text.substr(0, end)), at_(begin) {}

  std::size_t at() const { return at_; }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : to_upper(text_[at_]); }
  bool failed() const { return error_.has_value(); }
  CalendarError error() const { return *error_; }

  bool take(char wanted) {
    if (peek() != wanted || at_end()) return false;
    ++at_;
    return true;
  }

  std::nullopt_t fail(std::size_t at, std::string message) {
    if (!error_) error_ = CalendarError{std::move(message), at + 1};
    return std::nullopt;
  }

  /// Fails with "'61' is not allowed as minute; allowed are 0-59, …". Quotes the text from `begin`
  /// to the next comma.
  std::nullopt_t refuse(std::size_t begin, const FieldKind& kind) {
    const std::size_t end = text_.find(',', begin);
    const std::string_view piece = text_.substr(begin, end == text_.npos ? end : end - begin);
    return fail(begin, (piece.empty() ? "a value is missing in the field"
                                      : "'" + std::string(piece) + "' is not allowed as") +
                           std::string(" ") + std::string(kind.name) + "; allowed are " +
                           std::string(kind.allowed));
  }

  std::optional<unsigned> number() {
    const std::size_t begin = at_;
    unsigned value = 0;
    while (peek() >= '0' && peek() <= '9' && at_ < begin + 4) {
      value = value * 10 + static_cast<unsigned>(text_[at_++] - '0');
    }
    return at_ == begin ? std::nullopt : std::optional(value);
  }

  /// Reads a number or a name of the field, within the bounds of the field.
  std::optional<unsigned> value(const FieldKind& kind, std::size_t item) {
    if (const auto found = number()) {
      if (*found >= kind.low && *found <= kind.high) return found;
      return refuse(item, kind);
    }
    for (unsigned i = 0; i < kind.names.size(); ++i) {
      if (is_equal(text_.substr(at_, 3), kind.names[i])) {
        at_ += 3;
        return kind.low + i;
      }
    }
    return refuse(item, kind);
  }

 private:
  std::string_view text_;
  std::size_t at_;
  std::optional<CalendarError> error_;
};

/// Reads an optional step "/n" after a range, and returns the values from `low` to `high` with this
/// step.
std::uint64_t read_steps(Cursor& cursor, const FieldKind& kind, std::uint64_t low,
                         std::uint64_t high) {
  unsigned step = 1;
  const std::size_t slash = cursor.at();
  if (cursor.take('/')) {
    const auto number = cursor.number();
    const unsigned most = kind.high == 7 ? 6 : kind.high;
    if (!number || *number < 1 || *number > most) {
      cursor.fail(slash + 1, "a step of the field " + std::string(kind.name) +
                                 " must be a number from 1 to " + std::to_string(most));
      return 0;
    }
    step = *number;
  }
  std::uint64_t set = 0;
  for (std::uint64_t value = low; value <= high; value += step) {
    set |= bit(static_cast<unsigned>(value));
  }
  return set;
}

/// Reads the rest of an item after its first value: "", "-b", "/n" or "-b/n". `item` is the
/// position where the item begins.
std::uint64_t read_range(Cursor& cursor, const FieldKind& kind, std::size_t item, unsigned first) {
  unsigned last = first;
  if (cursor.take('-')) {
    const auto value = cursor.value(kind, item);
    if (!value) return 0;
    // In SAT-SUN and FRI-SUN, Sunday is the seventh day.
    last = kind.high == 7 && *value == 0 && first > 0 ? 7 : *value;
    if (last < first) {
      cursor.fail(item, "a range of the field " + std::string(kind.name) +
                            " must go upwards; write a range that wraps around as two ranges, a-" +
                            std::to_string(kind.high == 7 ? 6 : kind.high) + "," +
                            std::to_string(kind.low) + "-b");
      return 0;
    }
  } else if (cursor.peek() == '/') {
    last = kind.high == 7 ? 6 : kind.high;
  }
  return read_steps(cursor, kind, first, last);
}

/// Reads "*", "*/n", or an item that begins with a value.
std::uint64_t read_plain_item(Cursor& cursor, const FieldKind& kind, std::size_t item) {
  if (cursor.take('*')) {
    return read_steps(cursor, kind, kind.low, kind.high == 7 ? 6 : kind.high);
  }
  const auto first = cursor.value(kind, item);
  return first ? read_range(cursor, kind, item, *first) : 0;
}

void read_day_item(Cursor& cursor, CronFields& fields, std::size_t item) {
  if (cursor.take('?')) {
    fields.days = ~1U;
  } else if (cursor.take('L')) {
    if (cursor.take('W')) {
      fields.has_last_weekday = true;
    } else if (cursor.take('-')) {
      const auto before = cursor.number();
      if (!before || *before < 1 || *before > 30) {
        cursor.fail(item, "in L-n, n days before the month's last day, n must be from 1 to 30");
        return;
      }
      fields.days_to_last |= 1U << *before;
    } else {
      fields.days_to_last |= 1;
    }
  } else if (cursor.peek() == '*') {
    fields.days |= static_cast<std::uint32_t>(read_plain_item(cursor, kDay, item));
  } else if (const auto first = cursor.value(kDay, item)) {
    if (cursor.take('W')) {
      fields.nearest_to |= 1U << *first;
    } else {
      fields.days |= static_cast<std::uint32_t>(read_range(cursor, kDay, item, *first));
    }
  }
}

void read_weekday_item(Cursor& cursor, CronFields& fields, std::size_t item) {
  if (cursor.take('?')) {
    fields.weekdays = 0x7F;
    return;
  }
  if (cursor.peek() == '*') {
    fields.weekdays |= static_cast<std::uint32_t>(read_plain_item(cursor, kWeekday, item));
    return;
  }
  if (cursor.peek() == 'L') {
    cursor.fail(item,
                "L in the field day of week must follow a day: FRIL or 5L is the last Friday");
    return;
  }
  const auto first = cursor.value(kWeekday, item);
  if (!first) return;
  const std::uint32_t day = 1U << (*first % 7);
  if (cursor.take('L')) {
    fields.last_weekdays |= day;
  } else if (cursor.take('#')) {
    const auto nth = cursor.number();
    if (!nth || *nth < 1 || *nth > 5) {
      cursor.fail(item, "in n#k, the k-th such day of a month, k must be from 1 to 5");
      return;
    }
    fields.nth_weekdays.at(*nth) |= day;
  } else {
    const std::uint64_t days = read_range(cursor, kWeekday, item, *first);
    fields.weekdays |= static_cast<std::uint32_t>((days | days >> 7) & 0x7F);
  }
}

struct Word {
  std::size_t begin;
  std::size_t end;
};

std::vector<Word> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<Word> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back({at, end});
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

/// Reads the list of one field. Calls `read_item(cursor, begin)` for each item.
template <class ReadItem>
std::optional<CalendarError> read_list(std::string_view text, Word word, const FieldKind& kind,
                                       ReadItem&& read_item) {
  Cursor cursor(text, word.begin, word.end);
  do {
    const std::size_t item = cursor.at();
    read_item(cursor, item);
    if (!cursor.at_end() && cursor.peek() != ',') cursor.refuse(item, kind);
  } while (!cursor.failed() && cursor.take(','));
  return cursor.failed() ? std::optional(cursor.error()) : std::nullopt;
}

Parsed<CronRule> parse_fields(std::string_view text, std::span<const Word> words) {
  CronFields fields;
  const auto read_set = [&](Word word, const FieldKind& kind, auto& set) {
    set = 0;
    return read_list(text, word, kind, [&](Cursor& cursor, std::size_t item) {
      set |=
          static_cast<std::remove_reference_t<decltype(set)>>(read_plain_item(cursor, kind, item));
    });
  };
  const auto is_starred = [&](Word word) {
    return text[word.begin] == '*' || text[word.begin] == '?';
  };
  std::optional<CalendarError> error;
  if (words.size() == 6) {
    error = read_set(words[0], kSecond, fields.seconds);
    words = words.subspan(1);
  }
  if (!error) error = read_set(words[0], kMinute, fields.minutes);
  if (!error) error = read_set(words[1], kHour, fields.hours);
  if (!error) {
    error = read_list(text, words[2], kDay, [&](Cursor& cursor, std::size_t item) {
      read_day_item(cursor, fields, item);
    });
  }
  if (!error) error = read_set(words[3], kMonth, fields.months);
  if (!error) {
    error = read_list(text, words[4], kWeekday, [&](Cursor& cursor, std::size_t item) {
      read_weekday_item(cursor, fields, item);
    });
  }
  if (error) return *std::move(error);
  fields.is_day_starred = is_starred(words[2]);
  fields.is_weekday_starred = is_starred(words[4]);
  if (!is_possible(fields)) {
    return CalendarError{
        "this day does not exist in any of the given months, so the expression never matches",
        words[2].begin + 1};
  }
  return CronRule(fields);
}

struct Nickname {
  std::string_view name;
  std::string_view expression;
};
constexpr std::array<Nickname, 7> kNicknames = {{{"@YEARLY", "0 0 1 1 *"},
                                                 {"@ANNUALLY", "0 0 1 1 *"},
                                                 {"@MONTHLY", "0 0 1 * *"},
                                                 {"@WEEKLY", "0 0 * * 0"},
                                                 {"@DAILY", "0 0 * * *"},
                                                 {"@MIDNIGHT", "0 0 * * *"},
                                                 {"@HOURLY", "0 * * * *"}}};

Parsed<CronRule> parse_nickname(std::string_view text, std::span<const Word> words) {
  const auto word = [&](std::size_t index) {
    return text.substr(words[index].begin, words[index].end - words[index].begin);
  };
  if (is_equal(word(0), "@EVERY")) {
    if (words.size() != 2) {
      return CalendarError{"@every takes one duration, as in '@every 90s'",
                           (words.size() < 2 ? words[0].end : words[2].begin) + 1};
    }
    const auto period = parse_duration(word(1));
    if (!period) return CalendarError{period.error().message, words[1].begin + 1};
    if (period->count() > 0) return CronRule(*period);
    return CalendarError{"@every takes a duration greater than 0", words[1].begin + 1};
  }
  for (const Nickname& nickname : kNicknames) {
    if (!is_equal(word(0), nickname.name)) continue;
    if (words.size() == 1) return parse_cron(nickname.expression);
    return CalendarError{std::string(word(0)) + " takes no arguments", words[1].begin + 1};
  }
  return CalendarError{
      "unknown name '" + std::string(word(0)) +
          "'; allowed are @yearly @annually @monthly @weekly @daily @midnight @hourly and @every",
      words[0].begin + 1};
}

}  // namespace

Parsed<CronRule> parse_cron(std::string_view expression) {
  if (expression.size() > kLongestExpression) {
    return CalendarError{"an expression must have at most 1000 characters", kLongestExpression + 1};
  }
  // Errors quote parts of the expression, and a control character would break the line of the
  // error.
  const auto control = std::find_if(expression.begin(), expression.end(), is_control);
  if (control != expression.end()) {
    return CalendarError{"an expression must not have a control character, such as a line break",
                         static_cast<std::size_t>(control - expression.begin()) + 1};
  }
  const std::vector<Word> words = words_of(expression);
  if (!words.empty() && expression[words[0].begin] == '@') {
    return parse_nickname(expression, words);
  }
  if (words.size() == 5 || words.size() == 6) return parse_fields(expression, words);
  return CalendarError{
      "an expression must have five fields (minute, hour, day of month, month, day of week), "
      "or six with the second first; got " +
          std::to_string(words.size()),
      (words.size() > 6 ? words[6].begin : expression.size()) + 1};
}

}  // namespace detent
