// What each beanstalk command does to tasks and queues. docs/reference/beanstalk.md has them as a
// table of command and state.
#include <algorithm>
#include <utility>

#include "protocol/beanstalk/stats_writer.h"
#include "server/beanstalk_session.h"

namespace detent::server {
namespace {

using beanstalk::Refusal;
using beanstalk::Verb;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Queues that a client may watch: each is looked at when it reserves.
constexpr std::size_t kMaxWatched = 1'000;
constexpr const char* kWhyDead = "buried by its worker";

/// A command may name any number; beyond ours there is no task.
TaskId task_id(std::uint64_t id) noexcept { return {id < TaskId::kEnd ? id : 0}; }

bool has_ended(TaskState state) noexcept {
  return state == TaskState::completed || state == TaskState::cancelled;
}

}  // namespace

// ---- which one ----

BeanstalkSession::Step BeanstalkSession::answer(Engine& engine, const beanstalk::Input& input) {
  if (const auto* const command = std::get_if<Command>(&input)) {
    if (!std::exchange(is_counted_, true)) count(*command);
    return answer(engine, *command);
  }
  const Refusal refusal = std::get<Refusal>(input);
  const bool was_put = refusal == Refusal::job_too_big || refusal == Refusal::expected_crlf;
  if (was_put) ++hub_.commands[static_cast<std::size_t>(Verb::put)];
  beanstalk::write_refusal(out_, refusal);
  return Step::answered;
}

void BeanstalkSession::count(const Command& command) {
  ++hub_.commands[static_cast<std::size_t>(command.verb)];
  const bool takes = command.verb == Verb::reserve || command.verb == Verb::reserve_with_timeout ||
                     command.verb == Verb::reserve_job;
  if (command.verb == Verb::put && !std::exchange(is_producer_, true)) ++hub_.producers;
  if (takes && !std::exchange(is_worker_, true)) ++hub_.workers;
}

BeanstalkSession::Step BeanstalkSession::answer(Engine& engine, const Command& command) {
  switch (command.verb) {
    case Verb::put:
      return put(engine, command);
    case Verb::use:
      return use(command);
    case Verb::reserve:
      return reserve(engine, std::nullopt);
    case Verb::reserve_with_timeout:
      return reserve(engine, command.time_out);
    case Verb::reserve_job:
      return reserve_job(engine, command);
    case Verb::delete_job:
      return delete_job(engine, command);
    case Verb::release:
      return release(engine, command);
    case Verb::bury:
      return bury(engine, command);
    case Verb::touch:
      return touch(engine, command);
    case Verb::watch:
      return watch(command);
    case Verb::ignore:
      return ignore(command);
    case Verb::peek:
      return peek(engine, command);
    case Verb::peek_ready:
      return show(engine.first_ready(used_));
    case Verb::peek_delayed:
      return peek_delayed(engine);
    case Verb::peek_buried:
      return show(engine.first_dead(used_));
    case Verb::kick:
      return kick(engine, command);
    case Verb::kick_job:
      return kick_job(engine, command);
    case Verb::stats:
      return stats(engine);
    case Verb::stats_job:
      return stats_job(engine, command);
    case Verb::stats_tube:
      return stats_queue(engine, command);
    case Verb::list_tubes:
      return list_queues(engine);
    case Verb::list_tube_used:
      beanstalk::write_using(out_, used_);
      return Step::answered;
    case Verb::list_tubes_watched: {
      std::vector<std::string> names{reserve_.queue};
      names.insert(names.end(), reserve_.other_queues.begin(), reserve_.other_queues.end());
      beanstalk::write_ok(out_, beanstalk::render_names(names));
      return Step::answered;
    }
    case Verb::pause_tube:
      return pause(engine, command);
    case Verb::quit:
      break;  // the connection's
  }
  return say(Word::internal_error);
}

// ---- producers ----

BeanstalkSession::Step BeanstalkSession::put(Engine& engine, const Command& command) {
  if (hub_.is_draining.load(std::memory_order_relaxed)) return say(Word::draining);
  const milliseconds time_to_run =
      std::clamp<milliseconds>(command.time_out, seconds{1}, kMaxVisibilityTimeout);
  const Result<TaskSnapshot> view =
      engine.schedule({.queue = used_,
                       .payload = {.kind = Payload::Kind::bytes, .data = command.body},
                       .rules = {.priority = command.priority,
                                 .max_attempts = kMaxAttempts,  // as good as without end
                                 .visibility_timeout = time_to_run},
                       .due = milliseconds{command.delay}});
  if (!view) return say(view.error());
  beanstalk::write_inserted(out_, view->task.id.value);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::use(const Command& command) {
  --hub_.queues.of(used_).using_it;
  hub_.queues.forget_if_unused(std::exchange(used_, command.queue));
  ++hub_.queues.of(used_).using_it;
  beanstalk::write_using(out_, used_);
  return Step::answered;
}

// ---- workers ----

BeanstalkSession::Step BeanstalkSession::watch(const Command& command) {
  std::vector<std::string>& others = reserve_.other_queues;
  const bool is_watched =
      reserve_.queue == command.queue || std::ranges::find(others, command.queue) != others.end();
  if (!is_watched && others.size() + 1 >= kMaxWatched) return say(Word::out_of_memory);
  if (!is_watched) {
    others.push_back(command.queue);
    ++hub_.queues.of(command.queue).watching;
  }
  beanstalk::write_watching(out_, others.size() + 1);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::ignore(const Command& command) {
  std::vector<std::string>& others = reserve_.other_queues;
  const bool is_first = reserve_.queue == command.queue;
  if (is_first && others.empty()) return say(Word::not_ignored);
  bool was_watched = is_first;
  if (is_first) {
    reserve_.queue = std::move(others.front());
    others.erase(others.begin());
  } else {
    was_watched = std::erase(others, command.queue) > 0;
  }
  if (was_watched) {
    --hub_.queues.of(command.queue).watching;
    hub_.queues.forget_if_unused(command.queue);
  }
  beanstalk::write_watching(out_, others.size() + 1);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::reserve_job(Engine& engine, const Command& command) {
  const Result<LeasedTask> leased = engine.lease_task(task_id(command.id), reserve_);
  if (!leased) return say(leased.error());
  hold(*leased);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::delete_job(Engine& engine, const Command& command) {
  if (const auto held = held_.find(command.id); held != held_.end()) {
    const std::string queue = std::move(held->second.queue);
    const Result<LeaseOutcome> outcome = engine.complete(held->second.lease);
    if (!outcome) return say(outcome.error());
    held_.erase(held);
    if (*outcome == LeaseOutcome::done) {
      ++hub_.queues.of(queue).deletes;
      return say(Word::deleted);
    }
    // The lease has run out: it is a task like others.
  }
  const TaskId id = task_id(command.id);
  const Result<TaskSnapshot> view = engine.get(id);
  if (!view) return say(view.error());
  if (const Result<void> cancelled = engine.cancel(id); !cancelled) return say(cancelled.error());
  ++hub_.queues.of(view->task.queue).deletes;
  return say(Word::deleted);
}

BeanstalkSession::Step BeanstalkSession::release(Engine& engine, const Command& command) {
  const auto held = held_.find(command.id);
  if (held == held_.end()) return say(Word::not_found);
  const Result<LeaseOutcome> outcome =
      engine.release(held->second.lease, command.delay, command.priority, ReleaseCount::release);
  if (!outcome) return say(outcome.error());
  held_.erase(held);
  return say(*outcome == LeaseOutcome::done ? Word::released : Word::not_found);
}

BeanstalkSession::Step BeanstalkSession::bury(Engine& engine, const Command& command) {
  const auto held = held_.find(command.id);
  if (held == held_.end()) return say(Word::not_found);
  const Result<LeaseOutcome> outcome = engine.bury(held->second.lease, kWhyDead, command.priority);
  if (!outcome) return say(outcome.error());
  held_.erase(held);
  return say(*outcome == LeaseOutcome::dead ? Word::dead : Word::not_found);
}

BeanstalkSession::Step BeanstalkSession::touch(Engine& engine, const Command& command) {
  const auto entry = held_.find(command.id);
  if (entry == held_.end()) return say(Word::not_found);
  Held& held = entry->second;
  const Result<LeaseOutcome> outcome = engine.extend(held.lease, held.length);
  if (!outcome) return say(outcome.error());
  if (*outcome != LeaseOutcome::done) {
    held_.erase(entry);
    return say(Word::not_found);
  }
  held.until = hub_.clock.now() + held.length;
  return say(Word::touched);
}

// ---- others ----

BeanstalkSession::Step BeanstalkSession::peek(Engine& engine, const Command& command) {
  return show(engine.get(task_id(command.id)));
}

BeanstalkSession::Step BeanstalkSession::show(const Result<TaskSnapshot>& found) {
  if (!found) return say(found.error());
  if (has_ended(found->state)) return say(Word::not_found);
  beanstalk::write_found(out_, found->task.id.value, found->task.payload.data);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::peek_delayed(Engine& engine) {
  const Place from = std::exchange(search_, std::nullopt).value_or(begin_of(Lane::due));
  Result<ScheduledStep> step = engine.first_scheduled(used_, from);
  if (!step) return say(step.error());
  if (step->found) return show(*std::move(step->found));
  if (go_on_later() == Step::waits) {
    search_ = step->next;
    return Step::waits;
  }
  return say(Word::out_of_memory);
}

BeanstalkSession::Step BeanstalkSession::kick(Engine& engine, const Command& command) {
  if (!kick_) {
    const Result<QueueView> view = engine.queue(used_);
    kick_ = Progress{.is_of_dead = view && view->stats.dead > 0};
  }
  const std::size_t limit = command.bound - kick_->count;
  Result<QueueStep> step = kick_->is_of_dead ? engine.redrive(used_, limit, kick_->cursor)
                                             : engine.run_now(used_, limit, kick_->cursor);
  if (!step && step.error().code != ErrorCode::not_found) {
    kick_.reset();
    return say(step.error());
  }
  if (step) kick_->count += step->count;
  if (step && step->next && kick_->count < command.bound) {
    kick_->cursor = *step->next;
    if (go_on_later() == Step::waits) return Step::waits;
  }
  beanstalk::write_kicked(out_, kick_->count);
  kick_.reset();
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::kick_job(Engine& engine, const Command& command) {
  const TaskId id = task_id(command.id);
  const Result<TaskSnapshot> view = engine.get(id);
  if (!view) return say(view.error());
  if (view->state != TaskState::dead && view->state != TaskState::scheduled) {
    return say(Word::not_found);
  }
  const Result<TaskSnapshot> kicked = engine.run_now(id);
  return kicked ? say(Word::kicked) : say(kicked.error());
}

BeanstalkSession::Step BeanstalkSession::pause(Engine& engine, const Command& command) {
  if (!exists(engine, command.queue)) return say(Word::not_found);
  const Result<void> paused = engine.pause_for(command.queue, command.delay);
  if (!paused) return say(paused.error());
  ++hub_.queues.of(command.queue).pauses;
  return say(Word::paused);
}

}  // namespace detent::server
