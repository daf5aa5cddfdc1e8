#include "gateway/whole_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/fan_out.h"
#include "net/message/http_query.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/stats_codec.h"
#include "task/largest_queues.h"
#include "task/limits.h"
#include "task/queue_page.h"

namespace detent::gateway {
namespace {

/// An object of a list, with its sort key.
struct Named {
  std::string name;
  std::string_view text;
};

/// The objects in the member `list` of all answers, by their member `name`; they point into those.
Result<std::vector<Named>> merge_by_name(const Answers& answers, std::string_view list,
                                         std::string_view name) {
  std::vector<Named> all;
  for (const net::HttpResponse& answer : answers) {
    json::JsonDocument document;
    ASSIGN_OR_RETURN(const auto* const objects, json::take_list(document, answer.body, list));
    for (const json::JsonValue& object : *objects) {
      json::JsonField field{name};
      TRY(json::take_fields(object, std::array{&field}, json::UnknownFields::skip));
      ASSIGN_OR_RETURN(std::string value, json::read_string(field));
      all.push_back({std::move(value), object.text});
    }
  }
  std::ranges::stable_sort(all, {}, &Named::name);
  return all;
}

void write_list(json::JsonWriter& writer, std::string_view name, const std::vector<Named>& all) {
  writer.begin_object().name(name).begin_array();
  for (const Named& one : all) writer.raw(one.text);
  writer.end_array();
}

void add(TaskCounters& sum, const TaskCounters& more) {
  sum.scheduled += more.scheduled;
  sum.fired += more.fired;
  sum.leased += more.leased;
  sum.completed += more.completed;
  sum.failed += more.failed;
  sum.cancelled += more.cancelled;
  sum.dead += more.dead;
  sum.leases_expired += more.leases_expired;
  sum.conflicts += more.conflicts;
  sum.quarantined += more.quarantined;
}

/// Adds the numbers position by position; a missing number counts as 0.
void add(std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& more) {
  sum.resize(std::max(sum.size(), more.size()));
  std::ranges::transform(more, sum, sum.begin(), std::plus{});
}

void add(json::ServerStats& sum, json::ServerStats more) {
  sum.uptime = std::max(sum.uptime, more.uptime);
  sum.loaded += more.loaded;
  sum.waiting_workers += more.waiting_workers;
  sum.schedules += more.schedules;
  if (more.away) sum.away = sum.away.value_or(0) + *more.away;
  add(sum.counters, more.counters);
  add(sum.lateness, more.lateness);
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    sum.late.tasks[i] += more.late.tasks[i];
    sum.late.time[i] += more.late.time[i];
  }
  add_partition(sum.all, more.all);
  sum.queue_count += more.queue_count;
  std::ranges::move(more.queues, std::back_inserter(sum.queues));
}

/// The partitions of a queue, as the queue.
Result<std::string> join_views(std::span<const Named> partitions) {
  ASSIGN_OR_RETURN(QueueView sum, json::parse_queue(partitions.front().text));
  for (const Named& partition : partitions.subspan(1)) {
    ASSIGN_OR_RETURN(const QueueView more, json::parse_queue(partition.text));
    add_partition(sum, more);
  }
  return json::render_queue(sum);
}

/// Makes one of those that have the same name, which are partitions of a queue; says how many fewer
/// there are then.
std::size_t join_partitions(std::vector<QueueStats>& queues) {
  std::ranges::stable_sort(queues, {}, &QueueStats::queue);
  std::vector<QueueStats> joined;
  for (QueueStats& queue : queues) {
    if (!joined.empty() && joined.back().queue == queue.queue) {
      add_partition(joined.back(), queue);
    } else {
      joined.push_back(std::move(queue));
    }
  }
  const std::size_t fewer = queues.size() - joined.size();
  queues = std::move(joined);
  return fewer;
}

Result<Step> add_stats(const Answers& answers, QueueOrder order, std::uint64_t most_queues) {
  ASSIGN_OR_RETURN(json::ServerStats sum, json::parse_stats(answers.front().body));
  for (std::size_t i = 1; i < answers.size(); ++i) {
    ASSIGN_OR_RETURN(json::ServerStats more, json::parse_stats(answers[i].body));
    add(sum, std::move(more));
  }
  sum.queue_count -= join_partitions(sum.queues);
  keep_first(sum.queues, order, most_queues);
  return Step(joined(answers, json::render_stats(sum)));
}

enum class Told : bool { all_queues, pages };

/// Makes a page of the queues in the answers. If the answers are pages, they are by name: each has
/// the first queues of its shard, so the first queues of all shards are complete.
Result<Step> page_of_queues(const Answers& answers, const QueuePageRequest& page, Told told) {
  std::map<std::string, QueueView> views;
  bool is_cut = false;
  for (const net::HttpResponse& answer : answers) {
    json::QueueListAnswer part;
    if (told == Told::pages) {
      ASSIGN_OR_RETURN(part, json::parse_queue_page(answer.body));
      is_cut = is_cut || !part.cursor.empty();
    } else {
      ASSIGN_OR_RETURN(part.queues, json::parse_queues(answer.body));
    }
    for (const QueueView& view : part.queues) {
      const auto [known, is_new] = views.try_emplace(view.stats.queue, view);
      if (!is_new) add_partition(known->second, view);
    }
  }
  std::vector<QueueStats> kept;
  for (const auto& [name, view] : views) {
    if (!page.state || is_in_state(view.stats, view.settings.paused, *page.state)) {
      kept.push_back(view.stats);
    }
  }
  std::string cursor = keep_page(kept, page);
  if (cursor.empty() && is_cut && !kept.empty()) cursor = cursor_after(kept.back(), page);
  std::vector<QueueView> shown;
  shown.reserve(kept.size());
  for (const QueueStats& stats : kept) shown.push_back(std::move(views.at(stats.queue)));
  return Step(joined(answers, json::render_queues(shown, cursor)));
}

enum class Clocks : bool { may_differ, must_agree };

/// `parts` are the questions.
Result<Step> add_forecasts(const std::vector<Part>& parts, Answers answers, Clocks clocks) {
  std::vector<Forecast> forecasts;
  Forecast sum;
  for (const net::HttpResponse& answer : answers) {
    ASSIGN_OR_RETURN(Forecast forecast, json::parse_forecast(answer.body));
    sum.from = std::max(sum.from, forecast.from);
    forecasts.push_back(std::move(forecast));
  }
  std::vector<Part> early;
  std::vector<std::size_t> asked_again;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    if (forecasts[i].from == sum.from) continue;
    early.push_back(parts[i]);
    asked_again.push_back(i);
  }
  if (clocks == Clocks::must_agree && !early.empty()) {
    return Step(to_each(std::move(early), [=](Answers again) mutable -> Result<Step> {
      for (std::size_t i = 0; i < again.size(); ++i) answers[asked_again[i]] = std::move(again[i]);
      return add_forecasts(parts, std::move(answers), Clocks::may_differ);
    }));
  }
  sum.bin = forecasts.front().bin;
  for (const Forecast& forecast : forecasts) {
    add(sum.counts, forecast.counts);
    sum.overdue += forecast.overdue;
    sum.later += forecast.later;
    sum.coarse += forecast.coarse;
    if (forecast.counted_to) {
      sum.counted_to =
          std::min(sum.counted_to.value_or(*forecast.counted_to), *forecast.counted_to);
    }
  }
  return Step(joined(answers, json::render_forecast(sum)));
}

