#include "server/beanstalk/beanstalk_session.h"

#include <algorithm>
#include <utility>

namespace detent::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Replies gathered before they are sent: one more may come on top.
constexpr std::size_t kMaxReplyBytes = 256 * 1024;
/// Leases given back in one command of the engine's thread: each is read and written.
constexpr int kGiveBackAtOnce = 256;

}  // namespace

BeanstalkSession::BeanstalkSession(BeanstalkHub& hub, std::weak_ptr<net::Stream> stream)
    : hub_(hub), stream_(std::move(stream)), client_(hub), verbs_(hub.clock) {}

// ---- the loop ----

void BeanstalkSession::run(Engine& engine, std::vector<beanstalk::Input> inputs) {
  batch_ = Batch{.inputs = std::move(inputs), .call = {}};
  go_on(engine);
}

void BeanstalkSession::go_on(Engine& engine) {
  Step step = Step::answered;
  while (!is_closed_ && batch_.has_next() && out_.size() < kMaxReplyBytes) {
    step = answer(engine, batch_.inputs[batch_.next]);
    if (step == Step::after_sending || step == Step::waits) break;
    ++answers_;
    batch_.go_to_next();
    if (step == Step::at_length) break;
  }
  if (!is_closed_ && step != Step::waits) flush(engine);
}

/// Sends the replies once their changes are durable.
void BeanstalkSession::flush(Engine& engine) {
  engine.after_commit([self = shared_from_this()](const Result<void>& committed) {
    if (!committed) {
      // The commit failed, so it is unknown whether the commands took effect.
      self->out_.clear();
      for (; self->answers_ > 0; --self->answers_) {
        beanstalk::write_word(self->out_, Word::internal_error);
      }
    }
    self->send();
  });
}

void BeanstalkSession::send() {
  has_more_ = batch_.has_next();
  if (!has_more_) batch_ = {};
  answers_ = 0;
  const std::shared_ptr<net::Stream> stream = stream_.lock();
  if (stream != nullptr && !is_closed_) stream->send(std::exchange(out_, {}));
}

/// Goes on when the engine has served others.
bool BeanstalkSession::go_on_later() {
  return hub_.engine.post([self = shared_from_this()](Engine& engine) { self->go_on(engine); },
                          queue());
}

BeanstalkSession::Step BeanstalkSession::say(Word word) {
  beanstalk::write_word(out_, word);
  return Step::answered;
}

// ---- which command ----

BeanstalkSession::Step BeanstalkSession::answer(Engine& engine, beanstalk::Input& input) {
  if (batch_.call) return answer_call(engine);
  if (auto* const command = std::get_if<Command>(&input)) {
    if (!std::exchange(batch_.is_counted, true)) client_.count(*command);
    return answer(engine, *command);
  }
  const auto refusal = std::get<beanstalk::Refusal>(input);
  client_.count(refusal);
  beanstalk::write_refusal(out_, refusal);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::answer(Engine& engine, Command& command) {
  using beanstalk::Verb;
  if (command.verb == Verb::reserve) return reserve(engine, std::nullopt);
  if (command.verb == Verb::reserve_with_timeout) return reserve(engine, command.time_out);
  if (command.verb == Verb::stats || command.verb == Verb::list_tubes) {
    const AllJobs jobs = all_jobs(engine.stats());
    out_ += command.verb == Verb::stats ? stats_reply(hub_, jobs) : list_reply(hub_, jobs);
    return Step::at_length;
  }
  if (const std::optional<std::string> reply = client_.answer(command)) {
    out_ += *reply;
    return Step::answered;
  }
  if (concern_of(command.verb) == Concern::other) return say(Word::internal_error);
  batch_.call = client_.call_for(std::move(command));
  return answer_call(engine);
}

BeanstalkSession::Step BeanstalkSession::answer_call(Engine& engine) {
  std::optional<JobAnswer> answer = verbs_.run(engine, *batch_.call);
  if (!answer) {
    if (go_on_later()) return Step::waits;
    answer = verbs_.break_off();
  }
  client_.note(*batch_.call, *answer);
  batch_.call.reset();
  out_ += answer->reply;
  return Step::answered;
}

// ---- reserve ----

BeanstalkSession::Step BeanstalkSession::reserve(Engine& engine, Timeout timeout) {
  const Result<std::vector<LeasedTask>> tasks = engine.lease(client_.wanted());
  if (!tasks) return say(word_for(tasks.error()));
  if (!tasks->empty()) {
    hold(tasks->front());
    return Step::answered;
  }
  soon_ = client_.deadline_soon();
  if (waits_ended_) return say(Word::timed_out);
  if (soon_ && *soon_ <= hub_.clock.now()) return say(Word::deadline_soon);
  if (timeout == seconds{0}) return say(Word::timed_out);
  if (!out_.empty()) return Step::after_sending;
  return park(engine, timeout);
}

BeanstalkSession::Step BeanstalkSession::park(Engine& engine, Timeout timeout) {
  milliseconds wait = timeout.value_or(kMaxDelay);
  if (soon_) {
    wait = std::min(wait, std::chrono::ceil<milliseconds>(*soon_ - hub_.clock.now()));
  }
  is_parked_ = true;
  client_.count_wait();
  wait_ = engine.lease_or_wait(client_.wanted(), wait,
                               [self = shared_from_this()](Result<std::vector<LeasedTask>> tasks) {
                                 self->wake(std::move(tasks));
                               });
  return Step::waits;
}

/// The wait is over, and its result is committed.
void BeanstalkSession::wake(Result<std::vector<LeasedTask>> tasks) {
  is_parked_ = false;
  if (is_closed_) {
    if (!tasks || tasks->empty()) return;
    client_.hold(job_lease(tasks->front(), hub_.clock));
    hub_.engine.post_end(
        [self = shared_from_this()](Engine& engine) { self->give_back_some(engine); }, queue());
    return;
  }
  client_.count_end_of_wait();
  if (!tasks) {
    say(word_for(tasks.error()));
  } else if (!tasks->empty()) {
    hold(tasks->front());
  } else {
    say(soon_ && *soon_ <= hub_.clock.now() ? Word::deadline_soon : Word::timed_out);
  }
  batch_.go_to_next();
  send();
}

/// Answers RESERVED.
void BeanstalkSession::hold(const LeasedTask& leased) {
  client_.hold(job_lease(leased, hub_.clock));
  out_ += reserved_reply(leased);
}

// ---- the end ----

void BeanstalkSession::end_waits(Engine& engine) {
  waits_ended_ = true;
  if (is_parked_) engine.abandon_wait(wait_);
}

void BeanstalkSession::close(Engine& engine) {
  if (std::exchange(is_closed_, true)) return;
  if (is_parked_) {
    client_.count_end_of_wait();
    engine.abandon_wait(wait_);
  }
  client_.close();
  batch_ = {};
  give_back_some(engine);
}

void BeanstalkSession::give_back_some(Engine& engine) {
  BeanstalkClientState::HeldLeases& held = client_.held();
  // While the store is away, all are given back later.
  const int most = engine.stopped_by() ? 0 : kGiveBackAtOnce;
  for (int count = 0; !held.empty() && count < most; ++count) {
    // It may have run out.
    (void)engine.release(held.begin()->second.lease, {}, {}, ReleaseCount::lease);
    held.erase(held.begin());
  }
  if (held.empty()) return;
  hub_.engine.post_end_of_lease(
      [self = shared_from_this()](Engine& later) { self->give_back_some(later); }, queue());
}

}  // namespace detent::server
