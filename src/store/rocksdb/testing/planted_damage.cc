#include "store/rocksdb/testing/planted_damage.h"

#include <rocksdb/db.h>
#include <rocksdb/table_properties.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"

namespace detent {

namespace {

/// The database, opened with RocksDB's defaults and all of its families.
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
    DETENT_CHECK(false);
    return nullptr;
  }
  std::optional<std::string> find(std::string_view family_name, const std::string& key) {
    std::string value;
    const rocksdb::Status status = db_->Get({}, family(family_name), key, &value);
    DETENT_CHECK(status.ok() || status.IsNotFound());
    return status.ok() ? std::optional(std::move(value)) : std::nullopt;
  }
  std::string get(std::string_view family_name, const std::string& key) {
    return find(family_name, key).value();
  }
  void put(std::string_view family_name, const std::string& key, const std::string& value) {
    DETENT_CHECK(db_->Put({}, family(family_name), key, value).ok());
  }
  void remove(std::string_view family_name, const std::string& key) {
    DETENT_CHECK(db_->Delete({}, family(family_name), key).ok());
  }
  rocksdb::TablePropertiesCollection tables(std::string_view family_name) {
    rocksdb::TablePropertiesCollection tables;
    DETENT_CHECK(db_->GetPropertiesOfAllTables(family(family_name), &tables).ok());
    return tables;
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

/// The family and key of a record. They depend on the settled mark.
struct Stored {
  std::string family;
  std::string key;
  std::size_t record_begin = 0;  // in the value
};

Stored find_record(RawDb& db, const Place& place) {
  const std::optional<std::string> mark = db.find("meta", std::string(kSettledToKey));
  const std::uint64_t settled_to =
      mark ? parse_number_bytes(parse_meta_value(kSettledToKey, *mark).value()).value() : 0;
  if (place.id.value <= settled_to) {
    return {place.lane == Lane::due ? "due" : "lanes", place_key(place)};
  }
  const std::string value = db.get("accepted", id_key(place.id));
  const AcceptedValue accepted = split_accepted(place.id, value);
  DETENT_CHECK(accepted.place == place);
  return {"accepted", id_key(place.id), value.size() - accepted.record.size()};
}

void flip(std::string& bytes, std::size_t at, std::size_t bit) {
  bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1u << bit));
}

}  // namespace

void flip_stored_bit(const std::string& folder, const Place& place, std::size_t bit) {
  RawDb db(folder);
  const Stored stored = find_record(db, place);
  std::string value = db.get(stored.family, stored.key);
  flip(value, stored.record_begin + bit / 8 % (value.size() - stored.record_begin), bit % 8);
  db.put(stored.family, stored.key, value);
}

void flip_stored_schedule_bit(const std::string& folder, const std::string& name, std::size_t bit) {
  RawDb db(folder);
  std::string value = db.get("meta", schedule_key(name));
  flip(value, bit / 8 % value.size(), bit % 8);
  db.put("meta", schedule_key(name), value);
}

void flip_stored_key_bit(const std::string& folder, const KeyName& key, std::size_t bit) {
  RawDb db(folder);
  const std::string name = key_key(key.queue, key.key);
  std::string value = db.get("keys", name);
  flip(value, bit / 8 % value.size(), bit % 8);
  db.put("keys", name, value);
}

void drop_stored_expiry(const std::string& folder, const KeyName& key, WallTime expires_at) {
  RawDb(folder).remove("key_expiry", expiry_key(expires_at, key_key(key.queue, key.key)));
}

void flip_accepted_place_bit(const std::string& folder, TaskId id, std::size_t bit) {
  RawDb db(folder);
  std::string value = db.get("accepted", id_key(id));
  const std::size_t place_bytes = value.size() - split_accepted(id, value).record.size();
  DETENT_CHECK(place_bytes > 0);
  flip(value, bit / 8 % place_bytes, bit % 8);
  db.put("accepted", id_key(id), value);
}

void spoil_table(const std::string& folder, const std::string& family) {
  std::string path;
  std::uint64_t size = 0;
  for (const auto& [name, properties] : RawDb(folder).tables(family)) {
    if (properties->data_size <= size) continue;
    path = name;
    size = properties->data_size;
  }
  DETENT_CHECK(size > 0);
  std::fstream table(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = static_cast<std::streamoff>(size / 3);
  table.seekg(at);
  std::string byte(1, static_cast<char>(table.get()));
  flip(byte, 0, 2);
  table.seekp(at);
  DETENT_CHECK(table << byte << std::flush);
}

void drop_stored_record(const std::string& folder, const Place& place) {
  RawDb db(folder);
  const Stored stored = find_record(db, place);
  DETENT_CHECK(stored.family != "accepted");
  db.remove(stored.family, stored.key);
}

std::uint64_t stored_format(const std::string& folder) {
  const std::string value = RawDb(folder).get("meta", std::string(kFormatKey));
  return parse_number_bytes(parse_meta_value(kFormatKey, value).value()).value();
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
