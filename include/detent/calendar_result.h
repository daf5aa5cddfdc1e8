// What reading a schedule gives: the schedule, or an error that says where the text is wrong.
//
//     const detent::Parsed<detent::Cron> cron = detent::Cron::parse(text, zone);
//     if (!cron) return complain(cron.error().message, cron.error().column);
//     use(cron.value());
#pragma once

#include <cstddef>
#include <string>

#include "detent/internal/value_or.h"

namespace detent {

/// Why a schedule was refused.
struct CalendarError {
  std::string message;     // for people: what is wrong and what is allowed
  std::size_t column = 0;  // where in the expression, counted from 1; 0: not in it (the zone)
};

/// A T, or why there is none: has_value(), value(), *, -> and error(). value(), * and -> stop the
/// process when there is none, so for text written in the program `parse("…").value()` is enough,
/// and text from outside is looked at first.
template <class T>
class [[nodiscard]] Parsed : public internal::ValueOr<T, CalendarError> {
 public:
  using internal::ValueOr<T, CalendarError>::ValueOr;
};

}  // namespace detent
