#include "store/rocksdb/changes.h"

#include <string>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/slices.h"
#include "store/schedule_format.h"

namespace detent {

void Changes::put_accepted(const Place& place, std::string_view record) {
  DETENT_CHECK(place.id.value != 0 && !record.empty());
  value_.clear();
  append_accepted(value_, place, record);
  must(batch_.Put(db_.accepted(), id_key(place.id), value_));
}

void Changes::erase_accepted(TaskId id) { must(batch_.Delete(db_.accepted(), id_key(id))); }

void Changes::erase_accepted(TaskId after, TaskId upto) {
  DETENT_CHECK(after < upto);
  // The range must not begin with the key of an entry (insert_hints.h). So it begins with the key
  // of `after` and a zero byte, which is the next possible key and belongs to no task.
  remove_range(db_.accepted(), id_key(after) + '\0', id_key(TaskId{upto.value + 1}));
}

void Changes::put_settled(const Place& place, std::string_view record) {
  put_record(place, record);
  put_id(place);
}

void Changes::put_record(const Place& place, std::string_view record) {
  DETENT_CHECK(place.id.value != 0);
  // The key of a place in the due order has no queue and no priority.
  DETENT_CHECK(place.lane != Lane::due || (place.queue == 0 && place.priority == 0));
  must(batch_.Put(db_.family_of(place.lane), place_key(place), slice(record)));
}

void Changes::erase_record(const Place& place) {
  must(batch_.Delete(db_.family_of(place.lane), place_key(place)));
}

void Changes::put_id(const Place& place) {
  DETENT_CHECK(place > begin_of(place.lane, place.queue));
  must(batch_.Put(db_.ids(), id_key(place.id), id_value(place)));
}

void Changes::erase_id(TaskId id) { must(batch_.Delete(db_.ids(), id_key(id))); }

void Changes::set_meta(std::string_view key, std::string bytes) {
  must(batch_.Put(db_.meta(), slice(key), meta_value(key, std::move(bytes))));
}

void Changes::remove_meta_range(std::string_view begin, std::string_view end) {
  remove_range(db_.meta(), begin, end);
}

void Changes::remove_range(rocksdb::ColumnFamilyHandle* family, std::string_view begin,
                           std::string_view end) {
  DETENT_CHECK(begin < end);
  DETENT_CHECK(db_.may_begin_range(family, begin));
  must(batch_.DeleteRange(family, slice(begin), slice(end)));
}

void Changes::set_queue(const QueueRecord& record) {
  const std::string key = queue_key(record.queue);
  must(batch_.Put(db_.meta(), key, queue_value(key, record)));
}

void Changes::remove_queue(std::string_view queue) {
  must(batch_.Delete(db_.meta(), queue_key(queue)));
}

void Changes::set_schedule(const ScheduleRecord& record) {
  must(batch_.Put(db_.meta(), schedule_key(record.schedule.name), encode_schedule(record)));
}

void Changes::remove_schedule(std::string_view name) {
  must(batch_.Delete(db_.meta(), schedule_key(name)));
}

void Changes::set_key(const KeyRecord& record) {
  const std::string key = key_key(record.queue, record.key);
  must(batch_.Put(db_.keys(), key, key_value(key, record)));
  if (record.expires_at) {
    must(batch_.Put(db_.key_expiry(), expiry_key(*record.expires_at, key), rocksdb::Slice()));
  }
}

}  // namespace detent
