#include "protocol/json/stats_parser.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json/json_fields.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

/// A count and where it goes.
struct Count {
  JsonField field;
  std::uint64_t* value = nullptr;
};

/// Reads the counts of an object and takes the `others` beside them.
Result<void> read_counts(std::string_view json, std::span<Count> counts,
                         std::span<JsonField* const> others) {
  std::vector<JsonField*> fields(others.begin(), others.end());
  for (Count& count : counts) fields.push_back(&count.field);
  TRY(take_fields(json, fields, UnknownFields::skip));
  for (Count& count : counts) {
    ASSIGN_OR_RETURN(*count.value,
                     read_integer(count.field, {.max = std::numeric_limits<std::uint64_t>::max()}));
  }
  return ok();
}

Result<TaskCounters> read_counters(std::string_view json) {
  TaskCounters counters;
  std::array<Count, 10> counts{{{{"scheduled"}, &counters.scheduled},
                                {{"fired"}, &counters.fired},
                                {{"leased"}, &counters.leased},
                                {{"completed"}, &counters.completed},
                                {{"failed"}, &counters.failed},
                                {{"cancelled"}, &counters.cancelled},
                                {{"dead"}, &counters.dead},
                                {{"leases_expired"}, &counters.leases_expired},
                                {{"conflicts"}, &counters.conflicts},
                                {{"quarantined"}, &counters.quarantined}}};
  TRY(read_counts(json, counts, {}));
  return counters;
}

Result<QueueStats> read_queue(std::string_view json) {
  QueueStats queue;
  JsonField name{"queue"};
  JsonField age{"oldest_ready_age_ms"};
  std::array<Count, 4> counts{{{{"scheduled"}, &queue.scheduled},
                               {{"ready"}, &queue.ready},
                               {{"leased"}, &queue.leased},
                               {{"dead"}, &queue.dead}}};
  const std::array<JsonField*, 2> others{&name, &age};
  TRY(read_counts(json, counts, others));
  ASSIGN_OR_RETURN(queue.queue, read_string(name));
  if (age.given() && !age.is(JsonKind::null)) {
    ASSIGN_OR_RETURN(const std::uint64_t age_ms, read_integer(age, {}));
    queue.oldest_ready_age = milliseconds{age_ms};
  }
  return queue;
}

Result<ServerStats> read_stats(std::string_view json) {
  ServerStats stats;
  JsonField version{"version"};
  JsonField uptime{"uptime_ms"};
  JsonField counters{"counters"};
  JsonField queues{"queues"};
  std::array<Count, 2> counts{
      {{{"loaded"}, &stats.loaded}, {{"waiting_workers"}, &stats.waiting_workers}}};
  const std::array<JsonField*, 4> others{&version, &uptime, &counters, &queues};
  TRY(read_counts(json, counts, others));
  ASSIGN_OR_RETURN(stats.version, read_string(version));
  ASSIGN_OR_RETURN(const std::uint64_t uptime_ms, read_integer(uptime, {}));
  stats.uptime = milliseconds{uptime_ms};
  if (!counters.given()) return missing_field(counters);
  ASSIGN_OR_RETURN(stats.counters, read_counters(counters.text));
  if (!queues.given()) return missing_field(queues);
  ASSIGN_OR_RETURN(const auto elements,
                   take_elements(queues.text, std::numeric_limits<std::size_t>::max()));
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(QueueStats queue, read_queue(element));
    stats.queues.push_back(std::move(queue));
  }
  return stats;
}

}  // namespace

Result<ServerStats> parse_stats(std::string_view body) {
  auto stats = read_stats(body);
  if (stats) return stats;
  Error error = with_context("read the server's answer", std::move(stats).error());
  error.code = ErrorCode::internal;
  return error;
}

}  // namespace detent::json
