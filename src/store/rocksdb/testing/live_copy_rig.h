// For tests: copies a data folder while a store has it open. The copy is what a crash of the
// process at this moment would leave.
#pragma once

#include <rocksdb/db.h>

#include <filesystem>
#include <string>

#include "detent/check.h"

namespace detent {

/// Requires: no thread writes to the store during the copy.
inline void copy_live_folder(rocksdb::DB& db, const std::string& to) {
  DETENT_CHECK(db.PauseBackgroundWork().ok());
  DETENT_CHECK(db.DisableFileDeletions().ok());
  std::filesystem::copy(db.GetName(), to, std::filesystem::copy_options::recursive);
  DETENT_CHECK(db.EnableFileDeletions(/*force=*/false).ok());
  DETENT_CHECK(db.ContinueBackgroundWork().ok());
}

}  // namespace detent
