#include "calendar/cron_fields.h"

#include <bit>

namespace detent {
namespace {

using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::year_month;

constexpr std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

/// The members of `set` that are at least `low`.
constexpr std::uint64_t from_on(std::uint64_t set, unsigned low) {
  return low >= 64 ? 0 : set & (~std::uint64_t{0} << low);
}

struct Month {
  unsigned length;
  unsigned first_weekday;  // of day 1

  explicit Month(year_month month)
      : length(static_cast<unsigned>((month / std::chrono::last).day())),
        first_weekday(std::chrono::weekday{local_days{month / 1}}.c_encoding()) {}

  unsigned weekday_of(unsigned day) const { return (first_weekday + day - 1) % 7; }
  unsigned first_of(unsigned weekday) const { return 1 + (weekday + 7 - first_weekday) % 7; }

  /// The day itself if it is Monday to Friday; otherwise the nearest such day of the same month.
  unsigned nearest_weekday(unsigned day) const {
    switch (weekday_of(day)) {
      case 6:
        return day > 1 ? day - 1 : day + 2;
      case 0:
        return day < length ? day + 1 : day - 2;
      default:
        return day;
    }
  }
};

std::uint64_t days_by_date(const CronFields& fields, const Month& month) {
  std::uint64_t days = fields.days;
  for (unsigned day = 1; day <= month.length; ++day) {
    if ((fields.days_to_last & bit(month.length - day)) != 0) days |= bit(day);
    if ((fields.nearest_to & bit(day)) != 0) days |= bit(month.nearest_weekday(day));
  }
  if (fields.has_last_weekday) days |= bit(month.nearest_weekday(month.length));
  return days;
}

std::uint64_t days_by_weekday(const CronFields& fields, const Month& month) {
  std::uint64_t days = 0;
  for (unsigned weekday = 0; weekday < 7; ++weekday) {
    unsigned nth = 0;
    for (unsigned day = month.first_of(weekday); day <= month.length; day += 7) {
      ++nth;
      const std::uint32_t wanted = fields.weekdays | fields.nth_weekdays[nth] |
                                   (day + 7 > month.length ? fields.last_weekdays : 0);
      if ((wanted & bit(weekday)) != 0) days |= bit(day);
    }
  }
  return days;
}

/// The first matching time of day at or after `from`. Returns nullopt if there is none on this day.
std::optional<std::chrono::seconds> next_time_of_day(const CronFields& fields,
                                                     std::chrono::seconds from) {
  const auto count = static_cast<unsigned>(from.count());
  unsigned hour = count / 3600;
  unsigned minute = count / 60 % 60;
  const auto seconds = from_on(fields.seconds, count % 60);
  if (seconds == 0) ++minute;
  auto minutes = from_on(fields.minutes, minute);
  const bool is_this_hour = minutes != 0 && (fields.hours & bit(hour)) != 0;
  if (!is_this_hour) {
    const auto hours = from_on(fields.hours, hour + 1);
    if (hours == 0) return std::nullopt;
    hour = static_cast<unsigned>(std::countr_zero(hours));
    minutes = fields.minutes;
  }
  const auto first_minute = static_cast<unsigned>(std::countr_zero(minutes));
  const bool is_this_minute = is_this_hour && first_minute == count / 60 % 60 && seconds != 0;
  const auto second = std::countr_zero(is_this_minute ? seconds : fields.seconds);
  return std::chrono::hours{hour} + std::chrono::minutes{first_minute} +
         std::chrono::seconds{second};
}

}  // namespace

std::uint32_t days_of(const CronFields& fields, year_month month) {
  const Month shape(month);
  const std::uint64_t by_date = days_by_date(fields, shape);
  const std::uint64_t by_weekday = days_by_weekday(fields, shape);
  const bool wants_both = fields.is_day_starred || fields.is_weekday_starred;
  const std::uint64_t days = wants_both ? by_date & by_weekday : by_date | by_weekday;
  return static_cast<std::uint32_t>(days & (bit(shape.length + 1) - bit(1)));
}

std::optional<local_seconds> next_match(const CronFields& fields, local_seconds from,
                                        local_seconds until, SearchCost& cost) {
  const auto if_before_end = [until](local_seconds time) {
    return time < until ? std::optional(time) : std::nullopt;
  };
  const local_days today = std::chrono::floor<std::chrono::days>(from);
  const std::chrono::year_month_day date{today};
  const auto tod = next_time_of_day(fields, from - today);
  unsigned first_day = static_cast<unsigned>(date.day());
  for (year_month month{date.year(), date.month()}; local_days{month / 1} < until;
       month += std::chrono::months{1}) {
    if ((fields.months & bit(static_cast<unsigned>(month.month()))) != 0) {
      ++cost.months;
      auto days = from_on(days_of(fields, month), first_day);
      if (first_day != 0 && (days & bit(first_day)) != 0) {
        if (tod) return if_before_end(today + *tod);
        days &= days - 1;  // no time is left on the first day
      }
      if (days != 0) {
        const auto day = static_cast<unsigned>(std::countr_zero(days));
        return if_before_end(local_days{month / std::chrono::day{day}} +
                             *next_time_of_day(fields, std::chrono::seconds{0}));
      }
    }
    first_day = 0;
  }
  return std::nullopt;
}

bool is_possible(const CronFields& fields) {
  for (year_month month{std::chrono::year{2000}, std::chrono::January};
       month.year() < std::chrono::year{2400}; month += std::chrono::months{1}) {
    const bool is_wanted = (fields.months & bit(static_cast<unsigned>(month.month()))) != 0;
    if (is_wanted && days_of(fields, month) != 0) return true;
  }
  return false;
}

}  // namespace detent
