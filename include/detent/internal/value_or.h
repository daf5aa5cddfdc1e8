// A value, or why there is none: what the results of public headers have in common. They give the
// error its type and say whether an answer may be ignored.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "detent/check.h"

namespace detent::internal {

/// As thread-safe as T.
template <class T, class Error>
class ValueOr {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` reads well
  ValueOr(T value) : value_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): `return Error{…};` too
  ValueOr(Error error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  /// Requires: has_value(); otherwise it stops the process.
  T& value() & {
    DETENT_CHECK(has_value());
    return *value_;
  }
  const T& value() const& {
    DETENT_CHECK(has_value());
    return *value_;
  }
  T value() && {
    DETENT_CHECK(has_value());
    return *std::move(value_);
  }
  /// The same: value().
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return std::addressof(value()); }
  const T* operator->() const { return std::addressof(value()); }

  /// Empty when there is a value.
  const Error& error() const noexcept { return error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace detent::internal
