#include "calendar/cron_explain.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

namespace detent {
namespace {

constexpr unsigned kMostTimesOfDay = 6;  // a longer list of times is described by its fields

constexpr std::array<std::string_view, 13> kMonthNames = {
    "",     "January", "February",  "March",   "April",    "May",     "June",
    "July", "August",  "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdayNames = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 6> kOrdinals = {"",      "first",  "second",
                                                       "third", "fourth", "fifth"};

using Texts = std::vector<std::string>;

/// "a", "a and b", "a, b and c".
std::string join(const Texts& texts, std::string_view last_word = "and") {
  std::string joined;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) joined += i + 1 == texts.size() ? " " + std::string(last_word) + " " : ", ";
    joined += texts[i];
  }
  return joined;
}

std::vector<unsigned> members(std::uint64_t set) {
  std::vector<unsigned> values;
  for (; set != 0; set &= set - 1) values.push_back(static_cast<unsigned>(std::countr_zero(set)));
  return values;
}

/// The members as a list. Three or more consecutive members are written as "a to b".
template <class Name>
std::string list_of(std::uint64_t set, const Name& name) {
  Texts texts;
  const auto values = members(set);
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i + 1;
    while (end < values.size() && values[end] == values[end - 1] + 1) ++end;
    if (end - i >= 3) {
      texts.push_back(std::string(name(values[i])) + " to " + std::string(name(values[end - 1])));
    } else {
      for (std::size_t j = i; j < end; ++j) texts.emplace_back(name(values[j]));
    }
    i = end;
  }
  return join(texts);
}

std::string number_name(unsigned value) { return std::to_string(value); }
std::string_view month_name(unsigned value) { return kMonthNames.at(value); }
std::string_view weekday_name(unsigned value) { return kWeekdayNames.at(value); }

std::string two_digits(unsigned value) { return (value < 10 ? "0" : "") + std::to_string(value); }

/// Returns n if the set is 0, n, 2n, … below `size` and n divides `size`. Returns 0 for other sets.
unsigned step_of(std::uint64_t set, unsigned size) {
  for (unsigned step = 1; step < size; ++step) {
    if (size % step != 0) continue;
    std::uint64_t steps = 0;
    for (unsigned value = 0; value < size; value += step) steps |= std::uint64_t{1} << value;
    if (set == steps) return step;
  }
  return 0;
}

/// "every second", "every 15 minutes", "at minute 5", "at minutes 5 and 35".
std::string beats(std::uint64_t set, unsigned size, const std::string& unit) {
  if (const unsigned step = step_of(set, size)) {
    return step == 1 ? "every " + unit : "every " + std::to_string(step) + " " + unit + "s";
  }
  return "at " + unit + (std::has_single_bit(set) ? " " : "s ") + list_of(set, number_name);
}

/// "at 09:00 and 17:00", or "" if the day has too many times to list.
std::string times_of_day(const CronFields& fields) {
  const auto count = std::popcount(fields.hours) * std::popcount(fields.minutes);
  if (static_cast<unsigned>(count) > kMostTimesOfDay || !std::has_single_bit(fields.seconds)) {
    return "";
  }
  Texts texts;
  for (const unsigned hour : members(fields.hours)) {
    for (const unsigned minute : members(fields.minutes)) {
      texts.push_back(two_digits(hour) + ":" + two_digits(minute));
      if (fields.seconds != 1) {
        texts.back() += ":" + two_digits(static_cast<unsigned>(std::countr_zero(fields.seconds)));
      }
    }
  }
  return "at " + join(texts);
}

std::string beats_of_hours(const CronFields& fields) {
  if (fields.has_every_hour()) return "";
  if (const unsigned step = step_of(fields.hours, 24)) {
    return ", in every " +
           (step <= 3 ? std::string(kOrdinals.at(step)) : std::to_string(step) + "th") +
           " hour from 00:00";
  }
  return std::string(", in hour") + (std::has_single_bit(fields.hours) ? " " : "s ") +
         list_of(fields.hours, number_name);
}

