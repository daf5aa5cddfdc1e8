// What a store does about a data folder that is not there, for all that open one.
#pragma once

#include <cstdint>

namespace detent {

/// A folder that is missing or empty is made a data folder, or not: who had it open before would
/// begin anew beside tasks that were moved away or unmounted, and waits until it is back.
enum class DataFolderIs : std::uint8_t { made_if_missing, there };

}  // namespace detent
