#include "gateway/copy_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gateway/fan_out.h"
#include "net/message/http_query.h"
#include "protocol/json/dump_codec.h"
#include "protocol/json/problem.h"
#include "task/limits.h"
#include "task/request.h"

namespace detent::gateway {
namespace {

constexpr std::uint64_t kNumbers = std::uint64_t{1} << TaskId::kShardBits;  // of shards

/// The place before all tasks of a shard.
TaskId start_of(ShardNumber shard) { return TaskId{shard}; }
bool is_start(TaskId after) { return after.value < kNumbers; }

/// The target with another `after`; no value: from the start.
std::string with_after(std::string_view target, TaskId after) {
  std::string made = target_without(target, {"after"});
  if (!is_start(after)) return made + "after=" + to_string(after);
  made.pop_back();  // the "?" or "&" at the end
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
  } else if (std::holds_alternative<json::DumpEnd>(last) && shard + 1 < shards) {
    next = json::DumpNext{.after = start_of(shard + 1),
                          .counts = std::get<json::DumpEnd>(last).counts};
  }
  if (next) {
    answer.body.resize(line_at);
    json::append_dump_line(answer.body, *std::move(next));
  }
  return Step(std::move(answer));
}

/// The queue of a line, where it has partitions.
const json::DumpedQueue* partitioned_queue(const Result<json::DumpLine>& line) {
  const auto* const queue = line ? std::get_if<json::DumpedQueue>(&*line) : nullptr;
  return queue != nullptr && queue->settings.partitions > 1 ? queue : nullptr;
}

/// Returns the shard of a line, without regard to partitions, or no value if the line need not be
/// sent. A task goes to the shard of its id. That shard decides from its own record of the queue
/// whether it takes the task, because a call may contain only tasks. Errors: a task of a shard that
/// does not exist.
Result<std::optional<ShardNumber>> shard_of_line(const json::DumpLine& line, const ShardMap& map) {
  if (const auto* const queue = std::get_if<json::DumpedQueue>(&line)) {
    return std::optional(map.home_of(queue->queue));
  }
  if (const auto* const schedule = std::get_if<ScheduleRecord>(&line)) {
    return std::optional(map.home_of(schedule->schedule.queue));
  }
  const auto* const task = std::get_if<Task>(&line);
  if (task == nullptr) return std::optional<ShardNumber>();
  const ShardNumber shard = shard_of_task(task->id);
  if (shard < map.shards) return std::optional(shard);
  return wrong_shard("the id belongs to shard " + std::to_string(shard) +
                         ", but this cluster has only " + std::to_string(map.shards) + " shards",
                     "task.id");
}

/// Lines of one shard, and which they are in the whole.
struct Lines {
  std::string body;
  std::vector<std::size_t> numbers;
};

/// Restores these lines by shard; `so_far` is the result of the earlier lines.
Plan restore_lines(const net::HttpRequest& request, std::vector<Lines> lines,
                   json::RestoreAnswer so_far) {
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
  const auto merge = [so_far = std::move(so_far), numbers](const Answers& answers) -> Result<Step> {
    json::RestoreAnswer all = so_far;
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

/// Queues with partitions: their lines, by shard.
using QueueLines = std::map<ShardNumber, std::string>;

/// Creates the queues, and reports how many were new. If a shard refuses a queue, the call fails.
Plan make_queues(const net::HttpRequest& request, QueueLines lines,
                 std::function<Step(std::uint64_t made)> go_on) {
  std::vector<Part> parts;
  for (auto& [shard, queues] : lines) {
    parts.push_back({.shard = shard, .request = with_body(request, std::move(queues))});
  }
  return to_each(
      std::move(parts), [go_on = std::move(go_on)](const Answers& answers) -> Result<Step> {
        std::uint64_t sum = 0;
        for (const net::HttpResponse& answer : answers) {
          ASSIGN_OR_RETURN(const json::RestoreAnswer made, json::parse_restored(answer.body));
          if (!made.errors.empty()) return Step(problem(made.errors.front().error));
          sum += made.queues;
        }
        return go_on(sum);
      });
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
    return problem({ErrorCode::invalid_argument,
                    "after must be the id in the \"next\" line of an earlier page of this dump",
                    "after"});
  }
  request.target = with_after(request.target, *from);
  return to_each({{shard, std::move(request)}}, [shard, shards](Answers answers) {
    return end_page(std::move(answers), shard, shards);
  });
}

Plan plan_restore(net::HttpRequest request, const ShardMap& map) {
  const auto texts = json::take_numbered_lines(request.body, kMaxBatchTasks);
  if (!texts) return to_shard(std::move(request), 0);  // which refuses it
  json::RestoreAnswer answer;
  std::vector<Lines> lines(map.shards);
  QueueLines homes;
  QueueLines others;
  for (const json::NumberedLine& text : *texts) {
    const Result<json::DumpLine> line = json::parse_dump_line(text.text);
    if (const json::DumpedQueue* const queue = partitioned_queue(line)) {
      const auto places = places_of(queue->queue, queue->settings.partitions, map.shards);
      for (const ShardNumber shard : places) {
        (shard == places.front() ? homes : others)[shard].append(text.text).push_back('\n');
      }
      continue;
    }
    // An unreadable line goes to shard 0, which reports the error.
    Result<std::optional<ShardNumber>> whose = std::optional<ShardNumber>(0);
    if (line) whose = shard_of_line(*line, map);
    if (!whose) answer.errors.push_back({text.number, whose.error()});
    if (!whose || !*whose) continue;
    Lines& of = lines.at(**whose);
    of.body.append(text.text).push_back('\n');
    of.numbers.push_back(text.number);
  }
  if (homes.empty()) return restore_lines(request, std::move(lines), std::move(answer));
  // Only when all homes have them as they are here may others: see shard_map.h. A queue is counted
  // where its home was made.
  return make_queues(request, std::move(homes), [=](std::uint64_t made) -> Step {
    json::RestoreAnswer so_far = answer;
    so_far.queues = made;
    const auto rest = [=](std::uint64_t) { return Step(restore_lines(request, lines, so_far)); };
    return others.empty() ? rest(0) : make_queues(request, others, rest);
  });
}

}  // namespace detent::gateway
