#include "server/cluster_session.h"

#include <algorithm>
#include <utility>

#include "cluster/shard_map.h"

namespace detent::server {
namespace {

using beanstalk::Verb;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Replies gathered before they are sent: one more may come on top.
constexpr std::size_t kMaxReplyBytes = 256 * 1024;
/// Of the bodies of calls that go together: one more may come on top.
constexpr std::size_t kMaxCallBytes = 256 * 1024;
/// A shard that is away may be so for a lease and longer; then the time to run ends leases.
constexpr int kGiveBackTries = 60;

std::string reply_of(beanstalk::Word word) {
  std::string reply;
  beanstalk::write_word(reply, word);
  return reply;
}

}  // namespace

ClusterSession::ClusterSession(BeanstalkHub& hub, JobShards& shards,
                               std::weak_ptr<net::Stream> stream)
    : hub_(hub), shards_(shards), stream_(std::move(stream)), client_(hub) {}

// ---- the loop ----

void ClusterSession::run(Engine& engine, std::vector<beanstalk::Input> inputs) {
  batch_ = std::move(inputs);
  next_ = 0;
  go_on(engine);
}

void ClusterSession::go_on(Engine& engine) {
  while (!is_closed_ && next_ < batch_.size() && out_.size() < kMaxReplyBytes) {
    const Step step = answer(engine);
    if (step == Step::waits) return;
    if (step == Step::after_sending) break;
    ++next_;
    is_counted_ = false;
  }
  if (!is_closed_) send();
}

/// What was asked is answered: goes on with the next command.
void ClusterSession::next(Engine& engine) {
  ++next_;
  is_counted_ = false;
  go_on(engine);
}

void ClusterSession::send() {
  has_more_ = next_ < batch_.size();
  if (!has_more_) batch_ = {};
  const std::shared_ptr<net::Stream> stream = stream_.lock();
  if (stream != nullptr) stream->send(std::exchange(out_, {}));
}

ClusterSession::Step ClusterSession::say(Word word) {
  beanstalk::write_word(out_, word);
  return Step::answered;
}

ClusterSession::Step ClusterSession::answer(Engine& engine) {
  beanstalk::Input& input = batch_[next_];
  auto* const command = std::get_if<Command>(&input);
  if (command == nullptr) {
    const auto refusal = std::get<beanstalk::Refusal>(input);
    client_.count(refusal);
    beanstalk::write_refusal(out_, refusal);
    return Step::answered;
  }
  if (!std::exchange(is_counted_, true)) client_.count(*command);
  if (command->verb == Verb::reserve) return reserve(engine, std::nullopt);
  if (command->verb == Verb::reserve_with_timeout) return reserve(engine, command->time_out);
  if (command->verb == Verb::stats || command->verb == Verb::list_tubes) {
    return ask_all(command->verb);
  }
  if (const std::optional<std::string> reply = client_.answer(*command)) {
    out_ += *reply;
    return Step::answered;
  }
  if (concern_of(command->verb) == Concern::other) return say(Word::internal_error);
  return call(*command);
}

/// Has it answered on this thread.
void ClusterSession::ask(ShardNumber shard, const ShardAsk& ask, Answered answered) {
  shards_.ask(shard, ask,
              [self = shared_from_this(),
               answered = std::move(answered)](std::optional<ShardAnswer> answer) mutable {
                self->hub_.engine.post_end([answered = std::move(answered),
                                            answer = std::move(answer)](Engine& engine) mutable {
                  answered(engine, std::move(answer));
                });
              });
}

// ---- calls ----

ShardNumber ClusterSession::shard_of(const JobCall& call) const {
  if (concern_of(call.command.verb) == Concern::queue) {
    return shard_of_queue(call.queue, shards_.shards());
  }
  const ShardNumber shard = shard_of_task(TaskId{call.command.id});
  return shard < shards_.shards() ? shard : 0;  // 0 says that there is none
}

/// Asks with it what follows and is of the same shard.
ClusterSession::Step ClusterSession::call(Command& first) {
  ShardAsk asked{.kind = ShardAsk::Kind::calls};
  std::size_t bytes = first.body.size();
  asked.calls.push_back(client_.call_for(std::move(first)));
  const ShardNumber shard = shard_of(asked.calls.front());
  const bool is_alone = !joins(asked.calls.front().command, shard);
  while (!is_alone && bytes < kMaxCallBytes && next_ + 1 < batch_.size()) {
    auto* const command = std::get_if<Command>(&batch_[next_ + 1]);
    if (command == nullptr || !joins(*command, shard)) break;
    ++next_;
    client_.count(*command);
    bytes += command->body.size();
    asked.calls.push_back(client_.call_for(std::move(*command)));
  }
  ask(shard, asked,
      [self = shared_from_this(), calls = asked.calls](Engine& engine,
                                                       std::optional<ShardAnswer> answer) mutable {
        self->called(engine, std::move(calls), std::move(answer));
      });
  return Step::waits;
}

/// Whether it goes together with others to this shard: those with short replies, and but for
/// `reserve-job`, whose lease those behind it need.
bool ClusterSession::joins(const Command& command, ShardNumber shard) const {
  switch (command.verb) {
    case Verb::put:
      return !hub_.is_draining.load(std::memory_order_relaxed) &&
             shard_of_queue(client_.used(), shards_.shards()) == shard;
    case Verb::delete_job:
    case Verb::release:
    case Verb::bury:
    case Verb::touch:
    case Verb::kick_job: {
      const ShardNumber of = shard_of_task(TaskId{command.id});
      return (of < shards_.shards() ? of : 0) == shard;
    }
    case Verb::peek:
    case Verb::peek_ready:
    case Verb::peek_delayed:
    case Verb::peek_buried:
    case Verb::reserve:
    case Verb::reserve_with_timeout:
    case Verb::reserve_job:
    case Verb::use:
    case Verb::watch:
    case Verb::ignore:
    case Verb::kick:
    case Verb::stats:
    case Verb::stats_job:
    case Verb::stats_tube:
    case Verb::list_tubes:
    case Verb::list_tube_used:
    case Verb::list_tubes_watched:
    case Verb::pause_tube:
    case Verb::quit:
      break;
  }
  return false;
}

void ClusterSession::called(Engine& engine, std::vector<JobCall> calls,
                            std::optional<ShardAnswer> answer) {
  const bool is_answered = answer && answer->answers.size() == calls.size();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!is_answered) {
      say(Word::internal_error);  // whether it is done nobody knows
      continue;
    }
    client_.note(calls[i], answer->answers[i]);
    out_ += answer->answers[i].reply;
  }
  if (is_closed_) return give_all_back();
  next(engine);
}

