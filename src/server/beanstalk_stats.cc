// What beanstalk clients are told of tasks, queues and the server.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "protocol/beanstalk/stats_writer.h"
#include "server/beanstalk_session.h"
#include "server/version.h"
#include "task/retry.h"

namespace detent::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// What a queue that is paused over HTTP, without an end, shows: the longest pause there is.
constexpr seconds kWithoutEnd = kMaxDelay;

/// None for what has ended.
std::string_view state_of(TaskState state) noexcept {
  switch (state) {
    case TaskState::scheduled:
      return "delayed";
    case TaskState::ready:
      return "ready";
    case TaskState::leased:
      return "reserved";
    case TaskState::dead:
      return "buried";
    case TaskState::completed:
    case TaskState::cancelled:
      break;
  }
  return {};
}

/// The delay asked last, as far as it is known: of one that was moved over HTTP, its whole wait.
milliseconds delay_of(const Task& task) noexcept {
  const bool is_noted = task.tally.releases + task.tally.redrives > 0;
  return is_noted ? task.tally.delay : std::max(task.due_at - task.created_at, milliseconds{0});
}

void add(beanstalk::JobCounts& jobs, const QueueStats& queue) {
  jobs.ready += queue.ready;
  jobs.reserved += queue.leased;
  jobs.delayed += queue.scheduled;
  jobs.dead += queue.dead;
}

bool has_tasks(const QueueStats& queue) noexcept {
  return queue.ready + queue.leased + queue.scheduled + queue.dead > 0;
}

microseconds duration_of(const timeval& time) noexcept {
  return seconds{time.tv_sec} + microseconds{time.tv_usec};
}

}  // namespace

BeanstalkSession::Step BeanstalkSession::stats_job(Engine& engine, const Command& command) {
  const TaskId id{command.id < TaskId::kEnd ? command.id : 0};
  const Result<TaskSnapshot> view = engine.get(id);
  if (!view) return say(view.error());
  const Task& task = view->task;
  const std::string_view state = state_of(view->state);
  if (state.empty()) return say(Word::not_found);
  const Result<milliseconds> left = engine.time_left(id);
  if (!left) return say(left.error());
  const Result<QueueView> queue = engine.queue(task.queue);
  if (!queue) return say(queue.error());
  const milliseconds time_to_run = task.rules.visibility_timeout.value_or(
      queue->settings.visibility_timeout.value_or(kDefaultVisibilityTimeout));
  const std::uint32_t open = view->state == TaskState::leased ? 1 : 0;
  const beanstalk::JobStats stats{
      .id = command.id,
      .queue = task.queue,
      .state = state,
      .priority = task.rules.priority,
      .age = std::chrono::floor<seconds>(
          std::max(std::chrono::floor<milliseconds>(hub_.clock.wall_now()) - task.created_at,
                   milliseconds{0})),
      .delay = std::chrono::round<seconds>(delay_of(task)),
      .time_to_run = std::chrono::ceil<seconds>(time_to_run),
      .time_left = std::chrono::floor<seconds>(std::max(*left, milliseconds{0})),
      .reserves = task.tally.leases + open,
      .timeouts = task.tally.run_outs,
      .releases = task.tally.releases,
      .buries = task.tally.burials,
      .kicks = task.tally.redrives};
  beanstalk::write_ok(out_, beanstalk::render_job_stats(stats));
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::stats_queue(Engine& engine, const Command& command) {
  if (!exists(engine, command.queue)) return say(Word::not_found);
  const QueueUse use = hub_.queues.look_up(command.queue);
  beanstalk::TubeStats stats{.name = command.queue,
                             .using_it = use.using_it,
                             .watching = use.watching,
                             .waiting = use.waiting,
                             .deletes = use.deletes,
                             .pauses = use.pauses};
  if (const Result<QueueDetail> detail = engine.queue_detail(command.queue)) {
    stats.jobs.urgent = detail->urgent;
    stats.jobs.total = detail->accepted;
    stats.pause = std::chrono::ceil<seconds>(detail->pause);
    stats.pause_left = std::chrono::floor<seconds>(detail->pause_left);
  }
  if (const Result<QueueView> view = engine.queue(command.queue)) {
    add(stats.jobs, view->stats);
    if (view->settings.paused) stats.pause = stats.pause_left = kWithoutEnd;
  }
  beanstalk::write_ok(out_, beanstalk::render_tube_stats(stats));
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::stats(Engine& engine) {
  const EngineStats of_engine = engine.stats();
  beanstalk::JobCounts jobs{.urgent = of_engine.urgent, .total = of_engine.counters.scheduled};
  for (const QueueStats& queue : of_engine.queues) add(jobs, queue);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  utsname machine{};
  uname(&machine);
  const beanstalk::ServerStats stats{
      .jobs = jobs,
      .commands = hub_.commands,
      .timeouts = of_engine.counters.leases_expired,
      .max_job_bytes = kMaxPayloadBytes,
      .tubes = queue_names(of_engine).size(),
      .connections = hub_.connections,
      .producers = hub_.producers,
      .workers = hub_.workers,
      .waiting = hub_.waiting,
      .total_connections = hub_.total_connections,
      .pid = static_cast<std::uint64_t>(getpid()),
      .version = kVersion,
      .user_time = duration_of(usage.ru_utime),
      .system_time = duration_of(usage.ru_stime),
      .uptime = std::chrono::floor<seconds>(hub_.clock.now() - hub_.start),
      .is_draining = hub_.is_draining.load(std::memory_order_relaxed),
      .id = hub_.id,
      .host = std::string_view(&machine.nodename[0]),
      .os = std::string_view(&machine.version[0]),
      .platform = std::string_view(&machine.machine[0])};
  beanstalk::write_ok(out_, beanstalk::render_server_stats(stats));
  return Step::at_length;
}

BeanstalkSession::Step BeanstalkSession::list_queues(Engine& engine) {
  beanstalk::write_ok(out_, beanstalk::render_names(queue_names(engine.stats())));
  return Step::at_length;
}

/// As beanstalkd has it: with tasks, or used or watched by somebody.
bool BeanstalkSession::exists(Engine& engine, const std::string& queue) const {
  const QueueUse use = hub_.queues.look_up(queue);
  if (queue == "default" || use.using_it + use.watching > 0) return true;
  const Result<QueueView> view = engine.queue(queue);
  return view && has_tasks(view->stats);
}

/// Those that exist, by name.
std::vector<std::string> BeanstalkSession::queue_names(const EngineStats& stats) const {
  std::set<std::string> names{"default"};
  for (const QueueStats& queue : stats.queues) {
    if (has_tasks(queue)) names.insert(queue.queue);
  }
  for (const auto& [name, use] : hub_.queues.all()) {
    if (use.using_it + use.watching > 0) names.insert(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace detent::server