/// A partition that does not exist yet has no tasks.
Step forecast_of_queue(const std::vector<Part>& parts, Answers& answers) {
  std::vector<Part> asked;
  Answers told;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].status == 404) continue;
    if (!is_success(answers[i])) return std::move(answers[i]);
    asked.push_back(parts[i]);
    told.push_back(std::move(answers[i]));
  }
  if (told.empty()) return std::move(answers.front());
  Result<Step> sum = json::as_answer(add_forecasts(asked, std::move(told), Clocks::must_agree));
  return sum ? *std::move(sum) : Step(problem(sum.error()));
}

Result<Step> add_wheels(const Answers& answers) {
  WheelView sum;
  std::map<std::pair<unsigned, unsigned>, WheelView::Slot> slots;  // by level and index
  for (const net::HttpResponse& answer : answers) {
    ASSIGN_OR_RETURN(const WheelView wheel, json::parse_wheel(answer.body));
    sum.now = std::max(sum.now, wheel.now);
    sum.tick = wheel.tick;
    sum.slots_per_level = wheel.slots_per_level;
    sum.level_count = std::max(sum.level_count, wheel.level_count);
    sum.timers += wheel.timers;
    for (const WheelView::Slot& slot : wheel.slots) {
      const auto [place, is_new] = slots.try_emplace({slot.level, slot.index}, slot);
      if (!is_new) place->second.count += slot.count;
    }
  }
  for (const auto& [place, slot] : slots) sum.slots.push_back(slot);
  std::ranges::stable_sort(
      sum.slots, {}, [](const WheelView::Slot& slot) { return std::pair(slot.level, slot.from); });
  return Step(joined(answers, json::render_wheel(sum)));
}

}  // namespace

