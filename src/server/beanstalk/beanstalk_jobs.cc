#include "server/beanstalk/beanstalk_jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "task/retry.h"

namespace detent::server {
namespace {

using beanstalk::Verb;
using beanstalk::Word;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kWhyDead = "buried by its worker";
/// The longest possible pause. It is shown for a queue that was paused over HTTP without an end.
constexpr seconds kWithoutEnd = kMaxDelay;

/// A command may name any number; beyond ours there is no task.
TaskId task_id(std::uint64_t id) noexcept { return {id < TaskId::kEnd ? id : 0}; }

bool has_ended(TaskState state) noexcept {
  return state == TaskState::completed || state == TaskState::cancelled;
}

/// Returns "" for an ended task.
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

JobAnswer say(Word word, JobAnswer::Lease lease = JobAnswer::Lease::as_it_was) {
  JobAnswer answer{.reply = {}, .lease = lease};
  beanstalk::write_word(answer.reply, word);
  return answer;
}

JobAnswer say(const Error& error) { return say(word_for(error)); }

JobAnswer yaml(std::string_view text) {
  JobAnswer answer;
  beanstalk::write_ok(answer.reply, text);
  return answer;
}

JobAnswer show(const Result<TaskSnapshot>& found) {
  if (!found) return say(found.error());
  if (has_ended(found->state)) return say(Word::not_found);
  JobAnswer answer;
  beanstalk::write_found(answer.reply, found->task.id.value, found->task.payload.data);
  return answer;
}

/// As beanstalkd has it: with tasks, or used or watched by somebody.
bool exists(const Engine& engine, const JobCall& call) {
  if (call.queue == "default" || call.use.using_it + call.use.watching > 0) return true;
  const Result<QueueView> view = engine.queue(call.queue);
  return view && has_tasks(view->stats);
}

}  // namespace

Concern concern_of(Verb verb) noexcept {
  switch (verb) {
    case Verb::peek:
    case Verb::reserve_job:
    case Verb::delete_job:
    case Verb::release:
    case Verb::bury:
    case Verb::kick_job:
    case Verb::touch:
    case Verb::stats_job:
      return Concern::job;
    case Verb::put:
    case Verb::peek_ready:
    case Verb::peek_delayed:
    case Verb::peek_buried:
    case Verb::kick:
    case Verb::stats_tube:
    case Verb::pause_tube:
      return Concern::queue;
    case Verb::reserve:
    case Verb::reserve_with_timeout:
    case Verb::use:
    case Verb::watch:
    case Verb::ignore:
    case Verb::stats:
    case Verb::list_tubes:
    case Verb::list_tube_used:
    case Verb::list_tubes_watched:
    case Verb::quit:
      break;
  }
  return Concern::other;
}

bool may_take_turns(Verb verb) noexcept { return verb == Verb::kick || verb == Verb::peek_delayed; }

std::optional<JobAnswer> JobVerbs::run(Engine& engine, const JobCall& call) {
  switch (call.command.verb) {
    case Verb::put:
      return put(engine, call);
    case Verb::peek:
      return show(engine.get(task_id(call.command.id)));
    case Verb::peek_ready:
      return show(engine.first_ready(call.queue));
    case Verb::peek_delayed:
      return peek_delayed(engine, call);
    case Verb::peek_buried:
      return show(engine.first_dead(call.queue));
    case Verb::reserve_job:
      return reserve_job(engine, call);
    case Verb::delete_job:
      return delete_job(engine, call);
    case Verb::release:
      return release(engine, call);
    case Verb::bury:
      return bury(engine, call);
    case Verb::kick:
      return kick(engine, call);
    case Verb::kick_job:
      return kick_job(engine, call);
    case Verb::touch:
      return touch(engine, call);
    case Verb::stats_job:
      return stats_job(engine, call);
    case Verb::stats_tube:
      return stats_queue(engine, call);
    case Verb::pause_tube:
      return pause(engine, call);
    case Verb::reserve:
    case Verb::reserve_with_timeout:
    case Verb::use:
    case Verb::watch:
    case Verb::ignore:
    case Verb::stats:
    case Verb::list_tubes:
    case Verb::list_tube_used:
    case Verb::list_tubes_watched:
    case Verb::quit:
      break;  // no such calls
  }
  return say(Word::internal_error);
}

JobAnswer JobVerbs::break_off() {
  search_.reset();
  if (!kick_) return say(Word::out_of_memory);
  JobAnswer answer;
  beanstalk::write_kicked(answer.reply, kick_->count);
  kick_.reset();
  return answer;
}

// ---- producers ----

JobVerbs::Answer JobVerbs::put(Engine& engine, const JobCall& call) {
  const beanstalk::Command& command = call.command;
  if (!engine.expect_intake()) return say(Word::draining);
  const milliseconds time_to_run =
      std::clamp<milliseconds>(command.time_out, seconds{1}, kMaxVisibilityTimeout);
  ScheduleRequest request{.queue = call.queue,
                          .payload = {.kind = Payload::Kind::bytes, .data = command.body},
                          .rules = {.priority = command.priority,
                                    .max_attempts = kMaxAttempts,  // as good as without end
                                    .visibility_timeout = time_to_run},
                          .due = milliseconds{command.delay}};
  std::optional<TaskTracer::Accept> accept;
  if (tracer_ != nullptr) accept = tracer_->begin_accept(request.headers);
  const Result<TaskSnapshot> view = engine.schedule(std::move(request));
  if (!view) return say(view.error());
  if (accept) tracer_->accepted(*accept, *view);
  JobAnswer answer;
  beanstalk::write_inserted(answer.reply, view->task.id.value);
  return answer;
}

// ---- workers ----

JobVerbs::Answer JobVerbs::reserve_job(Engine& engine, const JobCall& call) {
  const Result<LeasedTask> leased =
      engine.lease_task(task_id(call.command.id), job_lease_request());
  if (!leased) return say(leased.error());
  return reserved_job(*leased, clock_, tracer_);
}

/// The span has no length, and comes before the commit: a verb cannot wait for it here, because it
/// can run while a wait is being answered.
void JobVerbs::settle(const JobCall& call, SpanStep step) const {
  if (tracer_ != nullptr) tracer_->settled(*call.lease, step, tracer_->now());
}

JobVerbs::Answer JobVerbs::delete_job(Engine& engine, const JobCall& call) {
  const TaskId id = task_id(call.command.id);
  JobAnswer answer;
  if (call.lease) {
    answer.lease = JobAnswer::Lease::over;
    answer.counted_in = engine.queue_of(*call.lease);
    const Result<LeaseOutcome> outcome = engine.complete(*call.lease);
    if (!outcome) return say(outcome.error());
    if (*outcome == LeaseOutcome::done) {
      settle(call, SpanStep::complete);
      beanstalk::write_word(answer.reply, Word::deleted);
      return answer;
    }
    // The lease has run out: it is a task like others.
  }
  const Result<TaskSnapshot> view = engine.get(id);
  if (!view) return say(word_for(view.error()), answer.lease);
  if (const Result<void> cancelled = engine.cancel(id); !cancelled) {
    return say(word_for(cancelled.error()), answer.lease);
  }
  answer.counted_in = view->task.queue;
  beanstalk::write_word(answer.reply, Word::deleted);
  return answer;
}

JobVerbs::Answer JobVerbs::release(Engine& engine, const JobCall& call) {
  if (!call.lease) return say(Word::not_found);
  const Result<LeaseOutcome> outcome =
      engine.release(*call.lease, call.command.delay, call.command.priority, ReleaseCount::release);
  if (!outcome) return say(outcome.error());
  if (*outcome == LeaseOutcome::done) settle(call, SpanStep::release);
  return say(*outcome == LeaseOutcome::done ? Word::released : Word::not_found,
             JobAnswer::Lease::over);
}

JobVerbs::Answer JobVerbs::bury(Engine& engine, const JobCall& call) {
  if (!call.lease) return say(Word::not_found);
  const Result<LeaseOutcome> outcome = engine.bury(*call.lease, kWhyDead, call.command.priority);
  if (!outcome) return say(outcome.error());
  if (*outcome == LeaseOutcome::dead) settle(call, SpanStep::bury);
  return say(*outcome == LeaseOutcome::dead ? Word::dead : Word::not_found, JobAnswer::Lease::over);
}

JobVerbs::Answer JobVerbs::touch(Engine& engine, const JobCall& call) {
  if (!call.lease) return say(Word::not_found);
  const Result<LeaseOutcome> outcome = engine.extend(*call.lease, call.length);
  if (!outcome) return say(outcome.error());
  if (*outcome != LeaseOutcome::done) return say(Word::not_found, JobAnswer::Lease::over);
  return say(Word::touched, JobAnswer::Lease::extended);
}

// ---- others ----

JobVerbs::Answer JobVerbs::peek_delayed(Engine& engine, const JobCall& call) {
  const Place from = std::exchange(search_, std::nullopt).value_or(begin_of(Lane::due));
  Result<ScheduledStep> step = engine.first_scheduled(call.queue, from);
  if (!step) return say(step.error());
  if (step->found) return show(*std::move(step->found));
  search_ = step->next;
  return std::nullopt;
}

JobVerbs::Answer JobVerbs::kick(Engine& engine, const JobCall& call) {
  if (!kick_) {
    const Result<QueueView> view = engine.queue(call.queue);
    kick_ = Progress{.is_of_dead = view && view->stats.dead > 0};
  }
  const std::size_t limit = call.command.bound - kick_->count;
  Result<QueueStep> step = kick_->is_of_dead ? engine.redrive(call.queue, limit, kick_->cursor)
                                             : engine.run_now(call.queue, limit, kick_->cursor);
  if (!step && step.error().code != ErrorCode::not_found) {
    kick_.reset();
    return say(step.error());
  }
  if (step) kick_->count += step->count;
  if (step && step->next && kick_->count < call.command.bound) {
    kick_->cursor = *step->next;
    return std::nullopt;
  }
  return break_off();
}

JobVerbs::Answer JobVerbs::kick_job(Engine& engine, const JobCall& call) {
  const TaskId id = task_id(call.command.id);
  const Result<TaskSnapshot> view = engine.get(id);
  if (!view) return say(view.error());
  if (view->state != TaskState::dead && view->state != TaskState::scheduled) {
    return say(Word::not_found);
  }
  const Result<TaskSnapshot> kicked = engine.run_now(id);
  return kicked ? say(Word::kicked) : say(kicked.error());
}

JobVerbs::Answer JobVerbs::pause(Engine& engine, const JobCall& call) {
  if (!exists(engine, call)) return say(Word::not_found);
  const Result<void> paused = engine.pause_for(call.queue, call.command.delay);
  if (!paused) return say(paused.error());
  JobAnswer answer = say(Word::paused);
  answer.counted_in = call.queue;
  return answer;
}

// ---- stats ----

JobVerbs::Answer JobVerbs::stats_job(Engine& engine, const JobCall& call) {
  const TaskId id = task_id(call.command.id);
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
  const milliseconds age = std::chrono::floor<milliseconds>(clock_.wall_now()) - task.created_at;
  return yaml(beanstalk::render_job_stats(
      {.id = call.command.id,
       .queue = task.queue,
       .state = state,
       .priority = task.rules.priority,
       .age = std::chrono::floor<seconds>(std::max(age, milliseconds{0})),
       .delay = std::chrono::round<seconds>(delay_of(task)),
       .time_to_run = std::chrono::ceil<seconds>(time_to_run),
       .time_left = std::chrono::floor<seconds>(std::max(*left, milliseconds{0})),
       .reserves = task.tally.leases + open,
       .timeouts = task.tally.run_outs,
       .releases = task.tally.releases,
       .buries = task.tally.burials,
       .kicks = task.tally.redrives}));
}

JobVerbs::Answer JobVerbs::stats_queue(Engine& engine, const JobCall& call) {
  if (!exists(engine, call)) return say(Word::not_found);
  beanstalk::TubeStats stats{.name = call.queue,
                             .using_it = call.use.using_it,
                             .watching = call.use.watching,
                             .waiting = call.use.waiting,
                             .deletes = call.use.deletes,
                             .pauses = call.use.pauses};
  if (const Result<QueueDetail> detail = engine.queue_detail(call.queue)) {
    stats.jobs.urgent = detail->urgent;
    stats.jobs.total = detail->accepted;
    stats.pause = std::chrono::ceil<seconds>(detail->pause);
    stats.pause_left = std::chrono::floor<seconds>(detail->pause_left);
  }
  if (const Result<QueueView> view = engine.queue(call.queue)) {
    add(stats.jobs, view->stats);
    if (view->settings.paused) stats.pause = stats.pause_left = kWithoutEnd;
  }
  return yaml(beanstalk::render_tube_stats(stats));
}

// ---- several calls ----

void JobRun::go_on(Engine& engine) {
  while (answers_.size() < calls_.size()) {
    std::optional<JobAnswer> answer = verbs_.run(engine, calls_[answers_.size()]);
    if (!answer && go_on_later()) return;
    answers_.push_back(answer ? *std::move(answer) : verbs_.break_off());
  }
  done_(engine, std::move(answers_));
}

/// A call that needs more turns is about one queue, so it takes its turns among the commands of
/// this queue.
bool JobRun::go_on_later() {
  return thread_.post(
      [self = shared_from_this()](Engine& engine) { self->go_on(engine); },
      [queue = calls_[answers_.size()].queue](const Engine& /*engine*/) { return queue; });
}

void release_jobs(Engine& engine, std::span<const LeaseToken> leases) {
  for (const LeaseToken lease : leases) {
    // It may have run out.
    (void)engine.release(lease, {}, {}, ReleaseCount::lease);
  }
}

// ---- figures ----

void AllJobs::add(AllJobs other) {
  counts.urgent += other.counts.urgent;
  counts.ready += other.counts.ready;
  counts.reserved += other.counts.reserved;
  counts.delayed += other.counts.delayed;
  counts.dead += other.counts.dead;
  counts.total += other.counts.total;
  timeouts += other.timeouts;
  if (queues.empty()) return queues.swap(other.queues);
  queues.insert(queues.end(), std::move_iterator(other.queues.begin()),
                std::move_iterator(other.queues.end()));
}

AllJobs all_jobs(const EngineStats& stats) {
  AllJobs jobs{.counts = {.urgent = stats.urgent, .total = stats.counters.scheduled},
               .timeouts = stats.counters.leases_expired};
  for (const QueueStats& queue : stats.queues) {
    add(jobs.counts, queue);
    if (has_tasks(queue)) jobs.queues.push_back(queue.queue);
  }
  return jobs;
}

// ---- words of both sides ----

LeaseRequest job_lease_request() {
  LeaseRequest request;
  request.queue = "default";
  request.worker = "beanstalk";
  request.run_out = RunOut::is_ready_again;
  return request;
}

JobLease job_lease(const LeasedTask& leased, const Clock& clock) {
  return {.id = leased.task.id.value,
          .token = leased.lease,
          .length = leased.lease_until - std::chrono::floor<milliseconds>(clock.wall_now()),
          .queue = leased.task.queue};
}

JobAnswer reserved_job(const LeasedTask& leased, const Clock& clock, TaskTracer* tracer) {
  if (tracer != nullptr) tracer->leased(leased);
  JobAnswer answer{
      .reply = {}, .lease = JobAnswer::Lease::taken, .taken = job_lease(leased, clock)};
  beanstalk::write_reserved(answer.reply, leased.task.id.value, leased.task.payload.data);
  return answer;
}

Word word_for(const Error& error) noexcept {
  switch (error.code) {
    case ErrorCode::not_found:
    case ErrorCode::conflict:
      return Word::not_found;
    case ErrorCode::resource_exhausted:
      return Word::out_of_memory;
    case ErrorCode::invalid_argument:
    case ErrorCode::forbidden:
    case ErrorCode::too_large:
    case ErrorCode::unavailable:
    case ErrorCode::data_loss:
    case ErrorCode::internal:
      break;
  }
  return Word::internal_error;
}

}  // namespace detent::server