ClusterSession::Step ClusterSession::ask_all(Verb verb) {
  const ShardNumber shards = shards_.shards();
  const auto gathering = std::make_shared<Gathering>(Gathering{.verb = verb, .open = shards});
  for (ShardNumber shard = 0; shard < shards; ++shard) {
    ask(shard, {.kind = ShardAsk::Kind::all},
        [self = shared_from_this(), gathering](Engine& engine,
                                               const std::optional<ShardAnswer>& answer) {
          gathering->is_whole &= answer.has_value();
          if (answer) gathering->all.add(answer->all);
          if (--gathering->open > 0 || self->is_closed_) return;
          if (!gathering->is_whole) {
            self->say(Word::internal_error);
          } else {
            self->out_ += gathering->verb == Verb::stats ? stats_reply(self->hub_, gathering->all)
                                                         : list_reply(self->hub_, gathering->all);
          }
          self->next(engine);
        });
  }
  return Step::waits;
}

// ---- reserve ----

ClusterSession::Step ClusterSession::reserve(Engine& engine, Timeout timeout) {
  Reserve begun{.number = ++last_reserve_, .parts = parts_watched()};
  const MonotonicTime now = hub_.clock.now();
  if (timeout) begun.until = now + *timeout;
  const std::optional<MonotonicTime> soon = client_.deadline_soon();
  if (soon && (!begun.until || *soon <= *begun.until)) {
    begun.until = *soon;
    begun.in_vain = Word::deadline_soon;
  }
  if (waits_ended_) {
    begun.until = now;
    begun.in_vain = Word::timed_out;
  }
  const bool may_wait = !begun.until || *begun.until > now;
  if (may_wait && !out_.empty()) return Step::after_sending;
  const bool is_of_one = begun.parts.size() == 1;
  reserve_ = std::move(begun);
  if (!is_of_one) {
    look();
  } else if (may_wait) {
    wait(engine);
  } else {
    take(0, milliseconds{0});
  }
  return Step::waits;
}

