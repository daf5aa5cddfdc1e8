// The errors every back end gives alike, so that callers and tests meet one wording.
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// There is no record at `place`.
Error not_stored(Place place);
/// A write failed before, so whether it is there is unknown: nothing is written until the store is
/// opened again (contract 2).
Error earlier_write_failed();

/// Another node of this name is alive, as far as the lease table knows.
Error node_name_in_use(const std::string& node, const std::string& address);

}  // namespace detent
