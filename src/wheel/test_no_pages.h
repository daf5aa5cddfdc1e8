// Memory that runs out: for tests of what the wheels' parts do then.
#pragma once

#include <cstddef>

#include "detent/internal/flat_array.h"

namespace detent::internal {

/// In the place of LargePages: a row gets what the heap has, up to 128 KiB, and no more.
struct NoPages : HeapPages {
  static void* grow(void*, std::size_t, std::size_t) noexcept { return nullptr; }
};

}  // namespace detent::internal
