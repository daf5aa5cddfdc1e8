// FunctionRef: a callable that is borrowed for one call. Templates use it to pass a lambda to code
// that is compiled only once.
//
//     void visit(FunctionRef<void(Node&)> visitor);
//     visit([&](Node& node) { … });                    // no allocation; the lambda lives on here
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace detent::internal {

template <class Signature>
class FunctionRef;

/// Calls the callable from which it was made. That callable must outlive the FunctionRef.
/// Immutable; no allocation.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::same_as<F, FunctionRef> && std::is_invocable_r_v<R, const F&, Args...>)
      // A lambda is passed as one: NOLINTNEXTLINE(google-explicit-constructor)
      FunctionRef(const F& f)
  noexcept
      : target_(std::addressof(f)), call_([](const void* target, Args... args) -> R {
          return (*static_cast<const F*>(target))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  const void* target_;
  R (*call_)(const void* target, Args... args);
};

}  // namespace detent::internal
