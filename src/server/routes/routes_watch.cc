// The routes for watching: current figures, past figures, and live events.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "external/offload_thread.h"
#include "protocol/json/stats_codec.h"
#include "protocol/json/stats_point.h"
#include "server/http/query.h"
#include "server/operate/disk_watch.h"
#include "server/operate/version.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"
#include "server/watch/event_hub.h"
#include "task/largest_queues.h"

namespace detent::server {
namespace {

using std::chrono::milliseconds;

/// More than anybody reads; /v1/queues has all.
constexpr std::uint64_t kMaxStatsQueues = 1'000'000;

Error invalid(std::string message, std::string field) {
  return {ErrorCode::invalid_argument, std::move(message), std::move(field)};
}

/// Reads the types of events of a stream: "stats,task".
Result<void> take_types(std::string_view text, EventFilter& filter) {
  filter.stats = false;
  filter.tasks = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view type = text.substr(0, end);
    if (type == "stats") {
      filter.stats = true;
    } else if (type == "task") {
      filter.tasks = true;
    } else {
      return invalid("types must be stats, task, or both with a comma between them", "types");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!filter.stats && !filter.tasks)
    return invalid("types must name at least one event type", "types");
  return ok();
}

Result<EventFilter> read_filter(const std::string& target) {
  QueryParameter queue{"queue"};
  QueryParameter types{"types"};
  const std::array<QueryParameter*, 2> parameters{&queue, &types};
  TRY(take_query(target, parameters));
  EventFilter filter;
  if (queue.value) {
    if (!is_queue_name(*queue.value)) return invalid("queue must be the name of a queue", "queue");
    filter.queue = *queue.value;
  }
  if (types.value) TRY(take_types(*types.value, filter));
  return filter;
}

Result<std::optional<milliseconds>> read_optional(const QueryParameter& parameter) {
  if (!parameter.value) return std::optional<milliseconds>();
  ASSIGN_OR_RETURN(const milliseconds duration, read_duration(parameter, milliseconds{0}));
  return std::optional(duration);
}

/// Which past events a caller of /v1/stats/history wants.
struct HistoryQuery {
  HistoryRange range;
  std::optional<std::string> queue;  // no value: the sums over all queues
};

Result<HistoryQuery> read_history_query(const std::string& target) {
  QueryParameter span{"span"};
  QueryParameter step{"step"};
  QueryParameter queue{"queue"};
  const std::array<QueryParameter*, 3> parameters{&span, &step, &queue};
  TRY(take_query(target, parameters));
  ASSIGN_OR_RETURN(const std::optional<milliseconds> given_span, read_optional(span));
  ASSIGN_OR_RETURN(const std::optional<milliseconds> given_step, read_optional(step));
  HistoryQuery query{.range = {}, .queue = queue.value};
  ASSIGN_OR_RETURN(query.range, HistoryRange::read(given_span, given_step));
  return query;
}

/// Which queues' figures a caller of /v1/stats wants.
struct StatsQuery {
  std::uint64_t most = 0;
  QueueOrder order = QueueOrder::by_tasks;
};

Result<StatsQuery> read_stats_query(const std::string& target) {
  QueryParameter queues{"queues"};
  QueryParameter by{"by"};
  const std::array<QueryParameter*, 2> parameters{&queues, &by};
  TRY(take_query(target, parameters));
  StatsQuery query;
  ASSIGN_OR_RETURN(query.most, read_count(queues, kMaxStatsQueues, kMaxStatsQueues, Zero::allowed));
  ASSIGN_OR_RETURN(query.order, read_queue_order(by));
  return query;
}

/// Removes from the figures all queues that the caller may not see or did not ask for.
void keep_visible(const Caller& caller, const StatsQuery& query, EngineStats& stats) {
  std::erase_if(stats.queues, [&caller](const QueueStats& queue) {
    return !caller.may(Need::look, queue.queue);
  });
  stats.all = {};
  for (const QueueStats& queue : stats.queues) {
    stats.all.scheduled += queue.scheduled;
    stats.all.ready += queue.ready;
    stats.all.leased += queue.leased;
    stats.all.dead += queue.dead;
  }
  stats.queue_count = stats.queues.size();
  keep_first(stats.queues, query.order, query.most);
}

}  // namespace

void Routes::stats(const Call& call) {
  const Result<StatsQuery> query = read_stats_query(call.request.target);
  if (!query) return call.reply.send_error(query.error());
  // For a caller with limited permissions, the visible queues must be selected from all queues.
  const bool sees_all = call.caller.may(Need::look_all, "");
  const auto read = [query = *query, sees_all](Engine& engine) -> Result<EngineStats> {
    if (!sees_all) return engine.stats();
    if (query.order == QueueOrder::by_tasks) return engine.stats(query.most);
    EngineStats stats = engine.stats(0);
    stats.queues = engine.oldest_queues(query.most);
    return stats;
  };
  run(call.reply, read,
      [this, caller = call.caller, sees_all, query = *query](const HttpReply& reply,
                                                             EngineStats& stats) {
        if (!sees_all) keep_visible(caller, query, stats);
        reply.send_json(
            200, json::render_stats(server_stats(
                     stats, sees_all ? json::StatsScope::server : json::StatsScope::some_queues)));
      });
}

json::ServerStats Routes::server_stats(EngineStats& stats, json::StatsScope scope) const {
  std::optional<OffloadStats> external;
  if (offload_ != nullptr) external = offload_->stats();
  std::optional<DiskFigures> disk;
  if (options_.disk != nullptr) disk = options_.disk->figures();
  std::vector<std::uint64_t>& late = stats.lateness.counts;
  while (!late.empty() && late.back() == 0) late.pop_back();
  return {.version = kVersion,
          .uptime = std::chrono::floor<milliseconds>(http_metrics_.now() - start_),
          .scope = scope,
          .loaded = stats.loaded,
          .waiting_workers = stats.waiting_workers,
          .schedules = stats.schedules,
          .away = external ? std::optional(external->away) : std::nullopt,
          .is_away_lost = external && external->moves.lost.has_value(),
          .data_free_bytes = disk ? std::optional(disk->free_bytes) : std::nullopt,
          .data_min_free_bytes = disk ? std::optional(disk->min_free_bytes) : std::nullopt,
          .refuses_tasks = stats.refuses_tasks,
          .counters = stats.counters,
          .lateness = std::move(late),
          .late = stats.late,
          .all = std::move(stats.all),
          .queue_count = stats.queue_count,
          .queues = std::move(stats.queues)};
}

void Routes::stats_history(const Call& call) {
  const Result<HistoryQuery> query = read_history_query(call.request.target);
  if (!query) return call.reply.send_error(query.error());
  if (const auto allowed = may_look(call.caller, query->queue); !allowed) {
    return call.reply.send_error(allowed.error());
  }
  const HistoryRange range = query->range;
  if (!query->queue) {
    return call.reply.send_json(200, json::render_history(range.step, events_.history(range)));
  }
  run(
      call.reply,
      [queue = *query->queue, range](Engine& engine) { return engine.queue_history(queue, range); },
      [](const HttpReply& reply, const QueueHistory& history) {
        reply.send_json(200, json::render_queue_history(history));
      },
      for_queue(*query->queue));
}

void Routes::events(const Call& call) {
  Result<EventFilter> filter = read_filter(call.request.target);
  if (!filter) return call.reply.send_error(filter.error());
  Watcher watcher{.name = "address " + call.request.peer};
  if (options_.access != nullptr) {
    watcher.name = "token " + std::string(call.caller.name());
    watcher.may_watch = [access = options_.access,
                         token = std::string(call.request.header("authorization"))] {
      const std::optional<Caller> caller = access->identify(token);
      return caller && caller->may_somewhere(Need::look_all);
    };
  }
  const Result<void> opened = events_.open(call.reply, std::move(watcher), *std::move(filter),
                                           std::string(call.request.header("last-event-id")));
  if (!opened) call.reply.send_error(opened.error());
}

}  // namespace detent::server
