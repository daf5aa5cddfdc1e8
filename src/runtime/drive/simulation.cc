#include "detent/simulation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "runtime/scheduler/driver.h"
#include "runtime/scheduler/scheduler_impl.h"

namespace detent {

namespace {

using internal::SchedulerCore;
using internal::Step;
using std::chrono::nanoseconds;

/// Keeps jobs until the simulation runs them.
class SimulatedExecutor final : public Executor {
 public:
  SimulatedExecutor(const Clock& clock, Rng& rng, nanoseconds delay)
      : clock_(clock), rng_(rng), delay_(delay) {
    DETENT_CHECK(delay >= nanoseconds::zero());
  }

  void execute(Job job) override {
    const nanoseconds wait{
        static_cast<nanoseconds::rep>(rng_.unit() * static_cast<double>(delay_.count()))};
    jobs_.push_back(
        {.ready_at = internal::saturating_add(clock_.now(), wait), .job = std::move(job)});
  }

  std::size_t ready_count() const {
    return static_cast<std::size_t>(std::count_if(
        jobs_.begin(), jobs_.end(), [this](const Waiting& w) { return is_ready(w); }));
  }

  /// Runs the n-th ready job. Requires: n < ready_count().
  void run(std::size_t n) {
    const auto chosen = std::find_if(jobs_.begin(), jobs_.end(),
                                     [&](const Waiting& w) { return is_ready(w) && n-- == 0; });
    Job job = std::move(chosen->job);
    jobs_.erase(chosen);
    job();
  }

  std::optional<MonotonicTime> next_ready() const {
    const auto first = std::min_element(
        jobs_.begin(), jobs_.end(),
        [](const Waiting& a, const Waiting& b) { return a.ready_at < b.ready_at; });
    if (first == jobs_.end()) return std::nullopt;
    return first->ready_at;
  }

 private:
  struct Waiting {
    MonotonicTime ready_at;
    Job job;
  };
  bool is_ready(const Waiting& waiting) const { return waiting.ready_at <= clock_.now(); }

  const Clock& clock_;
  Rng& rng_;
  const nanoseconds delay_;
  std::vector<Waiting> jobs_;
};

}  // namespace

/// Confined to its thread.
class Simulation::Impl final : public internal::Driver {
 public:
  Impl(std::uint64_t seed, SimulationOptions options)
      : rng_(seed),
        clock_(options.start),
        in_order_(options.scheduler.order == DueOrder::by_schedule),
        executor_(clock_, rng_, options.job_delay),
        scheduler_(make_scheduler(std::move(options.scheduler))) {}

  ~Impl() override { scheduler_.stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Scheduler& scheduler() noexcept { return scheduler_; }
  ManualClock& clock() noexcept { return clock_; }
  Executor& executor() noexcept { return executor_; }

  // Makes the next turn call the core, whatever its last step returned.
  void wake() noexcept override { until_.reset(), asleep_ = false; }
  void await_end() override {
    while (!ended_) turn(MonotonicTime::max());
    // The scheduler waits for none of the remaining jobs, so run only the ready ones and keep the
    // time.
    while (executor_.ready_count() != 0) turn(clock_.now());
  }

  void step_wall(nanoseconds delta) {
    clock_.step_wall(delta);
    wake();
  }

  void run_until(MonotonicTime end) {
    DETENT_CHECK(!inside_run_);
    inside_run_ = true;
    while (turn(end)) {
    }
    inside_run_ = false;
    if (clock_.now() < end) clock_.advance(end - clock_.now());
  }

 private:
  Scheduler make_scheduler(SchedulerOptions options) {
    options.clock = &clock_;
    options.executor = &executor_;
    options.seed = rng_.next();
    options.shards = 1;
    auto impl = std::make_unique<internal::SchedulerImpl>(
        std::move(options), *this, SchedulerCore::Waiting::never, internal::HomeProcess::any());
    core_ = &impl->core();
    return Scheduler(std::move(impl));
  }

  SchedulerCore& core() noexcept { return *core_; }

  /// Whether the scheduler must make a step. A wake-up at MonotonicTime::max() never comes.
  bool needs_step() const {
    if (ended_ || !asleep_) return !ended_;
    return until_ && *until_ <= clock_.now() && *until_ != MonotonicTime::max();
  }

  void step() {
    const Step step = core().step();
    ended_ = step.next == Step::Next::end;
    asleep_ = step.next == Step::Next::sleep;
    until_ = step.until;
  }

  /// Does one piece of work that is possible now, or moves the time forward, at most to `end`.
  /// Returns false if nothing is left to do until `end`.
  bool turn(MonotonicTime end) {
    const std::size_t ready = executor_.ready_count();
    const std::size_t choices = ready + (needs_step() ? 1 : 0);
    if (choices != 0) {
      const std::size_t choice = rng_.below(static_cast<std::uint32_t>(choices));
      choice < ready ? executor_.run(in_order_ ? 0 : choice) : step();
      return true;
    }
    std::optional<MonotonicTime> next = executor_.next_ready();
    if (until_ && !ended_) next = std::min(*until_, next.value_or(MonotonicTime::max()));
    if (!next || *next > end || *next == MonotonicTime::max()) return false;
    clock_.advance(*next - clock_.now());
    return true;
  }

  Rng rng_;
  ManualClock clock_;
  const bool in_order_;  // jobs run in the order of their hand-out by the scheduler
  SimulatedExecutor executor_;
  SchedulerCore* core_ = nullptr;  // of scheduler_
  bool inside_run_ = false;
  // The result of the last step, until the scheduler is woken.
  bool asleep_ = false;
  bool ended_ = false;
  std::optional<MonotonicTime> until_;
  Scheduler scheduler_;
};

Simulation::Simulation(std::uint64_t seed, SimulationOptions options)
    : impl_(std::make_unique<Impl>(seed, std::move(options))) {}
Simulation::~Simulation() = default;

Scheduler& Simulation::scheduler() noexcept { return impl_->scheduler(); }
ManualClock& Simulation::clock() noexcept { return impl_->clock(); }
Executor& Simulation::executor() noexcept { return impl_->executor(); }

void Simulation::run_for(nanoseconds duration) {
  DETENT_CHECK(duration >= nanoseconds::zero());
  impl_->run_until(internal::saturating_add(impl_->clock().now(), duration));
}

void Simulation::suspend(nanoseconds duration) {
  DETENT_CHECK(duration >= nanoseconds::zero());
  impl_->step_wall(duration);
}

void Simulation::step_wall(nanoseconds delta) { impl_->step_wall(delta); }

}  // namespace detent
