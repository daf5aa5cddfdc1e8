#include "gateway/copy_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gateway/fan_out.h"
#include "net/http_query.h"
#include "protocol/json/dump_parser.h"
#include "protocol/json/dump_renderer.h"
#include "protocol/json/problem.h"
#include "protocol/json/stats_parser.h"
#include "task/limits.h"

namespace detent::gateway {
namespace {

constexpr std::uint64_t kNumbers = std::uint64_t{1} << TaskId::kShardBits;  // of shards

/// The place before all tasks of a shard.
TaskId start_of(ShardNumber shard) { return TaskId{shard}; }
bool is_start(TaskId after) { return after.value < kNumbers; }

/// The target with another `after`; none: from the start.
std::string with_after(std::string_view target, TaskId after) {
  std::string made = target_without(target, {"after"});
  if (!is_start(after)) return made + "after=" + to_string(after);
  made.pop_back();  // what would join it
  return made;
}

/// The last line of a page, which says how the dump goes on, is of the whole cluster.
Result<Step> end_page(Answers answers, ShardNumber shard, ShardNumber shards) {
  net::HttpResponse& answer = answers.front();
  const std::string_view body = answer.body;
  const std::size_t end = body.find_last_not_of('\n');
  const std::size_t line_at = end == std::string_view::npos ? 0 : body.rfind('\n', end) + 1;
  ASSIGN_OR_RETURN(const json::DumpLine last,
                   json::parse_dump_line(body.substr(line_at, end + 1 - line_at)));
  std::optional<json::DumpNext> next;
  if (const auto* const more = std::get_if<json::DumpNext>(&last)) {
    next = *more;
    if (is_start(next->after)) next->after = start_of(shard);  // it has no tasks, but schedules
  } else if (shard + 1 < shards) {
    next = json::DumpNext{.after = start_of(shard + 1)};
  }
  if (next) {
    answer.body.resize(line_at);
    json::append_dump_line(answer.body, *std::move(next));
  }
  return Step(std::move(answer));
}

/// Whose line it is; nobody's when it need not be sent. A queue is of all its partitions, which the
/// map learns from it. Errors: a task that is not where its id says.
Result<std::vector<ShardNumber>> shards_of_line(const json::DumpLine& line, ShardMap& map) {
  if (const auto* const queue = std::get_if<json::DumpedQueue>(&line)) {
    map.partitioned[queue->queue] = queue->settings.partitions;
    return map.places_of(queue->queue);
  }
  if (const auto* const schedule = std::get_if<ScheduleRecord>(&line)) {
    return std::vector{map.home_of(schedule->schedule.queue)};
  }
  const auto* const task = std::get_if<Task>(&line);
  if (task == nullptr) return std::vector<ShardNumber>();
  const std::vector<ShardNumber> places = map.places_of(task->queue);
  const ShardNumber shard = shard_of_task(task->id);
  if (std::ranges::find(places, shard) != places.end()) return std::vector{shard};
  return Error{ErrorCode::invalid_argument,
               "the id is not of the shard of queue " + task->queue +
                   ": a cluster takes dumps of clusters with as many shards",
               "task.id"};
}

bool is_partitioned(const json::DumpLine& line) {
  const auto* const queue = std::get_if<json::DumpedQueue>(&line);
  return queue != nullptr && queue->settings.partitions > 1;
}

/// Lines of one shard, and which they are in the whole.
struct Lines {
  std::string body;
  std::vector<std::size_t> numbers;
};

/// Restores these, by shard; `refused` is what is said already.
Plan restore_lines(const net::HttpRequest& request, std::vector<Lines> lines,
                   json::RestoreAnswer refused) {
  std::vector<Part> parts;
  std::vector<std::vector<std::size_t>> numbers;
  for (std::size_t shard = 0; shard < lines.size(); ++shard) {
    if (lines[shard].numbers.empty()) continue;
    parts.push_back({.shard = static_cast<ShardNumber>(shard),
                     .request = with_body(request, std::move(lines[shard].body))});
    numbers.push_back(std::move(lines[shard].numbers));
  }
  if (parts.empty()) {  // access is asked for all the same
    parts.push_back({.shard = 0, .request = with_body(request, "")});
    numbers.emplace_back();
  }
  const auto merge = [refused = std::move(refused),
                      numbers](const Answers& answers) -> Result<Step> {
    json::RestoreAnswer all = refused;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSIGN_OR_RETURN(json::RestoreAnswer one, json::parse_restored(answers[i].body));
      all.restored += one.restored;
      all.there += one.there;
      all.queues += one.queues;
      all.schedules += one.schedules;
      all.schedules_there += one.schedules_there;
      for (auto& [line, error] : one.errors) {
        if (line == 0 || line > numbers[i].size()) continue;
        all.errors.push_back({numbers[i][line - 1], std::move(error)});
      }
    }
    std::ranges::sort(all.errors, {}, &json::RestoreAnswer::LineError::line);
    return Step(joined(answers, json::render_restored(all)));
  };
  return to_each(std::move(parts), merge);
}

}  // namespace

