// The routes over all queues and tasks: forecast, wheel, dump and restore.
//
// A dump is read in pages. Each page is one small command to the engine: it ends after a fixed
// number of tasks or bytes, whichever comes first, and returns the start of the next page. The
// server keeps no state between pages, so a dump may take any time. A restore sends pages in the
// other direction.
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "external/offload_thread.h"
#include "protocol/json/dump_codec.h"
#include "protocol/json/stats_codec.h"
#include "server/http/query.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kForecastBins = 60;
constexpr milliseconds kForecastSpan = std::chrono::hours{1};
/// The tasks of one queue are counted in steps. Each step is a command that reads a few hundred
/// records of all queues, in due order. After this number of steps, the answer has the counts so
/// far.
constexpr int kForecastSteps = 400;

/// The number of tasks that are read from the store together, and the number of bytes that ends a
/// page. Together they limit the memory of a page to a few megabytes for any payloads.
constexpr std::size_t kReadTasks = 100;
constexpr std::size_t kReadSchedules = 100;
constexpr std::size_t kPageBytes = std::size_t{4} << 20;

/// A page of a dump: its lines so far, and the number of lines of each kind.
struct DumpPage {
  std::string body;
  json::LineCounts counts;
};

Result<void> dump_queues(const Engine& engine, DumpPage& page) {
  for (const QueueStats& stats : engine.stats().queues) {
    const Result<QueueView> view = engine.queue(stats.queue);
    if (!view && view.error().code == ErrorCode::not_found) continue;  // workers wait for it only
    if (!view) return view.error();
    json::append_dump_line(page.body, json::DumpedQueue{stats.queue, view->settings});
    ++page.counts.queues;
  }
  return ok();
}

/// Appends the tasks of `read` that have not ended, by id.
void dump_tasks(TaskPage read, DumpPage& page) {
  auto damaged = read.damaged.begin();
  const auto dump_damaged = [&](TaskId before) {
    for (; damaged != read.damaged.end() && damaged->id < before; ++damaged) {
      json::append_dump_line(page.body, json::DamagedTask{damaged->id});
      ++page.counts.damaged;
    }
  };
  for (StoredTask& stored : read.tasks) {
    dump_damaged(stored.place.id);
    const Standing standing = stored.task.standing;
    if (standing != Standing::live && standing != Standing::dead) continue;
    json::append_dump_line(page.body, std::move(stored.task));
    ++page.counts.tasks;
  }
  dump_damaged(TaskId{TaskId::kEnd});
}

TaskId last_of(const TaskPage& page, TaskId after) {
  if (!page.tasks.empty()) after = std::max(after, page.tasks.back().place.id);
  if (!page.damaged.empty()) after = std::max(after, page.damaged.back().id);
  return after;
}

/// Appends schedules and the end of the page. All tasks that the schedules have created were read
/// earlier, at the latest in this command. The dump therefore has every task of an occurrence that
/// a schedule reports as decided.
Result<void> dump_schedules(const Engine& engine, std::size_t limit, json::DumpNext next,
                            std::uint64_t external, DumpPage& page) {
  for (bool more = true; more;) {
    const bool is_full = limit == 0 || page.body.size() >= kPageBytes;
    const std::size_t part = is_full ? 1 : std::min(limit, kReadSchedules);
    ASSIGN_OR_RETURN(std::vector<ScheduleView> views, engine.schedules_after(next.schedule, part));
    if (is_full && !views.empty()) {
      next.counts = page.counts;
      json::append_dump_line(page.body, std::move(next));
      return ok();
    }
    limit -= views.size();
    more = views.size() == part;
    if (more) next.schedule = views.back().record.schedule.name;
    page.counts.schedules += views.size();
    for (ScheduleView& view : views) json::append_dump_line(page.body, std::move(view.record));
  }
  json::append_dump_line(page.body, json::DumpEnd{.counts = page.counts, .external = external});
  return ok();
}

/// `external`: how many tasks are with another system, for the end of the dump.
Result<std::string> dump_page(Engine& engine, json::DumpNext from, std::size_t limit,
                              std::uint64_t external) {
  DumpPage page;
  if (from == json::DumpNext{}) TRY(dump_queues(engine, page));
  while (limit > 0 && page.body.size() < kPageBytes) {
    const std::size_t part = std::min(limit, kReadTasks);
    ASSIGN_OR_RETURN(TaskPage read, engine.tasks_after(from.after, part));
    limit -= std::min(part, read.tasks.size() + read.damaged.size());
    const bool is_last = !read.read_to;
    from.after = last_of(read, from.after);
    dump_tasks(std::move(read), page);
    if (is_last) {
      TRY(dump_schedules(engine, limit, std::move(from), external, page));
      return std::move(page.body);
    }
  }
  from.counts = page.counts;
  json::append_dump_line(page.body, std::move(from));
  return std::move(page.body);
}

