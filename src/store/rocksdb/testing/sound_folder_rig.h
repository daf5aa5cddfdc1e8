// For tests: a data folder without damage. It has settled tasks with keys, in tables of many
// blocks. The tests then damage it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/rng.h"
#include "detent/check.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/store.h"
#include "task/due_bin.h"

namespace detent {

/// Queue "mail" has this many live tasks, as many dead tasks and as many ended tasks, with ids in
/// this order.
inline constexpr std::uint64_t kSoundTasks = 600;

inline Place sound_place(std::uint64_t n) {
  const Lane lane = n <= kSoundTasks ? Lane::due : n <= 2 * kSoundTasks ? Lane::dead : Lane::ended;
  return {.lane = lane,
          .queue = lane == Lane::dead ? 1U : 0U,
          .at = WallTime{std::chrono::minutes{20'000'000 + n}},
          .id = TaskId{n << TaskId::kShardBits}};
}

/// Adds the n-th task, counted from 1, to the batch and to the counts of `queue`.
inline void add_sound_task(WriteBatch& batch, QueueRecord& queue, std::uint64_t n) {
  const Place place = sound_place(n);
  Task task{.id = place.id,
            .queue = queue.queue,
            .due_at = place.at,
            .created_at = WallTime{std::chrono::minutes{20'000'000}},
            .key = "k" + std::to_string(n)};
  Rng rng(n);  // random payloads, because they cannot be compressed
  task.payload.kind = Payload::Kind::bytes;
  while (task.payload.data.size() < 100) task.payload.data.push_back(static_cast<char>(rng.next()));
  KeyRecord key{.queue = queue.number, .key = task.key, .id = task.id, .content = rng.next()};
  if (place.lane == Lane::due) {
    ++queue.waiting;
    batch.due_counts.push_back({due_bin_of(task.due_at, task.created_at), 1});
  } else if (place.lane == Lane::dead) {
    task.standing = Standing::dead;
    ++queue.dead;
  } else {
    task.standing = Standing::completed;
    key.expires_at = place.at;
  }
  if (place.lane != Lane::ended) queue.bytes += task.payload.data.size();
  batch.keys.push_back(std::move(key));
  batch.puts.push_back({.from = std::nullopt, .to = {place, std::move(task)}});
}

inline void write_sound_folder(const std::string& path) {
  WriteBatch batch;
  QueueRecord queue{.queue = "mail", .number = 1};
  for (std::uint64_t n = 1; n <= 3 * kSoundTasks; ++n) add_sound_task(batch, queue, n);
  batch.queues.push_back(std::move(queue));
  const auto store =
      RocksDbStore::open({.path = path, .settle_tasks = batch.puts.size(), .settle_inline = true});
  DETENT_CHECK(store && (*store)->write(batch, Durability::synced));
}

}  // namespace detent
