// A cron expression as sets of bits, and the search for the next local time that matches them.
//
// This file does not know time zones: local time is a line without gaps. The matching days of a
// month are the bits of one word, so a search looks at each month once and takes the lowest bit.
// The pattern of days repeats every 400 years, so an expression that matches no day in 400 years
// never matches.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace detent {

/// The values that a field matches. Bit n of a set stands for the value n.
struct CronFields {
  std::uint64_t seconds = 1;
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint32_t months = 0;  // bits 1-12

  // Day of month: a day matches if any of these four members has it.
  std::uint32_t days = 0;          // bits 1-31
  std::uint32_t days_to_last = 0;  // bit n: n days before the month's last day, `L-n`; bit 0: `L`
  std::uint32_t nearest_to = 0;    // bit n: the weekday nearest to day n, `nW`
  bool has_last_weekday = false;   // `LW`
  bool is_day_starred = false;

  // Day of week: a day matches if any of these three members has it.
  std::uint32_t weekdays = 0;                      // bits 0-6, Sunday is 0
  std::array<std::uint32_t, 6> nth_weekdays = {};  // [k] bit n: the k-th n of a month, `n#k`
  std::uint32_t last_weekdays = 0;                 // bit n: the last n of a month, `nL`
  bool is_weekday_starred = false;

  bool has_every_hour() const noexcept { return hours == (1U << 24) - 1; }
};

/// The days of a month that match, as bits 1-31. Vixie's rule: if one of the two day fields begins
/// with a star, a day must match both fields. Otherwise it must match one of them.
std::uint32_t days_of(const CronFields& fields, std::chrono::year_month month);

/// The cost of a search, for tests.
struct SearchCost {
  unsigned months = 0;  // months for which the matching days were computed
  unsigned spans = 0;   // spans of constant offset that were searched
};

/// The first local time in [from, until) that matches.
std::optional<std::chrono::local_seconds> next_match(const CronFields& fields,
                                                     std::chrono::local_seconds from,
                                                     std::chrono::local_seconds until,
                                                     SearchCost& cost);

/// True if any day of the calendar matches.
bool is_possible(const CronFields& fields);

}  // namespace detent