Step plan_dump(net::HttpRequest request, ShardNumber shards) {
  net::QueryParameter after{"after"};
  net::QueryParameter schedule{"after_schedule"};
  net::QueryParameter limit{"limit"};
  const std::array<net::QueryParameter*, 3> parameters{&after, &schedule, &limit};
  const bool is_read = net::take_query(request.target, parameters).has_value();
  std::optional<TaskId> from;
  if (is_read) from = after.value ? parse_task_id(*after.value) : TaskId{};
  if (!from) return to_shard(std::move(request), 0);  // which refuses it
  const ShardNumber shard = shard_of_task(*from);
  if (shard >= shards) {
    return problem({ErrorCode::invalid_argument, "no page of this dump ended there", "after"});
  }
  request.target = with_after(request.target, *from);
  return to_each({{shard, std::move(request)}}, [shard, shards](Answers answers) {
    return end_page(std::move(answers), shard, shards);
  });
}

Plan plan_restore(net::HttpRequest request, const ShardMap& map) {
  ShardMap known = map;
  const auto texts = json::take_numbered_lines(request.body, kMaxBatchTasks);
  if (!texts) return to_shard(std::move(request), 0);  // which refuses it
  json::RestoreAnswer refused;
  std::vector<Lines> lines(map.shards);
  std::map<ShardNumber, std::string> homes;  // of queues with partitions: their lines
  for (const json::NumberedLine& text : *texts) {
    const Result<json::DumpLine> line = json::parse_dump_line(text.text);
    // What cannot be read is said by whoever reads it.
    Result<std::vector<ShardNumber>> whose = std::vector<ShardNumber>{0};
    if (line) whose = shards_of_line(*line, known);
    if (!whose) {
      refused.errors.push_back({text.number, whose.error()});
      continue;
    }
    if (line && is_partitioned(*line)) homes[whose->front()].append(text.text).push_back('\n');
    for (const ShardNumber shard : *whose) {
      Lines& of = lines.at(shard);
      of.body.append(text.text).push_back('\n');
      of.numbers.push_back(text.number);
    }
  }
  Plan rest = restore_lines(request, std::move(lines), std::move(refused));
  if (homes.empty()) return rest;
  std::vector<Part> first;
  for (auto& [shard, queues] : homes) {
    first.push_back({.shard = shard, .request = with_body(request, std::move(queues))});
  }
  // Only when all homes have them as they are here may others: see shard_map.h.
  return to_each(
      std::move(first), [rest = std::move(rest)](const Answers& answers) -> Result<Step> {
        for (const net::HttpResponse& answer : answers) {
          ASSIGN_OR_RETURN(const json::RestoreAnswer made, json::parse_restored(answer.body));
          if (!made.errors.empty()) return Step(problem(made.errors.front().error));
        }
        return Step(rest);
      });
}

}  // namespace detent::gateway
