// Values about queues to bodies: answers of the server, and the requests of clients. What is
// written here queue_parser.h reads back, value for value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "protocol/json/json_writer.h"
#include "protocol/json/queue_patch.h"
#include "task/task_stats.h"

namespace detent::json {

/// `GET /v1/queues/{queue}`: counts, bytes and all settings, null where one has no value. These
/// settings are a body for `PATCH /v1/queues/{queue}`.
std::string render_queue(const QueueView& view);
/// `GET /v1/queues`.
std::string render_queues(std::span<const QueueView> views);
/// `DELETE /v1/queues/{queue}`.
std::string render_removed_queue(std::string_view name);
/// `POST /v1/queues/{queue}/purge` and `/redrive`: how many tasks it was.
std::string render_count(std::uint64_t count);
/// The members of a queue's counts, into an object that has been begun.
/// Tasks by state, as an object: of all queues together.
void write_task_counts(JsonWriter& writer, const QueueStats& all);
void write_queue_stats(JsonWriter& writer, const QueueStats& stats);

/// The body of `PATCH /v1/queues/{queue}`.
std::string render_queue_patch(const QueuePatch& patch);

}  // namespace detent::json
