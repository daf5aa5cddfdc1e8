// A callable that can hold what cannot be copied: std::function for move-only captures.
//
// A small callable, such as a lambda that captures four pointers, lies inside the object; a bigger
// one is allocated. The standard library has this as std::move_only_function from C++23 on.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "detent/check.h"

namespace detent {

template <class Signature>
class UniqueFunction;

/// Owns one callable of signature `R(Args...)`. Movable, not copyable. An empty one (default
/// constructed or moved from) converts to false, and calling it is a bug that stops the process.
/// Thread-compatible. No allocation for callables of up to kInlineSize bytes that move without
/// throwing, one for others.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  static constexpr std::size_t kInlineSize = 4 * sizeof(void*);

  UniqueFunction() noexcept = default;

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
  {
    using Target = std::decay_t<F>;
    if constexpr (requires(const Target& target) { target == nullptr; }) {
      if (f == nullptr) return;  // an empty std::function, a null pointer: empty as well
    }
    if constexpr (kFitsInline<Target>) {
      new (storage_.data()) Target(std::forward<F>(f));
      verbs_ = &kVerbs<Inline<Target>>;
    } else {
      new (storage_.data()) Target*(new Target(std::forward<F>(f)));
      verbs_ = &kVerbs<Allocated<Target>>;
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

  R operator()(Args... args) {
    DETENT_CHECK(verbs_ != nullptr);
    return verbs_->call(storage_.data(), std::forward<Args>(args)...);
  }

  explicit operator bool() const noexcept { return verbs_ != nullptr; }

 private:
  /// What can be done with the callable behind `storage_`, whatever its type.
  struct Verbs {
    R (*call)(std::byte*, Args&&...);
    /// Moves it from one storage to another and destroys what is left.
    void (*relocate)(std::byte* to, std::byte* from) noexcept;
    void (*destroy)(std::byte*) noexcept;
  };

  /// Room for a small callable, or for a pointer to a big one; made empty, not zeroed.
  struct Storage {
    Storage() noexcept {}  // NOLINT(modernize-use-equals-default,*-member-init)
    std::byte* data() noexcept { return bytes.data(); }
    alignas(void*) std::array<std::byte, kInlineSize> bytes;
  };

  template <class Target>
  static constexpr bool kIsSmall = sizeof(Target) <= sizeof(Storage) &&
                                   std::alignment_of_v<Target> <= std::alignment_of_v<Storage>;
  template <class Target>
  static constexpr bool kFitsInline =
      kIsSmall<Target>&& std::is_nothrow_move_constructible_v<Target>;

  /// The storage is the callable.
  template <class Target>
  struct Inline {
    static Target& at(std::byte* storage) noexcept {
      return *std::launder(reinterpret_cast<Target*>(storage));
    }
    static void relocate(std::byte* to, std::byte* from) noexcept {
      new (to) Target(std::move(at(from)));
      destroy(from);
    }
    static void destroy(std::byte* storage) noexcept { std::destroy_at(&at(storage)); }
  };
  /// The storage holds a pointer that owns the callable.
  template <class Target>
  struct Allocated {
    static Target*& owner(std::byte* storage) noexcept {
      return *std::launder(reinterpret_cast<Target**>(storage));
    }
    static Target& at(std::byte* storage) noexcept { return *owner(storage); }
    static void relocate(std::byte* to, std::byte* from) noexcept { new (to) Target*(owner(from)); }
    static void destroy(std::byte* storage) noexcept { delete owner(storage); }
  };

  template <class Place>
  static constexpr Verbs kVerbs{
      .call = [](std::byte* storage, Args&&... args) -> R {
        return std::invoke(Place::at(storage), std::forward<Args>(args)...);
      },
      .relocate = &Place::relocate,
      .destroy = &Place::destroy,
  };

  void take(UniqueFunction& other) noexcept {
    if (other.verbs_ == nullptr) return;
    other.verbs_->relocate(storage_.data(), other.storage_.data());
    verbs_ = std::exchange(other.verbs_, nullptr);
  }
  // Emptied first: the callable may hold what, when destroyed, comes back to this object.
  void reset() noexcept {
    if (const Verbs* const verbs = std::exchange(verbs_, nullptr)) {
      verbs->destroy(storage_.data());
    }
  }

  const Verbs* verbs_ = nullptr;
  Storage storage_;
};

/// What a runtime timer runs.
using Job = UniqueFunction<void()>;

}  // namespace detent
