#include "server/beanstalk/engine_shards.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "detent/check.h"
#include "server/beanstalk/beanstalk_session.h"

namespace detent::server {
namespace {

using std::chrono::milliseconds;

/// Leases given back in one command of the engine's thread: each is read and written.
constexpr std::size_t kGiveBackAtOnce = 256;

EngineThread::QueueOf queue_of(std::shared_ptr<BeanstalkSession> session) {
  return [session = std::move(session)](const Engine& /*engine*/) { return session->queue(); };
}

Reserved as_reserved(const Result<std::vector<LeasedTask>>& tasks, const Clock& clock,
                     TaskTracer* tracer) {
  if (!tasks) return {.refusal = word_for(tasks.error())};
  if (tasks->empty()) return {};
  return {.job = reserved_job(tasks->front(), clock, tracer)};
}

}  // namespace

/// Makes the engine available for the time of a step.
class EngineShards::WithEngine {
 public:
  WithEngine(EngineShards& shards, Engine& engine)
      : shards_(shards), before_(std::exchange(shards.engine_, &engine)) {}
  ~WithEngine() { shards_.engine_ = before_; }
  WithEngine(const WithEngine&) = delete;
  WithEngine& operator=(const WithEngine&) = delete;

 private:
  EngineShards& shards_;
  Engine* const before_;
};

EngineShards::EngineShards(EngineThread& thread, const Clock& clock, TaskTracer* tracer)
    : thread_(thread),
      clock_(clock),
      tracer_(tracer),
      map_(std::make_shared<const ShardMap>(ShardMap{.shards = 1, .partitioned = {}})) {}

EngineThread::Command EngineShards::command_of(std::shared_ptr<BeanstalkSession> session,
                                               Step step) {
  return [this, session = std::move(session), step](Engine& engine) {
    const WithEngine with(*this, engine);
    (session.get()->*step)();
  };
}

bool EngineShards::post(std::shared_ptr<BeanstalkSession> session, Step step) {
  EngineThread::QueueOf queue = queue_of(session);
  return thread_.post(command_of(std::move(session), step), std::move(queue));
}

void EngineShards::post_end(std::shared_ptr<BeanstalkSession> session, Step step) {
  EngineThread::QueueOf queue = queue_of(session);
  thread_.post_end(command_of(std::move(session), step), std::move(queue));
}

std::optional<JobAnswer> EngineShards::call_now(const JobCall& call) {
  if (may_take_turns(call.command.verb)) return std::nullopt;
  return JobVerbs(clock_, tracer_).run(*engine_, call);
}

void EngineShards::ask(ShardNumber /*shard*/, ShardAsk asked, Answered answered) {
  if (asked.kind == ShardAsk::Kind::all) {
    return answered(ShardAnswer{.answers = {}, .head = {}, .all = all_jobs(engine_->stats())});
  }
  DETENT_CHECK(asked.kind == ShardAsk::Kind::calls);
  auto done = [this, answered = std::move(answered)](Engine& engine,
                                                     std::vector<JobAnswer> answers) mutable {
    const WithEngine with(*this, engine);
    answered(ShardAnswer{.answers = std::move(answers)});
  };
  std::make_shared<JobRun>(thread_, JobVerbs(clock_, tracer_), std::move(asked.calls),
                           std::move(done))
      ->go_on(*engine_);
}

std::optional<Reserved> EngineShards::reserve_now(const LeaseRequest& wanted) {
  return as_reserved(engine_->lease(wanted), clock_, tracer_);
}

JobShards::ReserveNumber EngineShards::reserve(std::shared_ptr<BeanstalkSession> session,
                                               const ReserveOptions& options) {
  milliseconds wait = options.may_wait ? kMaxDelay : milliseconds{0};
  if (options.may_wait && options.until) {
    wait =
        std::max(std::chrono::ceil<milliseconds>(*options.until - clock_.now()), milliseconds{0});
  }
  session->waits();
  const LeaseRequest& wanted = session->wanted();
  return engine_->lease_or_wait(wanted, wait,
                                [session = std::move(session), &clock = clock_,
                                 tracer = tracer_](const Result<std::vector<LeasedTask>>& tasks) {
                                  session->reserved(as_reserved(tasks, clock, tracer));
                                });
}

void EngineShards::end_reserve(ReserveNumber number) { engine_->abandon_wait(number); }

void EngineShards::when_committed(std::shared_ptr<BeanstalkSession> session) {
  engine_->after_commit([session = std::move(session)](const Result<void>& committed) {
    session->committed(committed.has_value());
  });
}

void EngineShards::give_back(std::vector<LeaseToken> leases) {
  if (engine_ == nullptr) return give_back_later(std::move(leases));
  give_back_some(*engine_, std::move(leases));
}

void EngineShards::give_back_some(Engine& engine, std::vector<LeaseToken> leases) {
  // While the store is away, all are given back later.
  const std::size_t most = engine.stopped_by() ? 0 : kGiveBackAtOnce;
  const std::size_t rest = leases.size() - std::min(leases.size(), most);
  release_jobs(engine, std::span(leases).subspan(rest));
  leases.resize(rest);
  if (!leases.empty()) give_back_later(std::move(leases));
}

void EngineShards::give_back_later(std::vector<LeaseToken> leases) {
  const LeaseToken next = leases.back();
  thread_.post_end_of_lease(
      [this, leases = std::move(leases)](Engine& engine) mutable {
        give_back_some(engine, std::move(leases));
      },
      [next](const Engine& engine) { return std::string(engine.queue_of(next)); });
}

}  // namespace detent::server
