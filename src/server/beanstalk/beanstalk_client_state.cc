#include "server/beanstalk/beanstalk_client_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "protocol/beanstalk/reply_writer.h"
#include "protocol/beanstalk/stats_writer.h"

namespace detent::server {
namespace {

using beanstalk::Verb;

/// Queues that a client may watch: each is looked at when it reserves.
constexpr std::size_t kMaxWatched = 1'000;
/// Before a lease runs out, its holder is not made to wait for another task.
constexpr std::chrono::seconds kSafetyMargin{1};

std::string word(beanstalk::Word word) {
  std::string reply;
  beanstalk::write_word(reply, word);
  return reply;
}

}  // namespace

void BeanstalkClientState::open() {
  ++hub_.connections;
  ++hub_.total_connections;
  ++hub_.queues.of(used_).using_it;
  ++hub_.queues.of(wanted_.queue).watching;
}

void BeanstalkClientState::close() {
  --hub_.connections;
  if (is_producer_) --hub_.producers;
  if (is_worker_) --hub_.workers;
  --hub_.queues.of(used_).using_it;
  hub_.queues.forget_if_unused(used_);
  std::vector<std::string> watched = wanted_.other_queues;
  watched.push_back(wanted_.queue);
  for (const std::string& queue : watched) {
    --hub_.queues.of(queue).watching;
    hub_.queues.forget_if_unused(queue);
  }
}

void BeanstalkClientState::count(const beanstalk::Command& command) {
  ++hub_.commands[static_cast<std::size_t>(command.verb)];
  const bool takes = command.verb == Verb::reserve || command.verb == Verb::reserve_with_timeout ||
                     command.verb == Verb::reserve_job;
  if (command.verb == Verb::put && !std::exchange(is_producer_, true)) ++hub_.producers;
  if (takes && !std::exchange(is_worker_, true)) ++hub_.workers;
}

void BeanstalkClientState::count(beanstalk::Refusal refusal) {
  const bool was_put =
      refusal == beanstalk::Refusal::job_too_big || refusal == beanstalk::Refusal::expected_crlf;
  if (was_put) ++hub_.commands[static_cast<std::size_t>(Verb::put)];
}

std::optional<std::string> BeanstalkClientState::answer(const beanstalk::Command& command) {
  if (command.verb == Verb::use) return use(command.queue);
  if (command.verb == Verb::watch) return watch(command.queue);
  if (command.verb == Verb::ignore) return ignore(command.queue);
  std::string reply;
  if (command.verb == Verb::list_tube_used) {
    beanstalk::write_using(reply, used_);
    return reply;
  }
  if (command.verb == Verb::list_tubes_watched) {
    std::vector<std::string> names{wanted_.queue};
    names.insert(names.end(), wanted_.other_queues.begin(), wanted_.other_queues.end());
    beanstalk::write_ok(reply, beanstalk::render_names(names));
    return reply;
  }
  const bool is_draining = hub_.is_draining.load(std::memory_order_relaxed);
  if (command.verb == Verb::put && is_draining) return word(beanstalk::Word::draining);
  return std::nullopt;
}

JobCall BeanstalkClientState::call_for(beanstalk::Command&& command) const {
  JobCall call{.command = std::move(command)};
  const Verb verb = call.command.verb;
  if (verb == Verb::stats_tube || verb == Verb::pause_tube) {
    call.queue = call.command.queue;
    call.use = hub_.queues.look_up(call.queue);
  } else if (concern_of(verb) == Concern::queue) {
    call.queue = used_;
  } else if (const auto held = held_.find(call.command.id); held != held_.end()) {
    call.lease = held->second.lease;
    call.length = held->second.length;
  }
  return call;
}

void BeanstalkClientState::note(const JobCall& call, const JobAnswer& answer) {
  switch (answer.lease) {
    case JobAnswer::Lease::as_it_was:
      break;
    case JobAnswer::Lease::over:
      held_.erase(call.command.id);
      break;
    case JobAnswer::Lease::extended:
      if (const auto held = held_.find(call.command.id); held != held_.end()) {
        held->second.until = hub_.clock.now() + call.length;
      }
      break;
    case JobAnswer::Lease::taken:
      hold(answer.taken);
      break;
  }
  if (answer.counted_in.empty()) return;
  QueueUse& use = hub_.queues.of(answer.counted_in);
  ++(call.command.verb == Verb::pause_tube ? use.pauses : use.deletes);
}

void BeanstalkClientState::hold(const JobLease& lease) {
  held_.insert_or_assign(
      lease.id,
      Held{.lease = lease.token, .until = hub_.clock.now() + lease.length, .length = lease.length});
}

std::optional<MonotonicTime> BeanstalkClientState::deadline_soon() {
  const MonotonicTime now = hub_.clock.now();
  std::erase_if(held_, [now](const auto& entry) { return entry.second.until < now; });
  std::optional<MonotonicTime> first;
  for (const auto& [id, held] : held_) first = std::min(first.value_or(held.until), held.until);
  if (first) *first -= kSafetyMargin;
  return first;
}

void BeanstalkClientState::add_waits(std::uint64_t change) {
  hub_.waiting += change;
  hub_.queues.of(wanted_.queue).waiting += change;
  for (const std::string& queue : wanted_.other_queues) hub_.queues.of(queue).waiting += change;
}

std::string BeanstalkClientState::use(const std::string& queue) {
  --hub_.queues.of(used_).using_it;
  hub_.queues.forget_if_unused(std::exchange(used_, queue));
  ++hub_.queues.of(used_).using_it;
  std::string reply;
  beanstalk::write_using(reply, used_);
  return reply;
}

std::string BeanstalkClientState::watch(const std::string& queue) {
  std::vector<std::string>& others = wanted_.other_queues;
  const bool is_watched =
      wanted_.queue == queue || std::ranges::find(others, queue) != others.end();
  if (!is_watched && others.size() + 1 >= kMaxWatched) return word(beanstalk::Word::out_of_memory);
  if (!is_watched) {
    others.push_back(queue);
    ++hub_.queues.of(queue).watching;
  }
  std::string reply;
  beanstalk::write_watching(reply, others.size() + 1);
  return reply;
}

std::string BeanstalkClientState::ignore(const std::string& queue) {
  std::vector<std::string>& others = wanted_.other_queues;
  const bool is_first = wanted_.queue == queue;
  if (is_first && others.empty()) return word(beanstalk::Word::not_ignored);
  bool was_watched = is_first;
  if (is_first) {
    wanted_.queue = std::move(others.front());
    others.erase(others.begin());
  } else {
    was_watched = std::erase(others, queue) > 0;
  }
  if (was_watched) {
    --hub_.queues.of(queue).watching;
    hub_.queues.forget_if_unused(queue);
  }
  std::string reply;
  beanstalk::write_watching(reply, others.size() + 1);
  return reply;
}

}  // namespace detent::server
