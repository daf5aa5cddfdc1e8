// What reading a schedule gives: the schedule, or an error that says where the text is wrong.
//
//     const detent::Parsed<detent::Cron> cron = detent::Cron::parse(text, zone);
//     if (!cron) return complain(cron.error().message, cron.error().column);
//     use(cron.value());
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "detent/check.h"

namespace detent {

/// Why a schedule was refused.
struct CalendarError {
  std::string message;     // for people: what is wrong and what is allowed
  std::size_t column = 0;  // where in the expression, counted from 1; 0: not in it (the zone)
};

/// A T, or why there is none. A value: as thread-safe as T.
template <class T>
class [[nodiscard]] Parsed {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return cron;` reads well
  Parsed(T value) : value_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): `return CalendarError{…};` too
  Parsed(CalendarError error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  /// Requires: has_value(); otherwise it stops the process. So for text written in the program
  /// `parse("…").value()` is enough, and text from outside is looked at first.
  const T& value() const& {
    DETENT_CHECK(has_value());
    return *value_;
  }
  T value() && {
    DETENT_CHECK(has_value());
    return *std::move(value_);
  }

  /// Empty when there is a value.
  const CalendarError& error() const noexcept { return error_; }

 private:
  std::optional<T> value_;
  CalendarError error_;
};

}  // namespace detent
