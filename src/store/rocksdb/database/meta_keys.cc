#include "store/rocksdb/database/meta_keys.h"

#include "base/bytes.h"
#include "store/schedule_format.h"

namespace detent {

std::string schedule_key(std::string_view name) {
  return std::string(kSchedulePrefix).append(name);
}

Result<ScheduleRecord> parse_schedule(std::string_view key, std::string_view value) {
  return decode_schedule(key.substr(kSchedulePrefix.size()), value);
}

std::string counts_key(std::uint64_t number) {
  std::string key(kCountsPrefix);
  ByteWriter(key).key_u64(number);
  return key;
}

}  // namespace detent
