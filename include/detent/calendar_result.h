// The result of parsing a schedule: the schedule, or an error with the position of the mistake.
//
//     const detent::Parsed<detent::Cron> cron = detent::Cron::parse(text, zone);
//     if (!cron) return complain(cron.error().message, cron.error().column);
//     use(cron.value());
#pragma once

#include <cstddef>
#include <string>

#include "detent/internal/value_or.h"

namespace detent {

/// The reason why a schedule was refused.
struct CalendarError {
  std::string message;     // for people: says the mistake and the allowed values
  std::size_t column = 0;  // position in the expression, from 1; 0 if the zone is wrong
};

/// Holds a T or a CalendarError. The members are has_value(), value(), *, -> and error(). Without a
/// T, value(), * and -> stop the process. For a constant expression in the program,
/// `parse("…").value()` is therefore enough. Check text from outside with has_value() first. Thread
/// safety: as T.
template <class T>
class [[nodiscard]] Parsed : public internal::ValueOr<T, CalendarError> {
 public:
  using internal::ValueOr<T, CalendarError>::ValueOr;
};

}  // namespace detent
