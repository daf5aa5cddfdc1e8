#include "server/beanstalk/beanstalk_session.h"

#include <algorithm>
#include <utility>

namespace detent::server {
namespace {

using beanstalk::Verb;
using std::chrono::seconds;

/// Replies gathered before they are sent: one more may come on top.
constexpr std::size_t kMaxReplyBytes = 256 * 1024;
/// Of the bodies of calls that go together: one more may come on top.
constexpr std::size_t kMaxCallBytes = 256 * 1024;

}  // namespace

BeanstalkSession::BeanstalkSession(BeanstalkHub& hub, JobShards& shards,
                                   std::weak_ptr<net::Stream> stream)
    : hub_(hub), shards_(shards), stream_(std::move(stream)), client_(hub) {}

// ---- the loop ----

void BeanstalkSession::run() {
  batch_ = Batch{.inputs = std::exchange(received_, {})};
  go_on();
}

void BeanstalkSession::go_on() {
  Step step = Step::answered;
  while (!is_closed_ && batch_.has_next() && out_.size() < kMaxReplyBytes) {
    is_answering_ = true;
    is_answered_ = false;
    step = answer(batch_.inputs[batch_.next]);
    is_answering_ = false;
    if (step == Step::after_sending || step == Step::waits) break;
    batch_.go_to_next();
    if (step == Step::at_length) break;
  }
  if (!is_closed_ && step != Step::waits) flush();
}

/// The present command is answered. Goes on with the next command, unless answer() has not returned
/// yet.
void BeanstalkSession::answered() {
  is_answered_ = true;
  if (is_answering_) return;
  batch_.go_to_next();
  go_on();
}

/// Sends the replies once their changes are durable.
void BeanstalkSession::flush() { shards_.when_committed(shared_from_this()); }

void BeanstalkSession::committed(bool is_durable) {
  if (!is_durable) {
    // The commit failed, so it is unknown whether the commands took effect.
    out_.clear();
    for (; replies_ > 0; --replies_) beanstalk::write_word(out_, Word::internal_error);
  }
  send();
}

void BeanstalkSession::send() {
  has_more_ = batch_.has_next();
  if (!has_more_) batch_ = {};
  replies_ = 0;
  const std::shared_ptr<net::Stream> stream = stream_.lock();
  if (stream != nullptr && !is_closed_) stream->send(std::exchange(out_, {}));
}

BeanstalkSession::Step BeanstalkSession::say(Word word) {
  beanstalk::write_word(out_, word);
  ++replies_;
  return Step::answered;
}

void BeanstalkSession::add_reply(std::string_view reply) {
  out_ += reply;
  ++replies_;
}

// ---- which command ----

BeanstalkSession::Step BeanstalkSession::answer(beanstalk::Input& input) {
  if (auto* const command = std::get_if<Command>(&input)) {
    if (!std::exchange(batch_.is_counted, true)) client_.count(*command);
    return answer(*command);
  }
  const auto refusal = std::get<beanstalk::Refusal>(input);
  client_.count(refusal);
  beanstalk::write_refusal(out_, refusal);
  ++replies_;
  return Step::answered;
}

BeanstalkSession::Step BeanstalkSession::answer(Command& command) {
  if (command.verb == Verb::reserve) return reserve(std::nullopt);
  if (command.verb == Verb::reserve_with_timeout) return reserve(command.time_out);
  if (command.verb == Verb::stats || command.verb == Verb::list_tubes) {
    return ask_all(command.verb);
  }
  if (const std::optional<std::string> reply = client_.answer(command)) {
    add_reply(*reply);
    return Step::answered;
  }
  if (concern_of(command.verb) == Concern::other) return say(Word::internal_error);
  return call(command);
}

// ---- calls ----

BeanstalkSession::Step BeanstalkSession::call(Command& command) {
  JobCall call = client_.call_for(std::move(command));
  if (const std::optional<JobAnswer> answer = shards_.call_now(call)) {
    note(call, *answer);
    return Step::answered;
  }
  const bool is_of_tube = concern_of(call.command.verb) == Concern::queue;
  if (is_of_tube && call.command.verb != Verb::put) return ask_tube(call);
  return ask(std::move(call));
}

/// A `put` into a queue with partitions goes to the partitions in turn.
ShardNumber BeanstalkSession::shard_of(const JobCall& call) const {
  if (concern_of(call.command.verb) == Concern::queue) {
    return shards_.map()->place_of(call.queue, "", shards_.next_number());
  }
  return shard_of_job(call.command.id);
}

ShardNumber BeanstalkSession::shard_of_job(std::uint64_t id) const {
  const ShardNumber shard = shard_of_task(TaskId{id});
  return shard < shards_.map()->shards ? shard : 0;  // 0 means that there is no such shard
}

/// The outcome of a command after its question was sent. The answer may have come at once.
BeanstalkSession::Step BeanstalkSession::outcome() const noexcept {
  return is_answered_ ? Step::answered : Step::waits;
}

/// Sends the call, together with the following calls to the same shard.
BeanstalkSession::Step BeanstalkSession::ask(JobCall call) {
  std::vector<JobCall> calls;
  const ShardNumber shard = shard_of(call);
  const bool is_alone = !joins(call.command, shard);
  std::size_t bytes = call.command.body.size();
  calls.push_back(std::move(call));
  while (!is_alone && bytes < kMaxCallBytes && batch_.next + 1 < batch_.inputs.size()) {
    auto* const command = std::get_if<Command>(&batch_.inputs[batch_.next + 1]);
    if (command == nullptr || !joins(*command, shard)) break;
    ++batch_.next;
    client_.count(*command);
    bytes += command->body.size();
    calls.push_back(client_.call_for(std::move(*command)));
  }
  shards_.ask(shard, {.kind = ShardAsk::Kind::calls, .calls = calls},
              [self = shared_from_this(), calls](const std::optional<ShardAnswer>& answer) {
                self->called(calls, answer);
              });
  return outcome();
}

/// Returns true if the command can go to this shard together with other commands. Its reply must be
/// short, and it must not be `reserve-job`, because later commands need its lease.
bool BeanstalkSession::joins(const Command& command, ShardNumber shard) const {
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

BeanstalkSession::Step BeanstalkSession::ask_tube(const JobCall& call) {
  ask_partition(TubeReplies(call), shards_.map()->places_of(call.queue));
  return outcome();
}

/// Asks the partitions of a tube one after the other.
void BeanstalkSession::ask_partition(TubeReplies replies, std::vector<ShardNumber> places) {
  const ShardNumber shard = places.front();
  places.erase(places.begin());
  ShardAsk asked{.kind = ShardAsk::Kind::calls, .calls = {replies.call()}};
  shards_.ask(shard, std::move(asked),
              [self = shared_from_this(), replies = std::move(replies),
               places = std::move(places)](std::optional<ShardAnswer> answer) mutable {
                const bool is_answered = answer && answer->answers.size() == 1;
                const bool goes_on = is_answered && replies.add(answer->answers.front().reply);
                if (goes_on && !places.empty() && !self->is_closed_) {
                  return self->ask_partition(std::move(replies), std::move(places));
                }
                if (is_answered) answer->answers.front().reply = replies.whole();
                self->called({replies.call()}, answer);
              });
}

void BeanstalkSession::called(const std::vector<JobCall>& calls,
                              const std::optional<ShardAnswer>& answer) {
  const bool is_answered = answer && answer->answers.size() == calls.size();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (is_answered) {
      note(calls[i], answer->answers[i]);
    } else {
      say(Word::internal_error);  // it is unknown whether the command took effect
    }
  }
  if (is_closed_) return give_all_back();
  answered();
}

void BeanstalkSession::note(const JobCall& call, const JobAnswer& answer) {
  client_.note(call, answer);
  add_reply(answer.reply);
}

BeanstalkSession::Step BeanstalkSession::ask_all(Verb verb) {
  const ShardNumber shards = shards_.map()->shards;
  const auto gathering = std::make_shared<Gathering>(Gathering{.verb = verb, .open = shards});
  for (ShardNumber shard = 0; shard < shards; ++shard) {
    shards_.ask(shard, {.kind = ShardAsk::Kind::all},
                [self = shared_from_this(), gathering](std::optional<ShardAnswer> answer) {
                  self->gather(*gathering, std::move(answer));
                });
  }
  return is_answered_ ? Step::at_length : Step::waits;
}

void BeanstalkSession::gather(Gathering& gathering, std::optional<ShardAnswer> answer) {
  gathering.is_whole &= answer.has_value();
  if (answer) gathering.all.add(std::move(answer->all));
  if (--gathering.open > 0 || is_closed_) return;
  if (!gathering.is_whole) {
    say(Word::internal_error);
  } else {
    add_reply(gathering.verb == Verb::stats ? stats_reply(hub_, gathering.all)
                                            : list_reply(hub_, gathering.all));
  }
  answered();
}

// ---- reserve ----

BeanstalkSession::Step BeanstalkSession::reserve(Timeout timeout) {
  const std::optional<Reserved> now_ready = shards_.reserve_now(client_.wanted());
  if (now_ready && (now_ready->job || now_ready->refusal)) return add_reserved(*now_ready);
  const MonotonicTime now = hub_.clock.now();
  soon_ = client_.deadline_soon();
  std::optional<MonotonicTime> until = soon_;
  if (timeout) until = std::min(until.value_or(MonotonicTime::max()), now + *timeout);
  const bool may_wait = !waits_ended_ && (!until || *until > now);
  if (now_ready && !may_wait) return say(word_in_vain());
  if (may_wait && !out_.empty()) return Step::after_sending;
  is_reserving_ = true;
  reserve_ = shards_.reserve(shared_from_this(), {.until = until, .may_wait = may_wait});
  return Step::waits;
}

void BeanstalkSession::waits() {
  is_waiting_ = true;
  client_.count_wait();
}

void BeanstalkSession::count_end_of_wait() {
  if (std::exchange(is_waiting_, false)) client_.count_end_of_wait();
}

void BeanstalkSession::reserved(const Reserved& result) {
  is_reserving_ = false;
  count_end_of_wait();
  if (is_closed_) {
    if (result.job) client_.hold(result.job->taken);
    return give_all_back();
  }
  add_reserved(result);
  batch_.go_to_next();
  send();
}

BeanstalkSession::Step BeanstalkSession::add_reserved(const Reserved& result) {
  if (!result.job) return say(result.refusal.value_or(word_in_vain()));
  client_.hold(result.job->taken);
  add_reply(result.job->reply);
  return Step::answered;
}

/// The reply to a reserve that got no job in time.
beanstalk::Word BeanstalkSession::word_in_vain() const {
  const bool is_soon = !waits_ended_ && soon_ && *soon_ <= hub_.clock.now();
  return is_soon ? Word::deadline_soon : Word::timed_out;
}

// ---- the end ----

void BeanstalkSession::end_waits() {
  waits_ended_ = true;
  if (is_reserving_) shards_.end_reserve(reserve_);
}

void BeanstalkSession::close() {
  if (std::exchange(is_closed_, true)) return;
  count_end_of_wait();
  if (is_reserving_) shards_.abandon_reserve(reserve_);
  client_.close();
  batch_ = {};
  give_all_back();
}

void BeanstalkSession::give_all_back() {
  std::vector<LeaseToken> leases;
  for (const auto& [id, held] : client_.held()) leases.push_back(held.lease);
  client_.held().clear();
  if (!leases.empty()) shards_.give_back(std::move(leases));
}

}  // namespace detent::server
