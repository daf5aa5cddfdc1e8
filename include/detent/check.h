// Checks of what must hold whatever the input: a failed check is a bug in the program and stops it.
//
// Nothing that comes from outside the process (a request, a file, a peer) may trip one; such
// failures are values (`Result<T>` in src/base/result.h). DETENT_CHECK stays on in release builds.
// DETENT_DCHECK is for checks that cost more than they protect there: it is off under NDEBUG.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace detent::internal {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace detent::internal

#define DETENT_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::detent::internal::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define DETENT_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define DETENT_DCHECK(condition) DETENT_CHECK(condition)
#endif
