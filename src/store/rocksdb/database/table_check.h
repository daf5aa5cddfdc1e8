// Verifies the checksum of every block of the table files in a data folder.
//
// Reading all records does not find all damage. A block can contain old records that were deleted
// or overwritten later. These records are read only by a compaction. The compaction then fails, and
// the store fails with it.
#pragma once

#include <string>
#include <vector>

namespace detent {

/// Returns one line for each table that cannot be opened or has a block with a wrong checksum.
/// Requires: the folder is not written to. Reads all tables completely. Changes no file.
std::vector<std::string> damaged_tables(const std::string& folder);

/// Returns a message about the first table that cannot be opened: its name and the reason. Returns
/// "" if all tables can be opened. Changes no file.
std::string unreadable_table(const std::string& folder);

}  // namespace detent
