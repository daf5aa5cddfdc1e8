// The part of tl::expected that src/base and src/calendar use, for a build of the library alone. A
// library should not ask its users for a package. cmake/DetentExpected.cmake adds this folder to
// the include path then. The installed headers do not include this file.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace tl {

/// Selects the constructor that makes an error.
struct unexpect_t {};
inline constexpr unexpect_t unexpect{};

/// Holds a value or an error. `value`, `*` and `->` require a value, `error` requires an error.
/// Thread-compatible.
template <class T, class E>
class expected {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  /// Holds a default value.
  expected() = default;
  /// Holds `value`.
  template <class U>
  requires(std::constructible_from<Value, U> && !std::derived_from<std::decay_t<U>, expected>)
      // NOLINTNEXTLINE(google-explicit-constructor): `return value;`
      expected(U&& value)
      : content_(std::in_place_index<0>, std::forward<U>(value)) {}
  /// Holds `error`.
  expected(unexpect_t, E error) : content_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  Value& operator*() & noexcept { return *std::get_if<0>(&content_); }
  const Value& operator*() const& noexcept { return *std::get_if<0>(&content_); }
  Value&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
  Value* operator->() noexcept { return std::get_if<0>(&content_); }
  const Value* operator->() const noexcept { return std::get_if<0>(&content_); }

  Value& value() & { return std::get<0>(content_); }
  const Value& value() const& { return std::get<0>(content_); }
  Value&& value() && { return std::get<0>(std::move(content_)); }

  E& error() & noexcept { return *std::get_if<1>(&content_); }
  const E& error() const& noexcept { return *std::get_if<1>(&content_); }
  E&& error() && noexcept { return std::move(*std::get_if<1>(&content_)); }

 private:
  std::variant<Value, E> content_;
};

}  // namespace tl
