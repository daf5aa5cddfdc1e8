#include "store/rocksdb/planted_damage.h"

#include <rocksdb/db.h>

#include <memory>
#include <string_view>
#include <vector>

#include "detent/check.h"
#include "store/rocksdb/key_format.h"

namespace detent {

namespace {

/// The database opened with RocksDB's defaults and whatever families it has.
class RawDb {
 public:
  explicit RawDb(const std::string& folder) {
    std::vector<std::string> names;
    DETENT_CHECK(rocksdb::DB::ListColumnFamilies({}, folder, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    rocksdb::DB* db = nullptr;
    DETENT_CHECK(rocksdb::DB::Open({}, folder, families, &handles_, &db).ok());
    db_.reset(db);
  }
  ~RawDb() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      DETENT_CHECK(db_->DestroyColumnFamilyHandle(handle).ok());
    }
    DETENT_CHECK(db_->Close().ok());
  }
  RawDb(const RawDb&) = delete;
  RawDb& operator=(const RawDb&) = delete;

  rocksdb::ColumnFamilyHandle* family(std::string_view name) {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      if (handle->GetName() == name) return handle;
    }
    DETENT_CHECK(false && "no such family");
    return nullptr;
  }
  std::string get(std::string_view family_name, const std::string& key) {
    std::string value;
    DETENT_CHECK(db_->Get({}, family(family_name), key, &value).ok());
    return value;
  }
  void put(std::string_view family_name, const std::string& key, const std::string& value) {
    DETENT_CHECK(db_->Put({}, family(family_name), key, value).ok());
  }
  void remove(std::string_view family_name, const std::string& key) {
    DETENT_CHECK(db_->Delete({}, family(family_name), key).ok());
  }
  void add_family(const std::string& name) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    DETENT_CHECK(db_->CreateColumnFamily({}, name, &handle).ok());
    handles_.push_back(handle);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace

void flip_stored_bit(const std::string& folder, DueKey place, std::size_t bit) {
  RawDb db(folder);
  std::string record = db.get("due", due_key(place));
  char& byte = record[bit / 8 % record.size()];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1u << (bit % 8)));
  db.put("due", due_key(place), record);
}

void drop_stored_record(const std::string& folder, DueKey place) {
  RawDb(folder).remove("due", due_key(place));
}

void set_stored_format(const std::string& folder, std::uint64_t version) {
  RawDb(folder).put("meta", std::string(kFormatKey), meta_value(kFormatKey, number_bytes(version)));
}

void spoil_stored_meta(const std::string& folder, const std::string& key) {
  RawDb(folder).put("meta", key, "spoilt");
}

void remove_stored_meta(const std::string& folder, const std::string& key) {
  RawDb(folder).remove("meta", key);
}

void add_unknown_family(const std::string& folder) { RawDb(folder).add_family("histories"); }

}  // namespace detent
