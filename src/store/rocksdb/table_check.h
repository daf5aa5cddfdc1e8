// Whether the table files of a data folder are as they were written, block by block.
//
// Reading every record does not tell: what has been removed or written anew since is in some block
// as well, which nobody reads before a compaction does. That then fails, and the store with it.
#pragma once

#include <string>
#include <vector>

namespace detent {

/// Returns: a line for each table of the folder in which a block does not have its checksum.
/// Requires: nobody writes to the folder. Reads all of its tables, O(bytes); changes nothing.
std::vector<std::string> damaged_tables(const std::string& folder);

/// Returns: which table of the folder cannot even be opened, and why; "" when all can. The first,
/// if there are several. Changes nothing.
std::string unreadable_table(const std::string& folder);

}  // namespace detent
