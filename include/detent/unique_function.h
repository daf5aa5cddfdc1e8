// A callable that can hold what cannot be copied: std::function for move-only captures.
//
// The standard library has this as std::move_only_function from C++23 on.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "detent/check.h"

namespace detent {

template <class Signature>
class UniqueFunction;

/// Owns one callable of signature `R(Args...)`. Movable, not copyable. An empty one (default
/// constructed or moved from) converts to false, and calling it is a bug that stops the process.
/// Thread-compatible. One allocation per construction from a callable.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() noexcept = default;

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : target_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(f))) {}

  R operator()(Args... args) {
    DETENT_CHECK(target_ != nullptr);
    return target_->call(std::forward<Args>(args)...);
  }

  explicit operator bool() const noexcept { return target_ != nullptr; }

 private:
  struct Target {
    virtual ~Target() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Holder final : Target {
    explicit Holder(F&& f) : function(std::move(f)) {}
    explicit Holder(const F& f) : function(f) {}
    R call(Args... args) override { return std::invoke(function, std::forward<Args>(args)...); }
    F function;
  };

  std::unique_ptr<Target> target_;
};

/// What a runtime timer runs.
using Job = UniqueFunction<void()>;

}  // namespace detent
