// NoPages: memory that runs out, for tests of allocation failures in the parts of the wheels.
#pragma once

#include <cstddef>

#include "detent/internal/flat_array.h"

namespace detent::internal {

/// Replaces LargePages: an array can grow to 128 KiB on the heap, and no further.
struct NoPages : HeapPages {
  static void* grow(void*, std::size_t, std::size_t) noexcept { return nullptr; }
};

}  // namespace detent::internal