std::string time_part(const CronFields& fields) {
  if (std::string times = times_of_day(fields); !times.empty()) return times;
  std::string text;
  const bool is_every_minute = step_of(fields.minutes, 60) == 1;
  if (fields.seconds != 1) {
    text = beats(fields.seconds, 60, "second");
    if (std::has_single_bit(fields.seconds) && is_every_minute) text += " of every minute";
    if (!is_every_minute) text += ", ";
  }
  if (fields.seconds == 1 || !is_every_minute) text += beats(fields.minutes, 60, "minute");
  if (fields.has_every_hour() && step_of(fields.minutes, 60) == 0) text += " of every hour";
  return text + beats_of_hours(fields);
}

/// The phrases for the field day of month, with their prepositions. Empty if every day matches.
Texts dates(const CronFields& fields) {
  Texts texts;
  constexpr std::uint32_t kAll = ~1U;
  if ((fields.days & kAll) == kAll) return texts;
  if (fields.days != 0) {
    texts.push_back(std::string("on day") + (std::has_single_bit(fields.days) ? " " : "s ") +
                    list_of(fields.days, number_name) + " of the month");
  }
  for (const unsigned before : members(fields.days_to_last)) {
    texts.push_back(before == 0 ? "on the last day of the month"
                    : before == 1
                        ? "1 day before the last day of the month"
                        : std::to_string(before) + " days before the last day of the month");
  }
  for (const unsigned day : members(fields.nearest_to)) {
    texts.push_back("on the weekday nearest to day " + std::to_string(day) + " of the month");
  }
  if (fields.has_last_weekday) texts.emplace_back("on the last weekday of the month");
  return texts;
}

Texts days_of_week(const CronFields& fields) {
  Texts texts;
  if (fields.weekdays == 0x7F) return texts;
  // List the days from Monday on, so that the text reads "Saturday and Sunday".
  const std::uint32_t from_monday = fields.weekdays >> 1 | (fields.weekdays & 1) << 6;
  if (from_monday != 0) {
    texts.push_back("on " +
                    list_of(from_monday, [](unsigned day) { return weekday_name((day + 1) % 7); }));
  }
  for (unsigned nth = 1; nth <= 5; ++nth) {
    for (const unsigned day : members(fields.nth_weekdays.at(nth))) {
      texts.push_back("on the " + std::string(kOrdinals.at(nth)) + " " +
                      std::string(weekday_name(day)) + " of the month");
    }
  }
  for (const unsigned day : members(fields.last_weekdays)) {
    texts.push_back("on the last " + std::string(weekday_name(day)) + " of the month");
  }
  return texts;
}

std::string day_part(const CronFields& fields) {
  Texts by_date = dates(fields);
  Texts by_weekday = days_of_week(fields);
  if (by_date.empty() && by_weekday.empty()) return "";
  if (by_date.empty()) return " " + join(by_weekday, "or");
  if (by_weekday.empty()) return " " + join(by_date, "or");
  if (fields.is_day_starred || fields.is_weekday_starred) {
    return " " + join(by_weekday, "or") + ", if that is also " + join(by_date, "or");
  }
  by_date.insert(by_date.end(), by_weekday.begin(), by_weekday.end());
  return " " + join(by_date, "or");
}

std::string month_part(const CronFields& fields) {
  constexpr std::uint32_t kAll = 0x1FFE;
  return fields.months == kAll ? "" : ", in " + list_of(fields.months, month_name);
}

/// "90 seconds", "2 hours", "1 day": in the largest unit that gives a whole number.
std::string length_text(std::chrono::milliseconds length) {
  struct Unit {
    std::int64_t ms;
    std::string_view name;
  };
  constexpr std::array<Unit, 5> kUnits = {{{86'400'000, "day"},
                                           {3'600'000, "hour"},
                                           {60'000, "minute"},
                                           {1000, "second"},
                                           {1, "millisecond"}}};
  for (const Unit& unit : kUnits) {
    if (length.count() % unit.ms != 0) continue;
    const std::int64_t count = length.count() / unit.ms;
    return std::to_string(count) + " " + std::string(unit.name) + (count == 1 ? "" : "s");
  }
  return "";
}

}  // namespace

std::string explain_cron(const CronRule& rule) {
  if (const auto* period = std::get_if<std::chrono::milliseconds>(&rule)) {
    return "Every " + length_text(*period) + ", counted from 1970-01-01T00:00:00Z";
  }
  const auto& fields = std::get<CronFields>(rule);
  std::string text = time_part(fields) + day_part(fields) + month_part(fields);
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

}  // namespace detent