/// Carries out the lines of a restore one by one.
class Restore {
 public:
  Restore(Engine& engine, const OffloadThread* offload) : engine_(engine), offload_(offload) {}

  void line(std::size_t number, const Result<json::DumpLine>& line) {
    const Result<void> done =
        line ? std::visit([this](const auto& some) { return put(some); }, *line)
             : Result<void>(line.error());
    if (!done) answer_.errors.push_back({number, done.error()});
  }
  json::RestoreAnswer take_answer() { return std::move(answer_); }

 private:
  static Error inside(std::string_view what, Error error) {
    if (!error.field.empty()) error.field = std::string(what) + "." + error.field;
    return error;
  }

  /// The settings of a queue that is there stay as they are.
  Result<void> put(const json::DumpedQueue& line) {
    if (const auto there = engine_.queue(line.queue)) {
      if (there->settings.partitions == line.settings.partitions) return ok();
      return Error{ErrorCode::conflict,
                   "queue " + line.queue + " already exists with another number of partitions",
                   "queue"};
    }
    if (auto made = engine_.set_queue(line.queue, line.settings); !made) {
      return inside("queue", std::move(made).error());
    }
    ++answer_.queues;
    return ok();
  }
  Result<void> put(const Task& task) {
    if (auto open = engine_.expect_intake(); !open) return inside("task", std::move(open).error());
    auto restored = engine_.restore(task);
    if (!restored) return inside("task", std::move(restored).error());
    ++(*restored ? answer_.restored : answer_.there);
    // The external scheduler may keep the same task. The mark makes this copy the valid copy.
    if (*restored && offload_ != nullptr) engine_.mark(std::span(&task, 1));
    return ok();
  }
  Result<void> put(const ScheduleRecord& record) {
    auto restored = engine_.restore_schedule(record);
    if (!restored) return inside("schedule", std::move(restored).error());
    ++(*restored ? answer_.schedules : answer_.schedules_there);
    return ok();
  }
  // These entries need no action, so that a dump can be restored unchanged.
  Result<void> put(const json::DamagedTask&) { return ok(); }
  Result<void> put(const json::DumpNext&) { return ok(); }
  Result<void> put(const json::DumpEnd&) { return ok(); }

  Engine& engine_;
  const OffloadThread* offload_;  // may be null
  json::RestoreAnswer answer_;
};

}  // namespace

void Routes::forecast(const Call& call) {
  struct Request {
    std::optional<std::string> queue;
    std::uint64_t bins = 0;
    milliseconds span{0};
  };
  const auto read = [&call]() -> Result<Request> {
    QueryParameter queue{"queue"};
    QueryParameter bins{"bins"};
    QueryParameter span{"span"};
    const std::array<QueryParameter*, 3> parameters{&queue, &bins, &span};
    TRY(take_query(call.request.target, parameters));
    Request request;
    request.queue = queue.value;
    ASSIGN_OR_RETURN(request.bins, read_count(bins, kMaxForecastBins, kForecastBins));
    ASSIGN_OR_RETURN(request.span, read_duration(span, kForecastSpan));
    return request;
  };
  const Result<Request> request = read();
  if (!request) return call.reply.send_error(request.error());
  if (const auto allowed = may_look(call.caller, request->queue); !allowed) {
    return call.reply.send_error(allowed.error());
  }
  const auto look = [request = *request](Engine& engine) -> Result<Forecast> {
    if (request.queue) TRY(engine.queue(*request.queue));
    return engine.forecast(request.span, request.bins);
  };
  run(call.reply, look,
      [this, queue = request->queue](const HttpReply& reply, const Forecast& forecast) {
        if (!queue) return reply.send_json(200, json::render_forecast(forecast));
        Forecast bins{.from = forecast.from, .bin = forecast.bin};
        bins.counts.resize(forecast.counts.size());
        QueueForecast counting{.reply = reply, .queue = *queue, .forecast = std::move(bins)};
        reply.on_gone([gone = counting.has_client_gone] { *gone = true; });
        count_step(std::move(counting));
      });
}

