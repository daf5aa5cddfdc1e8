// Keys of no queue that belong to no task and never expire.
#pragma once

#include <string_view>

namespace detent {

/// The prefix of all such keys.
inline constexpr std::string_view kLastingKeys = "external ";

}  // namespace detent
