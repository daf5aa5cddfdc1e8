#include "server/beanstalk/cluster_session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cluster/shard_map.h"

namespace detent::server {
namespace {

using beanstalk::Verb;

/// Replies gathered before they are sent: one more may come on top.
constexpr std::size_t kMaxReplyBytes = 256 * 1024;
/// Of the bodies of calls that go together: one more may come on top.
constexpr std::size_t kMaxCallBytes = 256 * 1024;

}  // namespace

ClusterSession::ClusterSession(BeanstalkHub& hub, JobShards& shards,
                               std::weak_ptr<net::Stream> stream)
    : hub_(hub), shards_(hub, shards), stream_(std::move(stream)), client_(hub) {}

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

/// The question was answered: continues with the next command.
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

// ---- calls ----

/// A `put` into a queue with partitions goes to the partitions in turn.
ShardNumber ClusterSession::shard_of(const JobCall& call) const {
  if (concern_of(call.command.verb) == Concern::queue) {
    return shards_.map()->place_of(call.queue, "", shards_.next_number());
  }
  return shard_of_job(call.command.id);
}

ShardNumber ClusterSession::shard_of_job(std::uint64_t id) const {
  const ShardNumber shard = shard_of_task(TaskId{id});
  return shard < shards_.map()->shards ? shard : 0;  // 0 means that there is no such shard
}

/// Asks the partitions of a tube one after the other.
void ClusterSession::ask_tube(TubeReplies replies, std::vector<ShardNumber> places) {
  const ShardNumber shard = places.front();
  places.erase(places.begin());
  const ShardAsk asked{.kind = ShardAsk::Kind::calls, .calls = {replies.call()}};
  shards_.ask(shard, asked,
              [self = shared_from_this(), replies = std::move(replies), places = std::move(places)](
                  Engine& engine, std::optional<ShardAnswer> answer) mutable {
                const bool is_answered = answer && answer->answers.size() == 1;
                const bool goes_on = is_answered && replies.add(answer->answers.front().reply);
                if (goes_on && !places.empty() && !self->is_closed_) {
                  return self->ask_tube(std::move(replies), std::move(places));
                }
                if (is_answered) answer->answers.front().reply = replies.whole();
                self->called(engine, {replies.call()}, std::move(answer));
              });
}

/// Sends the call, together with the following calls to the same shard.
ClusterSession::Step ClusterSession::call(Command& first) {
  ShardAsk asked{.kind = ShardAsk::Kind::calls};
  std::size_t bytes = first.body.size();
  asked.calls.push_back(client_.call_for(std::move(first)));
  const JobCall& call = asked.calls.front();
  if (concern_of(call.command.verb) == Concern::queue && call.command.verb != Verb::put) {
    ask_tube(TubeReplies(call), shards_.map()->places_of(call.queue));
    return Step::waits;
  }
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
  shards_.ask(shard, asked,
              [self = shared_from_this(), calls = asked.calls](
                  Engine& engine, std::optional<ShardAnswer> answer) mutable {
                self->called(engine, std::move(calls), std::move(answer));
              });
  return Step::waits;
}

/// Returns true if the command can go to this shard together with other commands. Its reply must be
/// short, and it must not be `reserve-job`, because later commands need its lease.
bool ClusterSession::joins(const Command& command, ShardNumber shard) const {
  switch (command.verb) {
    case Verb::put:
      return !hub_.is_draining.load(std::memory_order_relaxed) &&
             std::ranges::count(shards_.map()->places_of(client_.used()), shard) > 0;
    case Verb::delete_job:
    case Verb::release:
    case Verb::bury:
    case Verb::touch:
    case Verb::kick_job:
      return shard_of_job(command.id) == shard;
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
      say(Word::internal_error);  // it is unknown whether the command took effect
      continue;
    }
    client_.note(calls[i], answer->answers[i]);
    out_ += answer->answers[i].reply;
  }
  if (is_closed_) return give_all_back();
  next(engine);
}

ClusterSession::Step ClusterSession::ask_all(Verb verb) {
  const ShardNumber shards = shards_.map()->shards;
  const auto gathering = std::make_shared<Gathering>(Gathering{.verb = verb, .open = shards});
  for (ShardNumber shard = 0; shard < shards; ++shard) {
    shards_.ask(shard, {.kind = ShardAsk::Kind::all},
                [self = shared_from_this(), gathering](Engine& engine,
                                                       const std::optional<ShardAnswer>& answer) {
                  gathering->is_whole &= answer.has_value();
                  if (answer) gathering->all.add(answer->all);
                  if (--gathering->open > 0 || self->is_closed_) return;
                  if (!gathering->is_whole) {
                    self->say(Word::internal_error);
                  } else {
                    self->out_ += gathering->verb == Verb::stats
                                      ? stats_reply(self->hub_, gathering->all)
                                      : list_reply(self->hub_, gathering->all);
                  }
                  self->next(engine);
                });
  }
  return Step::waits;
}

// ---- reserve ----

ClusterSession::Step ClusterSession::reserve(Engine& engine, Timeout timeout) {
  const MonotonicTime now = hub_.clock.now();
  std::optional<MonotonicTime> until;
  Word in_vain = Word::timed_out;
  if (timeout) until = now + *timeout;
  const std::optional<MonotonicTime> soon = client_.deadline_soon();
  if (soon && (!until || *soon <= *until)) {
    until = *soon;
    in_vain = Word::deadline_soon;
  }
  const bool may_wait = !waits_ended_ && (!until || *until > now);
  if (may_wait && !out_.empty()) return Step::after_sending;
  // The reserve owns this callback, so a strong reference would be a cycle.
  const auto on_wait = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->client_.count_wait();
  };
  const auto on_end = [weak = weak_from_this(), until, in_vain](Engine& later,
                                                                std::optional<JobAnswer> got) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const bool is_time = until && self->hub_.clock.now() >= *until;
    self->reserved(later, std::move(got), is_time ? in_vain : Word::timed_out);
  };
  reserve_ = std::make_shared<ClusterReserve>(
      shards_,
      ClusterReserve::Options{.queues = queues_watched(), .until = until, .may_wait = may_wait},
      ClusterReserve::Events{.on_wait = on_wait, .on_end = on_end});
  reserve_->start(engine);
  return Step::waits;
}

std::vector<std::string> ClusterSession::queues_watched() const {
  const LeaseRequest& wanted = client_.wanted();
  std::vector<std::string> queues{wanted.queue};
  queues.insert(queues.end(), wanted.other_queues.begin(), wanted.other_queues.end());
  return queues;
}

void ClusterSession::reserved(Engine& engine, std::optional<JobAnswer> got, Word in_vain) {
  const auto over = std::exchange(reserve_, nullptr);
  if (over->is_waiting()) client_.count_end_of_wait();
  if (got) client_.hold(got->taken);
  if (is_closed_) return give_all_back();
  if (got) {
    out_ += got->reply;
  } else {
    say(in_vain);
  }
  next(engine);
}

// ---- the end ----

void ClusterSession::end_waits(Engine& engine) {
  waits_ended_ = true;
  if (reserve_) reserve_->end_wait(engine);
}

void ClusterSession::close(Engine& engine) {
  if (std::exchange(is_closed_, true)) return;
  if (reserve_) reserve_->abandon(engine);
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
  for (auto& [shard, leases] : by_shard) shards_.give_back(shard, std::move(leases));
}

}  // namespace detent::server
