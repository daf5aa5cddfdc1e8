// Checks for bugs. A failed check means that the program is wrong, and stops the process.
//
// Input from outside the process (a request, a file, a peer) must never fail a check. Such failures
// are returned as values (`Result<T>` in src/base/result.h). DETENT_CHECK stays on in release
// builds. DETENT_DCHECK is off under NDEBUG; it is for checks that are too expensive for release
// builds.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace detent::internal {

/// Prints the condition and its place to stderr, then aborts.
[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace detent::internal

/// Stops the process with a message unless `condition` holds. Evaluates `condition` once.
#define DETENT_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::detent::internal::check_failed(#condition, __FILE__, __LINE__))

/// Like DETENT_CHECK in debug builds. Under NDEBUG, `condition` is compiled but not evaluated.
#ifdef NDEBUG
#define DETENT_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define DETENT_DCHECK(condition) DETENT_CHECK(condition)
#endif
