#include "detent/internal/sleep_timer.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "detent/timer_handle.h"

namespace detent::internal {

/// The state that `start`, the timer's job and the stop callback share. The job may run as soon as
/// the timer is scheduled, while `start` is still storing the handle and registering the callback.
/// `start` and the job do not wait for each other, and the last owner destroys the state.
class SleepTimer::State {
 public:
  explicit State(Sleeper& sleeper) noexcept : sleeper_(sleeper) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // The callback uses the timer, so it is destroyed first. This waits for a running callback. The
  // timer has already ended, because its job owned this state.
  ~State() {
    on_stop_.reset();
    timer_.release();
  }

  /// The second half of `start`. Uses nothing except this state.
  bool fall_asleep(TimerHandle timer, std::stop_token stop) noexcept {
    timer_ = std::move(timer);
    if (stop.stop_possible()) on_stop_.emplace(std::move(stop), Stop(*this));
    Phase before = Phase::starting;
    phase_.compare_exchange_strong(before, Phase::asleep);
    return before != Phase::dropped;
  }

  /// Called when the timer's job runs.
  void on_due() {
    const bool slept = !stopped_;
    phase_ = Phase::over;
    sleeper_.wake(slept);
  }

  /// Called when the job is destroyed before it ran.
  void on_dropped() {
    if (phase_.exchange(Phase::dropped) == Phase::asleep) sleeper_.wake(false);
  }

  /// Called when the sleeper is destroyed.
  void give_up() noexcept {
    if (phase_.exchange(Phase::over) != Phase::asleep) return;
    on_stop_.reset();
    timer_.cancel();
  }

 private:
  enum class Phase : std::uint8_t {
    starting,  // `start` has not finished; the timer may be scheduled
    asleep,    // `start` has finished, and the timer is pending
    over,      // the job ran, or the sleeper gave up: nothing to cancel
    dropped,   // the job was destroyed; `start` reports this if it still runs
  };

  class Stop {
   public:
    explicit Stop(State& state) noexcept : state_(state) {}
    void operator()() const noexcept {
      state_.stopped_ = true;
      state_.timer_.expires_after(std::chrono::nanoseconds::zero());
    }

   private:
    State& state_;
  };

  // Constant after construction.
  Sleeper& sleeper_;

  // Written by `start`, the job and give_up. The code that changes it decides which code wakes
  // the sleeper. Not a mutex, because nothing else changes together with it.
  std::atomic<Phase> phase_ = Phase::starting;
  // Written by the stop callback before it moves the timer, read by the job.
  std::atomic<bool> stopped_ = false;

  // Written by `start`, then used by the callback, by give_up, and by the destructor of the last
  // owner.
  TimerHandle timer_;
  std::optional<std::stop_callback<Stop>> on_stop_;
};

/// The job of the timer. It also reports when it is destroyed without a run.
class SleepTimer::WakingJob {
 public:
  explicit WakingJob(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  WakingJob(WakingJob&&) noexcept = default;
  WakingJob& operator=(WakingJob&&) = delete;
  ~WakingJob() {
    if (state_ != nullptr) state_->on_dropped();
  }

  void operator()() { std::exchange(state_, nullptr)->on_due(); }

 private:
  std::shared_ptr<State> state_;
};

namespace {

TimerHandle schedule(Scheduler& scheduler, std::chrono::nanoseconds delay, Job job) {
  return scheduler.schedule_after(delay, std::move(job));
}

template <class TimePoint>
TimerHandle schedule(Scheduler& scheduler, TimePoint until, Job job) {
  return scheduler.schedule_at(until, std::move(job));
}

}  // namespace

SleepTimer::~SleepTimer() {
  if (state_ != nullptr) state_->give_up();
}

bool SleepTimer::start(Scheduler& scheduler, WakeTime until, std::stop_token stop,
                       Sleeper& sleeper) noexcept {
  const auto state = std::make_shared<State>(sleeper);
  state_ = state;
  Job job = WakingJob(state);
  // From here on, the sleeper may wake on another thread and destroy this object.
  TimerHandle timer =
      std::visit([&](auto instant) { return schedule(scheduler, instant, std::move(job)); }, until);
  return state->fall_asleep(std::move(timer), std::move(stop));
}

}  // namespace detent::internal
