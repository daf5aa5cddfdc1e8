// Errors that all back ends share, so that callers and tests see the same text.
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// `place` has no record.
Error not_stored(Place place);
/// A write failed before, and its outcome is unknown. The store refuses all writes until it is
/// opened again (point 2 of the contract).
Error earlier_write_failed();

/// The lease table says that another node with this name is alive.
Error node_name_in_use(const std::string& node, const std::string& address);

}  // namespace detent
