#include "store/rocksdb/rocksdb_store.h"

#include <filesystem>
#include <system_error>

#include "store/rocksdb/data_folder.h"
#include "store/rocksdb/open_store.h"

namespace detent {

Result<std::unique_ptr<Store>> RocksDbStore::open(const RocksDbStoreOptions& options) {
  return OpenStore::open(options);
}

Result<bool> RocksDbStore::is_in(const std::string& folder) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (!std::filesystem::status_known(status)) {
    return Error{ErrorCode::unavailable,
                 "data folder '" + folder + "' cannot be read: " + error.message(), ""};
  }
  if (!std::filesystem::is_directory(status)) return false;
  return DataFolder::holds_database(folder);
}

std::vector<std::string> RocksDbStore::files_of_others(const std::string& folder) {
  const Result<bool> has_store = is_in(folder);
  if (!has_store || *has_store) return {};
  return DataFolder::files_of_others(folder).value_or(std::vector<std::string>());
}

}  // namespace detent
