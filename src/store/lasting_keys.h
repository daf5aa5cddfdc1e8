// Keys of no queue that stand for no task and never expire.
#pragma once

#include <string_view>

namespace detent {

/// Every such name begins with this.
inline constexpr std::string_view kLastingKeys = "external ";

}  // namespace detent