std::vector<ClusterSession::Part> ClusterSession::parts_watched() const {
  std::map<ShardNumber, std::vector<std::string>> by_shard;
  const LeaseRequest& wanted = client_.wanted();
  by_shard[shard_of_queue(wanted.queue, shards_.shards())].push_back(wanted.queue);
  for (const std::string& queue : wanted.other_queues) {
    by_shard[shard_of_queue(queue, shards_.shards())].push_back(queue);
  }
  std::vector<Part> parts;
  for (auto& entry : by_shard) {
    parts.push_back({.shard = entry.first, .queues = std::move(entry.second)});
  }
  return parts;
}

/// How long it may still wait; never negative.
milliseconds ClusterSession::time_left() const {
  if (!reserve_->until) return kMaxDelay;
  const auto left = std::chrono::ceil<milliseconds>(*reserve_->until - hub_.clock.now());
  return std::max(left, milliseconds{0});
}

void ClusterSession::look() {
  reserve_->open = reserve_->parts.size();
  reserve_->best.reset();
  for (std::size_t i = 0; i < reserve_->parts.size(); ++i) {
    const Part& part = reserve_->parts[i];
    ask(part.shard, {.kind = ShardAsk::Kind::next, .queues = part.queues},
        [self = shared_from_this(), i, number = reserve_->number](
            Engine& engine, const std::optional<ShardAnswer>& answer) {
          if (!self->is_over(number)) self->looked(engine, i, answer);
        });
  }
}

void ClusterSession::looked(Engine& engine, std::size_t part,
                            const std::optional<ShardAnswer>& answer) {
  if (answer && answer->head && (!reserve_->best || *answer->head < *reserve_->best)) {
    reserve_->best = answer->head;
    reserve_->best_part = part;
  }
  if (--reserve_->open > 0) return;
  if (reserve_->best) return take(reserve_->best_part, milliseconds{0});
  if (time_left() == milliseconds{0} || waits_ended_) return finish_in_vain(engine);
  wait(engine);
}

/// Waits at every shard, no longer than may be.
void ClusterSession::wait(Engine& engine) {
  reserve_->is_waiting = true;
  client_.count_wait();
  reserve_->timer = after(engine, time_left(),
                          [self = shared_from_this(), number = reserve_->number](Engine& later) {
                            if (!self->is_over(number)) self->finish_in_vain(later);
                          });
  for (std::size_t i = 0; i < reserve_->parts.size(); ++i) take(i, kLongestTake);
}

void ClusterSession::take(std::size_t part, milliseconds wait) {
  Part& of = reserve_->parts[part];
  of.take = shards_.next_number();
  ask(of.shard,
      {.kind = ShardAsk::Kind::take, .queues = of.queues, .wait = wait, .number = *of.take},
      [self = shared_from_this(), part, shard = of.shard, number = reserve_->number,
       asked_at = hub_.clock.now()](Engine& engine, std::optional<ShardAnswer> answer) {
        if (!self->is_over(number)) return self->took(engine, part, asked_at, std::move(answer));
        if (!answer || answer->answers.empty()) return;
        self->give_back(shard, {answer->answers.front().taken.token});
      });
}

void ClusterSession::took(Engine& engine, std::size_t part, MonotonicTime asked_at,
                          std::optional<ShardAnswer> answer) {
  reserve_->parts[part].take.reset();
  if (answer && !answer->answers.empty()) {
    JobAnswer& got = answer->answers.front();
    client_.hold(got.taken);
    return finish(engine, std::move(got.reply));
  }
  if (reserve_->is_waiting) return take_again(engine, part, asked_at);
  // Somebody was faster.
  const bool may_look = reserve_->parts.size() > 1 && ++reserve_->looks < kMaxLooks;
  if (may_look) return look();
  if (time_left() == milliseconds{0} || waits_ended_) return finish_in_vain(engine);
  wait(engine);
}

