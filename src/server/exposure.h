// Which addresses the server may listen on.
#pragma once

#include <string>

#include "base/result.h"

namespace detent::server {

/// Refuses every address but loopback (127.0.0.0/8 and ::1): this version has no access control, so
/// whoever reaches the port may do everything. Errors: `invalid_argument`, also for what is no IP
/// address.
Result<void> require_loopback(const std::string& host);

}  // namespace detent::server
