#include "store/rocksdb/rocksdb_store.h"

#include "store/rocksdb/open_store.h"

namespace detent {

Result<std::unique_ptr<Store>> RocksDbStore::open(const RocksDbStoreOptions& options) {
  return OpenStore::open(options);
}

}  // namespace detent
