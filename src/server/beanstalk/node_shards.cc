#include "server/beanstalk/node_shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/beanstalk/beanstalk_session.h"
#include "server/beanstalk/cluster_reserve.h"

namespace detent::server {
namespace {

/// A shard that is away may be so for a lease and longer; then the time to run ends leases.
constexpr int kGiveBackTries = 60;

std::vector<std::string> queues_of(const LeaseRequest& wanted) {
  std::vector<std::string> queues{wanted.queue};
  queues.insert(queues.end(), wanted.other_queues.begin(), wanted.other_queues.end());
  return queues;
}

}  // namespace

NodeShards::NodeShards(ShardAsker& asker, Clock& clock)
    : asker_(asker),
      clock_(clock),
      thread_({.clock = &clock, .shards = 1, .order = DueOrder::by_schedule}) {}

NodeShards::~NodeShards() { stop(); }

void NodeShards::stop() { thread_.stop(Drain::run_due); }

// ---- the thread ----

void NodeShards::run(Job job) {
  thread_.schedule_after(std::chrono::nanoseconds{0}, std::move(job)).release();
}

bool NodeShards::post(std::shared_ptr<BeanstalkSession> session, Step step) {
  post_end(std::move(session), step);
  return thread_.is_running();
}

void NodeShards::post_end(std::shared_ptr<BeanstalkSession> session, Step step) {
  run([session = std::move(session), step] { (session.get()->*step)(); });
}

TimerHandle NodeShards::after(std::chrono::milliseconds delay, Job job) {
  return thread_.schedule_after(delay, std::move(job));
}

// ---- questions ----

void NodeShards::ask(ShardNumber shard, ShardAsk asked, Answered answered) {
  ask(shard, asked, std::move(answered), {});
}

void NodeShards::ask(ShardNumber shard, const ShardAsk& asked, Answered answered, WhenSlow slow) {
  ShardAsker::WhenSlow tell_slow;
  if (slow) {
    tell_slow = [this, slow = std::move(slow)]() mutable { run(std::move(slow)); };
  }
  asker_.ask(
      shard, asked,
      [this, answered = std::move(answered)](std::optional<ShardAnswer> answer) mutable {
        run([answered = std::move(answered), answer = std::move(answer)]() mutable {
          answered(std::move(answer));
        });
      },
      std::move(tell_slow));
}

void NodeShards::when_committed(std::shared_ptr<BeanstalkSession> session) {
  session->committed(true);
}

// ---- reserves ----

JobShards::ReserveNumber NodeShards::reserve(std::shared_ptr<BeanstalkSession> session,
                                             const ReserveOptions& options) {
  const ReserveNumber number = ++last_reserve_;
  const auto on_end = [this, number, session](std::optional<JobAnswer> got) {
    reserves_.erase(number);
    session->reserved({.job = std::move(got)});
  };
  const auto reserve = std::make_shared<ClusterReserve>(
      *this,
      ClusterReserve::Options{.queues = queues_of(session->wanted()),
                              .until = options.until,
                              .may_wait = options.may_wait},
      ClusterReserve::Events{.on_wait = [session] { session->waits(); }, .on_end = on_end});
  reserves_.emplace(number, reserve);
  reserve->start();
  if (have_waits_ended_) reserve->end_wait();
  return number;
}

void NodeShards::end_reserve(ReserveNumber number) {
  const auto it = reserves_.find(number);
  if (it == reserves_.end()) return;
  const std::shared_ptr<ClusterReserve> reserve = it->second;  // its end erases the entry
  reserve->end_wait();
}

void NodeShards::abandon_reserve(ReserveNumber number) {
  const auto it = reserves_.find(number);
  if (it == reserves_.end()) return;
  const std::shared_ptr<ClusterReserve> reserve = it->second;  // its end erases the entry
  reserve->abandon();
}

void NodeShards::end_waits() {
  run([this] {
    have_waits_ended_ = true;
    std::vector<ReserveNumber> open;
    for (const auto& [number, reserve] : reserves_) open.push_back(number);
    for (const ReserveNumber number : open) end_reserve(number);
  });
}

// ---- leases of clients that have gone ----

void NodeShards::give_back(std::vector<LeaseToken> leases) {
  std::map<ShardNumber, std::vector<LeaseToken>> by_shard;
  for (const LeaseToken lease : leases) by_shard[shard_of_lease(lease)].push_back(lease);
  for (auto& [shard, of_shard] : by_shard) give_back(shard, std::move(of_shard));
}

void NodeShards::give_back(ShardNumber shard, std::vector<LeaseToken> leases) {
  ++give_backs_;
  send_back({.shard = shard, .leases = std::move(leases), .tries = kGiveBackTries});
}

/// Gives back as many leases as fit in one question; the rest follows after the answer.
void NodeShards::send_back(GiveBack what) {
  const auto count = std::min(what.leases.size(), ShardAsk::kMostLeases);
  const auto end = what.leases.begin() + static_cast<std::ptrdiff_t>(count);
  const ShardAsk asked{.kind = ShardAsk::Kind::give_back, .leases = {what.leases.begin(), end}};
  const ShardNumber shard = what.shard;
  ask(shard, asked,
      [this, what = std::move(what), count](const std::optional<ShardAnswer>& answer) mutable {
        gave_back(std::move(what), count, answer.has_value());
      });
}

void NodeShards::gave_back(GiveBack what, std::size_t asked, bool is_answered) {
  if (is_answered) {
    const auto begin = what.leases.begin();
    what.leases.erase(begin, begin + static_cast<std::ptrdiff_t>(asked));
    what.tries = kGiveBackTries + 1;
  }
  if (what.leases.empty() || --what.tries == 0) {
    --give_backs_;
  } else if (is_answered) {
    send_back(std::move(what));
  } else {
    after(kGiveBackPause, [this, what = std::move(what)]() mutable {
      send_back(std::move(what));
    }).release();
  }
}

}  // namespace detent::server
