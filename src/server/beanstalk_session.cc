// The loop over a client's commands, reserve and its waiting, and what is left when it has gone.
#include "server/beanstalk_session.h"

#include <algorithm>
#include <utility>

namespace detent::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Replies gathered before they are sent: one more may come on top.
constexpr std::size_t kMaxReplyBytes = 256 * 1024;
/// Before a lease runs out, its holder is not made to wait for another task.
constexpr seconds kSafetyMargin{1};
/// Leases given back in one command of the engine's thread: each is read and written.
constexpr int kGiveBackAtOnce = 256;

}  // namespace

BeanstalkSession::BeanstalkSession(BeanstalkHub& hub, std::weak_ptr<net::Stream> stream)
    : hub_(hub), stream_(std::move(stream)) {
  reserve_.queue = used_;
  reserve_.worker = "beanstalk";
  reserve_.run_out = RunOut::is_ready_again;
}

void BeanstalkSession::open() {
  ++hub_.connections;
  ++hub_.total_connections;
  ++hub_.queues.of(used_).using_it;
  ++hub_.queues.of(reserve_.queue).watching;
}

// ---- the loop ----

void BeanstalkSession::run(Engine& engine, std::vector<beanstalk::Input> inputs) {
  batch_ = std::move(inputs);
  next_ = 0;
  go_on(engine);
}

void BeanstalkSession::go_on(Engine& engine) {
  Step step = Step::answered;
  while (!is_closed_ && next_ < batch_.size() && out_.size() < kMaxReplyBytes) {
    step = answer(engine, batch_[next_]);
    if (step == Step::after_sending || step == Step::waits) break;
    ++answers_;
    ++next_;
    is_counted_ = false;
    if (step == Step::at_length) break;
  }
  if (!is_closed_ && step != Step::waits) flush(engine);
}

/// Sends what was answered, once it is durable.
void BeanstalkSession::flush(Engine& engine) {
  engine.after_commit([self = shared_from_this()](const Result<void>& committed) {
    if (!committed) {
      // Whether it is done nobody knows.
      self->out_.clear();
      for (; self->answers_ > 0; --self->answers_) {
        beanstalk::write_word(self->out_, Word::internal_error);
      }
    }
    self->send();
  });
}

void BeanstalkSession::send() {
  has_more_ = next_ < batch_.size();
  if (!has_more_) batch_ = {};
  answers_ = 0;
  const std::shared_ptr<net::Stream> stream = stream_.lock();
  if (stream != nullptr && !is_closed_) stream->send(std::exchange(out_, {}));
}

/// Goes on when the engine has served others.
BeanstalkSession::Step BeanstalkSession::go_on_later() {
  const auto go_on = [self = shared_from_this()](Engine& engine) { self->go_on(engine); };
  const bool is_posted = hub_.engine.post(go_on, queue());
  return is_posted ? Step::waits : Step::answered;
}

BeanstalkSession::Step BeanstalkSession::say(Word word) {
  beanstalk::write_word(out_, word);
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::say(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found:
    case ErrorCode::conflict:
      return say(Word::not_found);
    case ErrorCode::resource_exhausted:
      return say(Word::out_of_memory);
    case ErrorCode::invalid_argument:
    case ErrorCode::forbidden:
    case ErrorCode::too_large:
    case ErrorCode::unavailable:
    case ErrorCode::data_loss:
    case ErrorCode::internal:
      break;
  }
  return say(Word::internal_error);
}

// ---- reserve ----

BeanstalkSession::Step BeanstalkSession::reserve(Engine& engine, Timeout timeout) {
  const Result<std::vector<LeasedTask>> tasks = engine.lease(reserve_);
  if (!tasks) return say(tasks.error());
  if (!tasks->empty()) {
    hold(tasks->front());
    return Step::answered;
  }
  soon_ = deadline_soon();
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
  count_waits(1);
  wait_ = engine.lease_or_wait(reserve_, wait,
                               [self = shared_from_this()](Result<std::vector<LeasedTask>> tasks) {
                                 self->wake(std::move(tasks));
                               });
  return Step::waits;
}

/// The wait is over, and what it brought is committed.
void BeanstalkSession::wake(Result<std::vector<LeasedTask>> tasks) {
  is_parked_ = false;
  if (is_closed_) {
    if (!tasks || tasks->empty()) return;
    hold(tasks->front());
    hub_.engine.post_end(
        [self = shared_from_this()](Engine& engine) { self->give_back_some(engine); }, queue());
    return;
  }
  count_waits(~std::uint64_t{0});
  if (!tasks) {
    say(tasks.error());
  } else if (!tasks->empty()) {
    hold(tasks->front());
  } else {
    say(soon_ && *soon_ <= hub_.clock.now() ? Word::deadline_soon : Word::timed_out);
  }
  ++next_;
  is_counted_ = false;
  send();
}

/// Answers RESERVED.
void BeanstalkSession::hold(const LeasedTask& leased) {
  const milliseconds length =
      leased.lease_until - std::chrono::floor<milliseconds>(hub_.clock.wall_now());
  held_.insert_or_assign(leased.task.id.value, Held{.lease = leased.lease,
                                                    .until = hub_.clock.now() + length,
                                                    .length = length,
                                                    .queue = leased.task.queue});
  beanstalk::write_reserved(out_, leased.task.id.value, leased.task.payload.data);
}

/// When the safety margin of a lease begins that this client holds; forgets those that ran out.
std::optional<MonotonicTime> BeanstalkSession::deadline_soon() {
  const MonotonicTime now = hub_.clock.now();
  std::erase_if(held_, [now](const auto& entry) { return entry.second.until < now; });
  std::optional<MonotonicTime> first;
  for (const auto& [id, held] : held_) first = std::min(first.value_or(held.until), held.until);
  if (first) *first -= kSafetyMargin;
  return first;
}

void BeanstalkSession::count_waits(std::uint64_t change) {
  hub_.waiting += change;
  hub_.queues.of(reserve_.queue).waiting += change;
  for (const std::string& queue : reserve_.other_queues) hub_.queues.of(queue).waiting += change;
}

// ---- the end ----

void BeanstalkSession::end_waits(Engine& engine) {
  waits_ended_ = true;
  if (is_parked_) engine.abandon_wait(wait_);
}

void BeanstalkSession::close(Engine& engine) {
  if (std::exchange(is_closed_, true)) return;
  if (is_parked_) {
    count_waits(~std::uint64_t{0});
    engine.abandon_wait(wait_);
  }
  --hub_.connections;
  if (is_producer_) --hub_.producers;
  if (is_worker_) --hub_.workers;
  --hub_.queues.of(used_).using_it;
  hub_.queues.forget_if_unused(used_);
  reserve_.other_queues.push_back(reserve_.queue);
  for (const std::string& queue : reserve_.other_queues) {
    --hub_.queues.of(queue).watching;
    hub_.queues.forget_if_unused(queue);
  }
  batch_.clear();
  give_back_some(engine);
}

void BeanstalkSession::give_back_some(Engine& engine) {
  for (int count = 0; !held_.empty() && count < kGiveBackAtOnce; ++count) {
    // One that has run out meanwhile is no matter; nor is a store that failed: leases end with it.
    (void)engine.release(held_.begin()->second.lease, {}, {}, ReleaseCount::lease);
    held_.erase(held_.begin());
  }
  if (held_.empty()) return;
  hub_.engine.post_end([self = shared_from_this()](Engine& later) { self->give_back_some(later); },
                       queue());
}

}  // namespace detent::server
