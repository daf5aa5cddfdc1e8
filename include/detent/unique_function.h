// UniqueFunction: a callable that can hold a move-only object, such as a lambda with a captured
// unique_ptr.
//
// A small trivially copyable callable lies inside the object. Every other callable is allocated. A
// move copies bytes and never runs code of the callable, so moving under a lock is safe. C++23 has
// a similar class, std::move_only_function.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "detent/check.h"

namespace detent {

template <class Signature>
class UniqueFunction;

/// Owns one callable of signature `R(Args...)`. Movable, not copyable. An object is empty after
/// default construction and after being moved from. An empty object converts to false, and calling
/// it stops the process. Thread-compatible. A trivially copyable callable of up to kInlineSize
/// bytes needs no allocation; any other needs one.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  /// The largest size in bytes of a callable inside the object.
  static constexpr std::size_t kInlineSize = 4 * sizeof(void*);

  /// Makes an empty object.
  UniqueFunction() noexcept = default;

  /// Holds a copy of `f`, or `f` moved. An `f` that equals nullptr makes an empty object.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
  {
    using Target = std::decay_t<F>;
    if constexpr (requires(const Target& target) { target == nullptr; }) {
      if (f == nullptr) return;  // an empty std::function or a null pointer makes an empty object
    }
    if constexpr (kFitsInline<Target>) {
      new (storage_.data()) Target(std::forward<F>(f));
      verbs_ = &kInlineVerbs<Target>;
    } else {
      new (storage_.data()) Target*(new Target(std::forward<F>(f)));
      verbs_ = &kAllocatedVerbs<Target>;
    }
  }

  ~UniqueFunction() { reset(); }
  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }

  /// Calls the callable. Requires: the object is not empty; otherwise the process stops.
  R operator()(Args... args) {
    DETENT_CHECK(verbs_ != nullptr);
    return verbs_->call(storage_.data(), std::forward<Args>(args)...);
  }

  /// Returns false if the object is empty.
  explicit operator bool() const noexcept { return verbs_ != nullptr; }

  /// Returns the address of the callable, or null if the object is empty. The address stays the
  /// same after a move, unless the callable lies inside the object.
  const void* target() const noexcept {
    if (verbs_ == nullptr) return nullptr;
    if (verbs_->destroy == nullptr) return storage_.bytes.data();
    const void* allocated = nullptr;
    std::memcpy(&allocated, storage_.bytes.data(), sizeof(allocated));
    return allocated;
  }

 private:
  /// Room for a small callable, or for the pointer to an allocated callable.
  struct alignas(void*) Storage {
    std::byte* data() noexcept { return bytes.data(); }
    std::array<std::byte, kInlineSize> bytes{};
  };

  /// Operations on a stored callable, independent of its type.
  struct Verbs {
    R (*call)(std::byte*, Args&&...);
    void (*destroy)(std::byte*) noexcept;  // null: no destruction needed
  };

  template <class Target>
  static constexpr bool kIsSmall = sizeof(Target) <= sizeof(Storage) &&
                                   std::alignment_of_v<Target> <= std::alignment_of_v<Storage>;
  template <class Target>
  static constexpr bool kFitsInline = kIsSmall<Target>&& std::is_trivially_copyable_v<Target>;

  template <class Target>
  static Target& inline_target(std::byte* storage) noexcept {
    return *std::launder(reinterpret_cast<Target*>(storage));
  }
  template <class Target>
  static Target* allocated_target(std::byte* storage) noexcept {
    return *std::launder(reinterpret_cast<Target**>(storage));
  }

  template <class Returned>
  static constexpr bool kIsCoroutine = requires {
    typename Returned::promise_type;
  };

  // As std::invoke_r of C++23: if R is void, the result of the callable is discarded.
  template <class Target>
  static R invoke(Target& target, Args&&... args) {
    if constexpr (std::is_void_v<R>) {
      static_assert(!kIsCoroutine<std::invoke_result_t<Target&, Args...>>,
                    "a coroutine that is only called never runs: spawn() it in a lambda");
      static_cast<void>(std::invoke(target, std::forward<Args>(args)...));
    } else {
      return std::invoke(target, std::forward<Args>(args)...);
    }
  }

  template <class Target>
  static constexpr Verbs kInlineVerbs{
      .call = [](std::byte* storage, Args&&... args) -> R {
        return invoke(inline_target<Target>(storage), std::forward<Args>(args)...);
      },
      .destroy = nullptr,
  };
  template <class Target>
  static constexpr Verbs kAllocatedVerbs{
      .call = [](std::byte* storage, Args&&... args) -> R {
        return invoke(*allocated_target<Target>(storage), std::forward<Args>(args)...);
      },
      .destroy = [](std::byte* storage) noexcept { delete allocated_target<Target>(storage); },
  };

  void take(UniqueFunction& other) noexcept {
    if (other.verbs_ == nullptr) return;
    storage_ = other.storage_;
    verbs_ = std::exchange(other.verbs_, nullptr);
  }
  // Emptied first, because destroying the callable can run code that uses this object.
  void reset() noexcept {
    const Verbs* const verbs = std::exchange(verbs_, nullptr);
    if (verbs != nullptr && verbs->destroy != nullptr) verbs->destroy(storage_.data());
  }

  const Verbs* verbs_ = nullptr;
  Storage storage_;
};

/// The callable that a runtime timer runs.
using Job = UniqueFunction<void()>;

}  // namespace detent