/// A wait that was over early was at a shard that is away, or moves.
void ClusterSession::take_again(Engine& engine, std::size_t part, MonotonicTime asked_at) {
  milliseconds& pause = reserve_->parts[part].pause;
  if (hub_.clock.now() - asked_at >= kLongestTake / 2) {
    pause = kAwayPause;
    return take(part, kLongestTake);
  }
  after(engine, std::exchange(pause, std::min(pause * 2, kLongestAwayPause)),
        [self = shared_from_this(), part, number = reserve_->number](Engine&) {
          if (!self->is_over(number)) self->take(part, kLongestTake);
        });
}

void ClusterSession::finish_in_vain(Engine& engine) {
  const bool is_time = time_left() == milliseconds{0};
  finish(engine, reply_of(is_time ? reserve_->in_vain : Word::timed_out));
}

void ClusterSession::finish(Engine& engine, std::string reply) {
  const Reserve over = *std::exchange(reserve_, std::nullopt);
  if (over.is_waiting) {
    client_.count_end_of_wait();
    engine.abandon_wait(over.timer);
  }
  for (const Part& part : over.parts) {
    if (!part.take) continue;
    ask(part.shard, {.kind = ShardAsk::Kind::end_take, .number = *part.take},
        [](Engine&, const std::optional<ShardAnswer>&) {});
  }
  if (is_closed_) return give_all_back();
  out_ += reply;
  next(engine);
}

/// Runs it then, or when all waits are ended; `engine` has no tasks, so nothing comes before.
Engine::WaitId ClusterSession::after(Engine& engine, milliseconds delay,
                                     UniqueFunction<void(Engine&)> then) {
  return engine.lease_or_wait(
      job_lease_request(), delay,
      [self = shared_from_this(),
       then = std::move(then)](const Result<std::vector<LeasedTask>>&) mutable {
        // A callback of a commit must not change the engine.
        self->hub_.engine.post_end(
            [then = std::move(then)](Engine& later) mutable { then(later); });
      });
}

// ---- the end ----

void ClusterSession::end_waits(Engine& engine) {
  waits_ended_ = true;
  if (reserve_ && reserve_->is_waiting) {
    finish(engine, reply_of(Word::timed_out));
  }
}

void ClusterSession::close(Engine& engine) {
  if (std::exchange(is_closed_, true)) return;
  if (reserve_) finish(engine, {});
  client_.close();
  batch_.clear();
  give_all_back();
}

void ClusterSession::give_all_back() {
  std::map<ShardNumber, std::vector<LeaseToken>> by_shard;
  for (const auto& [id, held] : client_.held()) {
    by_shard[shard_of_lease(held.lease)].push_back(held.lease);
  }
  client_.held().clear();
  for (auto& [shard, leases] : by_shard) give_back(shard, std::move(leases));
}

void ClusterSession::give_back(ShardNumber shard, std::vector<LeaseToken> leases) {
  ++hub_.give_backs;
  give_back({.shard = shard, .leases = std::move(leases), .tries = kGiveBackTries});
}

/// As many as go at once; the others when these are answered.
void ClusterSession::give_back(GiveBack what) {
  const auto count = std::min(what.leases.size(), ShardAsk::kMostLeases);
  const auto end = what.leases.begin() + static_cast<std::ptrdiff_t>(count);
  const ShardAsk asked{.kind = ShardAsk::Kind::give_back, .leases = {what.leases.begin(), end}};
  const ShardNumber shard = what.shard;
  ask(shard, asked,
      [self = shared_from_this(), what = std::move(what), count](
          Engine& engine, const std::optional<ShardAnswer>& answer) mutable {
        if (answer) {
          const auto begin = what.leases.begin();
          what.leases.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
          what.tries = kGiveBackTries + 1;
        }
        if (what.leases.empty() || --what.tries == 0) {
          --self->hub_.give_backs;
        } else if (answer) {
          self->give_back(std::move(what));
        } else {
          self->give_back_later(engine, std::move(what));
        }
      });
}

void ClusterSession::give_back_later(Engine& engine, GiveBack what) {
  after(engine, kGiveBackPause,
        [self = shared_from_this(), due = hub_.clock.now() + kGiveBackPause,
         what = std::move(what)](Engine&) mutable {
          if (self->hub_.clock.now() >= due) return self->give_back(std::move(what));
          // All waits have ended: without a pause all tries would be over at once.
          self->hub_.tries.emplace_back(
              [self, what = std::move(what)]() mutable { self->give_back(std::move(what)); });
        });
}

}  // namespace detent::server