Plan plan_queues(net::HttpRequest request, ShardNumber shards) {
  net::QueryParameter sort{"sort"};
  net::QueryParameter state{"state"};
  net::QueryParameter cursor{"cursor"};
  net::QueryParameter limit{"limit"};
  net::QueryParameter name{"name"};
  net::QueryParameter by{"by"};
  const std::array<net::QueryParameter*, 6> parameters{&sort, &state, &cursor, &limit, &name, &by};
  const Result<void> taken = net::take_query(request.target, parameters);
  if (!taken) return to_shard(std::move(request), 0);  // which refuses it
  if (sort.value || state.value || cursor.value) {
    const auto most = net::read_count(limit, kMaxPage, kDefaultPage);
    auto page = QueuePageRequest::read(sort.value, state.value, cursor.value, most.value_or(0));
    if (!most || !page || by.value) return to_shard(std::move(request), 0);  // which refuses it
    // The counts of a queue are sums over its partitions. A page can be sorted by counts, or
    // filtered by state, only with the sums of all queues.
    const bool is_by_name = page->sort == QueueSort::name && !page->state;
    if (!is_by_name) {
      request.target = target_without(request.target, {"sort", "state", "cursor", "limit"});
      request.target.pop_back();  // the '?' or '&' for further parameters
    }
    const Told told = is_by_name ? Told::pages : Told::all_queues;
    return to_all(request, shards, [page = *std::move(page), told](const Answers& answers) {
      return page_of_queues(answers, page, told);
    });
  }
  return to_all(request, shards, [](const Answers& answers) -> Result<Step> {
    ASSIGN_OR_RETURN(const std::vector<Named> queues, merge_by_name(answers, "queues", "queue"));
    std::string body;
    json::JsonWriter writer(body);
    writer.begin_object().name("queues").begin_array();
    for (auto it = queues.begin(); it != queues.end();) {
      const auto end = std::ranges::find_if(
          it, queues.end(), [it](const Named& other) { return other.name != it->name; });
      if (end - it == 1) {
        writer.raw(it->text);
      } else {
        ASSIGN_OR_RETURN(const std::string whole, join_views({it, end}));
        writer.raw(whole);
      }
      it = end;
    }
    writer.end_array().end_object();
    return Step(joined(answers, std::move(body)));
  });
}

Plan plan_schedules(net::HttpRequest request, ShardNumber shards) {
  net::QueryParameter limit{"limit"};
  net::QueryParameter cursor{"cursor"};
  const std::array<net::QueryParameter*, 2> parameters{&limit, &cursor};
  const Result<void> taken = net::take_query(request.target, parameters);
  const Result<std::uint64_t> most = net::read_count(limit, kMaxPage, kDefaultPage);
  if (!taken || !most) return to_shard(std::move(request), 0);  // which refuses it
  return to_all(request, shards, [most = *most](const Answers& answers) -> Result<Step> {
    ASSIGN_OR_RETURN(std::vector<Named> schedules, merge_by_name(answers, "schedules", "name"));
    if (schedules.size() > most) schedules.resize(most);
    const bool is_full = schedules.size() == most;
    std::string body;
    json::JsonWriter writer(body);
    write_list(writer, "schedules", schedules);
    writer.name("cursor").string_or_null(is_full ? schedules.back().name : "");
    writer.end_object();
    return Step(joined(answers, std::move(body)));
  });
}

Plan plan_stats(net::HttpRequest request, ShardNumber shards) {
  net::QueryParameter queues{"queues"};
  net::QueryParameter by{"by"};
  const std::array<net::QueryParameter*, 2> parameters{&queues, &by};
  const Result<void> taken = net::take_query(request.target, parameters);
  if (!taken) return to_shard(std::move(request), 0);  // which refuses it
  const QueueOrder order = by.value == "age" ? QueueOrder::by_age : QueueOrder::by_tasks;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (queues.value) {
    const std::string_view text = *queues.value;
    std::from_chars(text.data(), text.data() + text.size(), most);
  }
  return to_all(request, shards, [order, most](const Answers& answers) -> Result<Step> {
    return add_stats(answers, order, most);  // all shards have refused an invalid number
  });
}

Plan plan_forecast(net::HttpRequest request, const ShardMap& map) {
  net::QueryParameter queue{"queue"};
  net::QueryParameter bins{"bins"};
  net::QueryParameter span{"span"};
  const std::array<net::QueryParameter*, 3> parameters{&queue, &bins, &span};
  const Result<void> taken = net::take_query(request.target, parameters);
  if (!taken) return to_shard(std::move(request), 0);  // which refuses it
  std::vector<Part> parts;
  if (queue.value) {
    for (const ShardNumber shard : map.places_of(*queue.value)) parts.push_back({shard, request});
    return {.parts = parts,
            .join = [parts](Answers answers) { return forecast_of_queue(parts, answers); }};
  }
  for (ShardNumber shard = 0; shard < map.shards; ++shard) parts.push_back({shard, request});
  return to_each(parts, [parts](Answers answers) -> Result<Step> {
    return add_forecasts(parts, std::move(answers), Clocks::must_agree);
  });
}

Plan plan_wheel(net::HttpRequest request, ShardNumber shards) {
  return to_all(request, shards,
                [](const Answers& answers) -> Result<Step> { return add_wheels(answers); });
}

}  // namespace detent::gateway
