// ValueOr: a value, or an error. It is the common base of the results in public headers. Each
// result type names its error, and decides whether callers may ignore a result.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "detent/check.h"

namespace detent::internal {

/// Holds a T or an Error. Thread safety: as T.
template <class T, class Error>
class ValueOr {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` reads well
  ValueOr(T value) : value_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): `return Error{…};` too
  ValueOr(Error error) : error_(std::move(error)) {}

  /// Returns true if there is a value.
  bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  /// Returns the value. Stops the process unless has_value().
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
  /// As value().
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return std::addressof(value()); }
  const T* operator->() const { return std::addressof(value()); }

  /// Returns the error. If there is a value, the fields of the error have their default values.
  const Error& error() const noexcept { return error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace detent::internal