/// One step of the forecast of a queue. Its scheduled tasks are in the bins, or later. All others
/// are due.
void Routes::count_step(QueueForecast counting) {
  struct Counted {
    Forecast forecast;
    std::optional<Place> next;
  };
  const HttpReply reply = counting.reply;
  const std::string name = counting.queue;
  const auto count = [queue = name, forecast = counting.forecast,
                      after = counting.after](Engine& engine) -> Result<Counted> {
    ASSIGN_OR_RETURN(const QueueView view, engine.queue(queue));
    Counted counted{.forecast = forecast};
    Forecast& sum = counted.forecast;
    const WallTime end = sum.from + sum.bin * static_cast<std::int64_t>(sum.counts.size());
    const TaskFilter filter{
        .queue = queue, .state = TaskState::scheduled, .due_after = sum.from, .due_before = end};
    ASSIGN_OR_RETURN(const TaskList found, engine.list(filter, after, kMaxPage));
    for (const TaskSnapshot& view_of_task : found.tasks) {
      ++sum.counts[static_cast<std::size_t>((view_of_task.task.due_at - sum.from) / sum.bin)];
    }
    counted.next = found.next;
    std::uint64_t in_bins = 0;
    for (const std::uint64_t one : sum.counts) in_bins += one;
    sum.overdue = view.stats.ready + view.stats.leased;
    sum.later = view.stats.scheduled - std::min(view.stats.scheduled, in_bins);
    return counted;
  };
  run(
      reply, count,
      [this, counting = std::move(counting)](const HttpReply& to, Counted& counted) mutable {
        const bool is_cut = ++counting.steps == kForecastSteps || *counting.has_client_gone;
        if (counted.next && is_cut) counted.forecast.counted_to = counted.next->at;
        if (!counted.next || is_cut) {
          return to.send_json(200, json::render_forecast(counted.forecast));
        }
        counting.forecast = std::move(counted.forecast);
        counting.after = *counted.next;
        count_step(std::move(counting));
      },
      for_queue(name));
}

void Routes::wheel(const Call& call) {
  const auto look = [](Engine& engine) -> Result<WheelView> {
    if (engine.stopped_by()) return *engine.stopped_by();
    return engine.wheel();
  };
  run(call.reply, look, [](const HttpReply& reply, const WheelView& wheel) {
    reply.send_json(200, json::render_wheel(wheel));
  });
}

void Routes::dump(const Call& call) {
  struct Request {
    json::DumpNext from;
    std::uint64_t limit = 0;
  };
  const auto read = [&call]() -> Result<Request> {
    QueryParameter after{"after"};
    QueryParameter after_schedule{"after_schedule"};
    QueryParameter limit{"limit"};
    const std::array<QueryParameter*, 3> parameters{&after, &after_schedule, &limit};
    TRY(take_query(call.request.target, parameters));
    Request request;
    ASSIGN_OR_RETURN(request.from.after, read_id(after));
    request.from.schedule = after_schedule.value.value_or("");
    ASSIGN_OR_RETURN(request.limit, read_count(limit, json::kMaxDumpTasks, json::kMaxDumpTasks));
    return request;
  };
  const Result<Request> request = read();
  if (!request) return call.reply.send_error(request.error());
  const std::uint64_t external = offload_ != nullptr ? offload_->stats().away : 0;
  run(
      call.reply,
      [request = *request, external](Engine& engine) {
        return dump_page(engine, request.from, request.limit, external);
      },
      [](const HttpReply& reply, std::string& body) {
        reply.send({.status = 200,
                    .content_type = std::string(json::kDumpContentType),
                    .body = std::move(body)});
      });
}

void Routes::restore(const Call& call) {
  struct Line {
    std::size_t number = 0;
    Result<json::DumpLine> line;
  };
  auto texts = json::take_numbered_lines(call.request.body, kMaxBatchTasks);
  if (!texts) return call.reply.send_error(texts.error());
  std::vector<Line> lines;
  lines.reserve(texts->size());
  for (const json::NumberedLine& text : *texts) {
    lines.push_back({text.number, json::parse_dump_line(text.text)});
  }
  const auto restore_all = [lines = std::move(lines),
                            this](Engine& engine) -> Result<json::RestoreAnswer> {
    Restore restore(engine, offload_);
    for (const Line& line : lines) restore.line(line.number, line.line);
    return restore.take_answer();
  };
  run(call.reply, restore_all, [](const HttpReply& reply, const json::RestoreAnswer& answer) {
    reply.send_json(200, json::render_restored(answer));
  });
}

}  // namespace detent::server
