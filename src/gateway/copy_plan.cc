#include "gateway/copy_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

/// Whose line it is; nothing when it is of none, and need not be sent. Errors: a task that is not
/// where its id says.
Result<std::optional<ShardNumber>> shard_of_line(const json::DumpLine& line, ShardNumber shards) {
  if (const auto* const queue = std::get_if<json::DumpedQueue>(&line)) {
    return std::optional(shard_of_queue(queue->queue, shards));
  }
  if (const auto* const schedule = std::get_if<ScheduleRecord>(&line)) {
    return std::optional(shard_of_queue(schedule->schedule.queue, shards));
  }
  const auto* const task = std::get_if<Task>(&line);
  if (task == nullptr) return std::optional<ShardNumber>();
  const ShardNumber shard = shard_of_queue(task->queue, shards);
  if (shard_of_task(task->id) == shard) return std::optional(shard);
  return Error{ErrorCode::invalid_argument,
               "the id is not of the shard of queue " + task->queue +
                   ": a cluster takes dumps of clusters with as many shards",
               "task.id"};
}

/// Lines of one shard, and which they are in the whole.
struct Lines {
  std::string body;
  std::vector<std::size_t> numbers;
};

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

Plan plan_restore(net::HttpRequest request, ShardNumber shards) {
  const auto texts = json::take_numbered_lines(request.body, kMaxBatchTasks);
  if (!texts) return to_shard(std::move(request), 0);  // which refuses it
  json::RestoreAnswer refused;
  std::vector<Lines> lines(shards);
  for (const json::NumberedLine& text : *texts) {
    const Result<json::DumpLine> line = json::parse_dump_line(text.text);
    // What cannot be read is said by whoever reads it.
    Result<std::optional<ShardNumber>> shard = std::optional<ShardNumber>(0);
    if (line) shard = shard_of_line(*line, shards);
    if (!shard) {
      refused.errors.push_back({text.number, shard.error()});
    } else if (*shard) {
      Lines& of = lines.at(**shard);
      of.body.append(text.text).push_back('\n');
      of.numbers.push_back(text.number);
    }
  }
  std::vector<Part> parts;
  std::vector<std::vector<std::size_t>> numbers;
  for (ShardNumber shard = 0; shard < shards; ++shard) {
    if (lines[shard].numbers.empty()) continue;
    parts.push_back({shard, with_body(request, std::move(lines[shard].body))});
    numbers.push_back(std::move(lines[shard].numbers));
  }
  if (parts.empty()) {  // access is asked for all the same
    parts.push_back({0, with_body(request, "")});
    numbers.emplace_back();
  }
  const auto merge = [refused, numbers](Answers answers) -> Result<Step> {
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

}  // namespace detent::gateway
