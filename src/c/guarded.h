// Turns the exceptions of a C function into a status, because no exception may reach a C program.
#pragma once

#include <concepts>
#include <new>
#include <system_error>

#include "detent/detent.h"

namespace detent::c {

/// Calls `body`. Returns its status, or the status for its exception. The library throws two types:
/// any other type ends the process, because this function is noexcept.
template <std::invocable Body>
detent_status guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return DETENT_ERROR_NO_MEMORY;
  } catch (const std::system_error&) {
    return DETENT_ERROR_SYSTEM;
  }
}

}  // namespace detent::c
