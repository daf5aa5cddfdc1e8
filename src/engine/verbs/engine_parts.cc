#include "engine/verbs/engine_parts.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"

namespace detent {
namespace {

/// The most tasks that may be leased at a time, if memory holds `max_loaded` tasks.
constexpr std::size_t most_leased(std::size_t max_loaded) noexcept {
  return std::max<std::size_t>(1, max_loaded * kLeasedParts / kMemoryParts);
}
/// A queue is a crowd if it has at least this number of tasks in memory. A wheel moves so many
/// timers in less than 0.1 ms. If the memory is small, the number is an eighth of its tasks.
constexpr std::size_t crowd_of(std::size_t max_loaded) noexcept {
  return std::clamp<std::size_t>(max_loaded / kMemoryParts, 1, 8'192);
}

}  // namespace

EngineParts::EngineParts(Store& its_store, Clock& its_clock, EngineOptions its_options)
    : store(its_store),
      clock(its_clock),
      options(std::move(its_options)),
      time(clock),
      queues(store.last_queue_number()),
      news(time, options.changes, options.counted),
      lateness(clock, time),
      writer(store, clock, options.sync_interval),
      records(store, queues, news, writer, store.last_id().on_shard(options.shard)),
      tasks({.clock = clock,
             .time = time,
             .queues = queues,
             .turns = turns,
             .news = news,
             .lateness = lateness,
             .records = records},
            most_leased(options.max_loaded), crowd_of(options.max_loaded)),
      window({.clock = clock,
              .time = time,
              .store = store,
              .writer = writer,
              .queues = queues,
              .turns = turns,
              .records = records,
              .tasks = tasks},
             options.window, options.max_loaded),
      hand_out({.time = time,
                .writer = writer,
                .queues = queues,
                .turns = turns,
                .news = news,
                .lateness = lateness,
                .records = records,
                .tasks = tasks,
                .window = window,
                .answers = answers},
               options.shard),
      transitions({.time = time,
                   .queues = queues,
                   .news = news,
                   .records = records,
                   .tasks = tasks,
                   .window = window},
                  options.seed) {
  DETENT_CHECK(options.max_loaded > 0);
  DETENT_CHECK(options.shard < std::uint64_t{1} << TaskId::kShardBits);
}

Result<void> EngineParts::expect_here(const std::string& queue, std::uint32_t partitions,
                                      std::string_view key) const {
  if (!options.is_here || options.is_here(queue, partitions, key)) return ok();
  return Error{
      ErrorCode::unavailable,
      "queue " + queue +
          " has other partitions than this node expects, because the partitions have just "
          "changed, or a change stopped half-way: try again; if the error stays, repeat the PATCH "
          "that created the queue",
      ""};
}

std::uint32_t EngineParts::partitions_of(const std::string& name) const {
  const auto known = queues.known(name);
  return known ? (*known)->record.settings.partitions : 1;
}

}  // namespace detent
