// Writes values about queues as JSON bodies: answers of the server, and requests of clients.
// queue_parser.h reads these bodies back into equal values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "protocol/json/json_writer.h"
#include "protocol/json/queue_patch.h"
#include "task/task_stats.h"

namespace detent::json {

/// The answer of `GET /v1/queues/{queue}`: counts, bytes and all settings. A setting without a
/// value is null. The member `settings` is a valid body for `PATCH /v1/queues/{queue}`.
std::string render_queue(const QueueView& view);
/// The answer of `GET /v1/queues`.
std::string render_queues(std::span<const QueueView> views);
/// The answer of `DELETE /v1/queues/{queue}`.
std::string render_removed_queue(std::string_view name);
/// The answer of `POST /v1/queues/{queue}/purge` and `/redrive`: the number of affected tasks.
std::string render_count(std::uint64_t count);
/// Writes an object with the number of tasks in each state, summed over all queues.
void write_task_counts(JsonWriter& writer, const QueueStats& all);
/// Writes the members with one queue's counts. The caller has begun the object.
void write_queue_stats(JsonWriter& writer, const QueueStats& stats);

/// The body of `PATCH /v1/queues/{queue}`.
std::string render_queue_patch(const QueuePatch& patch);

}  // namespace detent::json
