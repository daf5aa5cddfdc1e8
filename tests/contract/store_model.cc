#include "tests/contract/store_model.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "tests/contract/store_media.h"

namespace detent {

using std::chrono::milliseconds;

void StoreModel::write(const WriteBatch& batch) {
  for (const WriteBatch::Put& put : batch.puts) {
    tasks[put.to.place.id] = put.to;
    damaged.erase(put.to.place.id);
    last_id = std::max(last_id, put.to.place.id);
  }
  for (const Place place : batch.erases) {
    tasks.erase(place.id);
    damaged.erase(place.id);
  }
  for (const std::string& queue : batch.removed_queues) queues.erase(queue);
  for (const QueueRecord& record : batch.queues) {
    queues[record.queue] = record;
    last_queue_number = std::max(last_queue_number, record.number);
  }
  for (const std::string& name : batch.removed_schedules) schedules.erase(name);
  for (const ScheduleRecord& record : batch.schedules) schedules[record.schedule.name] = record;
  for (const KeyRecord& record : batch.keys) keys[{record.queue, record.key}] = record;
  for (const DueCount& change : batch.due_counts) due_counts[change.bin] += change.count;
  std::erase_if(due_counts, [](const auto& sum) { return sum.second == 0; });
  last_id = std::max(last_id, batch.last_id);
}

void StoreModel::quarantine(TaskId id) {
  quarantined += tasks.erase(id);
  damaged.erase(id);
}

std::size_t StoreModel::trim_keys(WallTime now, std::size_t limit) {
  std::vector<std::pair<WallTime, KeyName>> expired;
  for (const auto& [name, record] : keys) {
    if (record.expires_at && *record.expires_at <= now) {
      expired.emplace_back(*record.expires_at, name);
    }
  }
  std::sort(expired.begin(), expired.end());
  if (expired.size() > limit) expired.resize(limit);
  for (const auto& [expiry, name] : expired) keys.erase(name);
  return expired.size();
}

TaskPage StoreModel::read(Place after, Place until, std::size_t limit) const {
  std::vector<Place> places;
  for (const auto& [id, stored] : tasks) {
    if (after < stored.place && stored.place <= until) places.push_back(stored.place);
  }
  std::sort(places.begin(), places.end());
  return page_of(places, limit);
}

TaskPage StoreModel::read_by_id(TaskId after, std::size_t limit) const {
  std::vector<Place> places;
  for (const auto& [id, stored] : tasks) {
    if (after < id) places.push_back(stored.place);
  }
  return page_of(places, limit);
}

TaskPage StoreModel::page_of(const std::vector<Place>& places, std::size_t limit) const {
  TaskPage page;
  for (const Place place : places) {
    if (page.read_to) break;
    if (damaged.contains(place.id)) {
      page.damaged.push_back(place);
    } else {
      page.tasks.push_back(tasks.at(place.id));
    }
    if (page.tasks.size() + page.damaged.size() == limit) page.read_to = place;
  }
  return page;
}

WriteBatch RandomBatches::next(Tide tide) {
  touched_.clear();
  WriteBatch batch;
  const std::uint32_t come = tide == Tide::rise ? 5 : 2;
  const std::uint32_t go = tide == Tide::rise ? 2 : 5;
  for (std::uint32_t i = rng_.below(30); i > 0; --i) {
    const std::uint32_t kind = rng_.below(10);
    if (kind < come) {
      add_task(batch);
    } else if (kind < come + go) {
      remove_task(batch);
    } else {
      move_task(batch);
    }
  }
  for (std::uint32_t i = rng_.below(4); i > 0; --i) set_key(batch);
  if (one_in(3)) change_queue(batch);
  if (one_in(3)) change_schedule(batch);
  for (std::uint32_t i = rng_.below(4); i > 0; --i) change_due_counts(batch);
  if (one_in(10)) batch.last_id = id_of(highest_ += rng_.below(3));
  return batch;
}

WallTime RandomBatches::random_instant() {
  if (one_in(10)) return at_ms(253'402'300'799'999 - rng_.below(2));  // the end of the year 9999
  if (one_in(5)) return at_ms(1'700'000'000'000 + rng_.below(1'000));
  return at_ms(rng_.below(50));
}

std::uint32_t RandomBatches::random_queue() {
  constexpr std::uint32_t kQueues[] = {1, 2, 256, 70'000};
  return kQueues[rng_.below(4)];
}

Place RandomBatches::random_place(TaskId id) {
  constexpr std::uint32_t kPriorities[] = {0, 1, kDefaultPriority, ~std::uint32_t{0}};
  const Lane lane = one_in(2) ? Lane::due : kLanes[rng_.below(4)];
  Place place = begin_of(lane);
  place.at = random_instant();
  place.id = id;
  if (lane == Lane::ready || lane == Lane::dead) place.queue = random_queue();
  if (lane == Lane::ready) place.priority = kPriorities[rng_.below(4)];
  return place;
}

std::string RandomBatches::random_key() {
  constexpr const char* kKeys[] = {"k", "k1", "k10", "k/1", "\xC3\xA9", "K", "l", "m", "n", "o"};
  return kKeys[rng_.below(10)];
}

void RandomBatches::add_task(WriteBatch& batch) {
  TaskId id = id_of(highest_ + 1);
  if (one_in(8)) {
    id = id_of(1 + rng_.below(highest_ + 1));
    if (model_.tasks.contains(id)) return;
  } else if (one_in(10)) {
    id = id_of(highest_ + 1 + rng_.below(5));
  }
  if (!touched_.insert(id).second) return;
  highest_ = std::max(highest_, static_cast<std::uint32_t>(id.value >> TaskId::kShardBits));
  add(batch, random_place(id), std::to_string(rng_.next()));
}

const StoredTask* RandomBatches::random_task() {
  if (model_.tasks.empty()) return nullptr;
  auto found = model_.tasks.begin();
  const auto count = static_cast<std::uint32_t>(model_.tasks.size());
  if (one_in(3)) {  // one of the newest tasks
    found = std::prev(model_.tasks.end(), 1 + rng_.below(std::min(count, 20u)));
  } else if (one_in(3)) {  // one of the oldest tasks, so that some tasks move many times
    std::advance(found, rng_.below(std::min(count, 5u)));
  } else {
    std::advance(found, rng_.below(count));
  }
  return touched_.insert(found->first).second ? &found->second : nullptr;
}

void RandomBatches::move_task(WriteBatch& batch) {
  const StoredTask* const task = random_task();
  if (task == nullptr) return;
  const Place to = one_in(8) ? task->place : random_place(task->place.id);
  move(batch, task->place, to, std::to_string(rng_.next()));
}

void RandomBatches::remove_task(WriteBatch& batch) {
  const StoredTask* const task = random_task();
  if (task != nullptr) batch.erases.push_back(task->place);
}

void RandomBatches::set_key(WriteBatch& batch) {
  KeyRecord record{.queue = random_queue(),
                   .key = random_key(),
                   .id = random_id(),
                   .content = rng_.next(),
                   .expires_at = std::nullopt};
  for (const KeyRecord& other : batch.keys) {
    if (other.queue == record.queue && other.key == record.key) return;
  }
  const auto stored = model_.keys.find({record.queue, record.key});
  if (stored != model_.keys.end() && one_in(3)) {
    record.expires_at = stored->second.expires_at;  // another task with the same expiry
  } else if (one_in(2)) {
    // All expiries differ, so the order of trimming is unique.
    record.expires_at = at_ms(std::int64_t{rng_.below(1'000)} * 10'000 + ++expiries_);
  }
  batch.keys.push_back(std::move(record));
}

QueueSettings RandomBatches::random_settings() {
  QueueSettings settings;
  settings.paused = one_in(2);
  if (one_in(3)) settings.max_attempts = rng_.below(100);
  if (one_in(3)) settings.visibility_timeout = milliseconds{rng_.below(100'000)};
  if (one_in(3)) settings.backoff = {milliseconds{rng_.below(9)}, milliseconds{rng_.below(9'000)}};
  settings.retention = milliseconds{rng_.below(1'000'000)};
  settings.key_retention = milliseconds{rng_.below(1'000'000)};
  if (one_in(3)) settings.max_tasks = rng_.next();
  if (one_in(3)) settings.max_bytes = rng_.next();
  if (one_in(3)) settings.rate = rng_.below(100);
  if (one_in(3)) settings.concurrency = rng_.below(100);
  if (one_in(3)) settings.webhook = QueueWebhook{.url = "https://a", .keys = {"whsec_b"}};
  return settings;
}

void RandomBatches::change_queue(WriteBatch& batch) {
  constexpr const char* kNames[] = {"a", "a/b", "b", "mail", "z"};
  const std::string name = kNames[rng_.below(5)];
  const auto stored = model_.queues.find(name);
  if (stored != model_.queues.end() && one_in(3)) {
    batch.removed_queues.push_back(name);
    return;
  }
  QueueRecord record;
  record.queue = name;
  record.number =
      stored != model_.queues.end() ? stored->second.number : model_.last_queue_number + 1;
  record.waiting = rng_.next();
  record.dead = rng_.below(100);
  record.bytes = rng_.next();
  record.in_ready_lane = rng_.below(1'000'000);
  record.in_webhook_lane = rng_.below(3);
  record.settings = random_settings();
  batch.queues.push_back(std::move(record));
}

void RandomBatches::change_schedule(WriteBatch& batch) {
  constexpr const char* kNames[] = {"a", "a/b", "b", "nightly", "z"};
  ScheduleRecord record;
  record.schedule.name = kNames[rng_.below(5)];
  // A batch may remove a schedule that does not exist. A batch may remove a schedule and write it
  // again.
  if (one_in(3)) batch.removed_schedules.push_back(record.schedule.name);
  if (!batch.removed_schedules.empty() && one_in(2)) return;
  record.schedule.rule = IntervalRule{milliseconds{1'000 + rng_.below(100'000)}, random_instant()};
  record.schedule.queue = "mail";
  record.schedule.payload.data = std::string(rng_.below(1'000), 'p');
  record.progress.decided_to = random_instant();
  record.progress.made = rng_.next();
  record.progress.paused = one_in(2);
  batch.schedules.push_back(std::move(record));
}

void RandomBatches::change_due_counts(WriteBatch& batch) {
  const DueBin bin{.width = one_in(2) ? DueBin::Width::minute : DueBin::Width::day,
                   .number = 254 + std::int64_t{rng_.below(4)}};
  const auto sum = model_.due_counts.find(bin);
  const bool is_first = std::none_of(batch.due_counts.begin(), batch.due_counts.end(),
                                     [bin](const DueCount& count) { return count.bin == bin; });
  if (sum != model_.due_counts.end() && is_first && one_in(2)) {
    batch.due_counts.push_back({.bin = bin, .count = -sum->second});
  } else {
    batch.due_counts.push_back({.bin = bin, .count = 1 + std::int64_t{rng_.below(1'000)}});
  }
}

}  // namespace detent
