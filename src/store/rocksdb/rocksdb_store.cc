#include "store/rocksdb/rocksdb_store.h"

#include "store/rocksdb/database/data_folder.h"
#include "store/rocksdb/open_store.h"

namespace detent {

Result<std::unique_ptr<Store>> RocksDbStore::open(const RocksDbStoreOptions& options) {
  return OpenStore::open(options);
}

Result<bool> RocksDbStore::is_in(const std::string& folder) {
  return DataFolder::holds_database(folder);
}

std::vector<std::string> RocksDbStore::files_of_others(const std::string& folder) {
  const Result<bool> has_store = is_in(folder);
  if (!has_store || *has_store) return {};
  return DataFolder::files_of_others(folder).value_or(std::vector<std::string>());
}

}  // namespace detent
