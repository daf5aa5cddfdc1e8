#include "runtime/scheduler/keyed_timers.h"

#include <utility>

#include "detent/check.h"

namespace detent::internal {

/// The callable that a keyed timer runs. Owns the user's job.
class KeyedTimers::Run {
 public:
  /// `count`: the number of runs of the timer; 0 means no limit.
  Run(std::shared_ptr<KeyedTimers> timers, std::string key, std::uint64_t generation, KeyedJob job,
      std::uint64_t count)
      : timers_(std::move(timers)),
        key_(std::move(key)),
        generation_(generation),
        job_(std::move(job)),
        count_(count) {}
  ~Run() { timers_->release(key_, generation_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void operator()() {
    if (!timers_->begin_run(key_, generation_)) return;
    const RunningSlot running(*this);
    job_(key_);
  }

 private:
  /// Ends a run, even if the job throws. After the last run, the key counts as running until the
  /// job is destroyed, because the timer is not pending any more.
  class RunningSlot {
   public:
    explicit RunningSlot(Run& run) : run_(run) {}
    ~RunningSlot() {
      if (run_.count_ == 0 || --run_.count_ != 0) {
        run_.timers_->end_run(run_.key_, run_.generation_);
      }
    }
    RunningSlot(const RunningSlot&) = delete;
    RunningSlot& operator=(const RunningSlot&) = delete;

   private:
    Run& run_;
  };

  // Also owned by the scheduler. If `stop` handed a job back, the scheduler may be destroyed before
  // the job.
  const std::shared_ptr<KeyedTimers> timers_;
  const std::string key_;
  const std::uint64_t generation_;
  KeyedJob job_;
  std::uint64_t count_;
};

KeyedResult KeyedTimers::schedule(SchedulerCore& core, std::string_view key, KeyedJob job,
                                  NewTimer timer, SameKey same_key) {
  const bool job_is_callable = static_cast<bool>(job);
  DETENT_CHECK(job_is_callable);
  TimerHandle replaced;  // cancelled without the lock
  std::uint64_t generation = 0;
  bool was_taken = false;
  {
    MutexLock lock(mu_);
    const auto [slot, is_new] = slots_.try_emplace(std::string(key));
    was_taken = !is_new;
    if (is_handed_back(slot->second)) return KeyedResult::refused;
    if (was_taken && same_key == SameKey::keep) return KeyedResult::kept;
    generation = ++generations_;
    replaced = std::exchange(slot->second, Slot{.generation = generation}).timer;
  }
  replaced.cancel();
  // `schedule` may wait for room, so it is called without the lock. During this call another thread
  // can take the slot.
  const bool is_periodic = timer.details != nullptr && timer.details->periodic;
  const std::uint64_t count = is_periodic ? timer.details->periodic->left().count : 1;
  timer.job = [run = std::make_unique<Run>(shared_from_this(), std::string(key), generation,
                                           std::move(job), count)] { (*run)(); };
  TimerHandle handle = core.schedule(std::move(timer));
  if (!handle) return KeyedResult::refused;
  MutexLock lock(mu_);
  const auto slot = find_slot(key, generation);
  // If the slot is gone, another call has cancelled or replaced the timer, or the timer has ended.
  // `handle` then cancels the rest of the timer. This must happen without the lock, because it may
  // destroy a job, and the job takes the lock.
  if (slot != slots_.end()) slot->second.timer = std::move(handle);
  return was_taken ? KeyedResult::replaced : KeyedResult::scheduled;
}

CancelResult KeyedTimers::cancel(std::string_view key) {
  Slot slot;  // declared first: its handle cancels after the lock is free
  MutexLock lock(mu_);
  const auto it = slots_.find(key);
  if (it == slots_.end() || is_handed_back(it->second)) return CancelResult::not_pending;
  slot = std::move(it->second);
  slots_.erase(it);
  return slot.running ? CancelResult::running : CancelResult::cancelled;
}

std::optional<TimerInfo> KeyedTimers::find(std::string_view key) const {
  MutexLock lock(mu_);
  const auto it = slots_.find(key);
  if (it == slots_.end()) return std::nullopt;
  return SchedulerCore::info_of(it->second.timer);
}

KeyedTimers::Slots::iterator KeyedTimers::find_slot(std::string_view key,
                                                    std::uint64_t generation) {
  const auto it = slots_.find(key);
  return it != slots_.end() && it->second.generation == generation ? it : slots_.end();
}

// Whether the timer has ended but its job still exists, because `stop` handed the job back.
bool KeyedTimers::is_handed_back(const Slot& slot) {
  return slot.timer && !SchedulerCore::info_of(slot.timer);
}

bool KeyedTimers::begin_run(std::string_view key, std::uint64_t generation) {
  MutexLock lock(mu_);
  const auto slot = find_slot(key, generation);
  if (slot == slots_.end()) return false;
  slot->second.running = true;
  return true;
}

void KeyedTimers::end_run(std::string_view key, std::uint64_t generation) {
  MutexLock lock(mu_);
  const auto slot = find_slot(key, generation);
  if (slot != slots_.end()) slot->second.running = false;
}

// The timer ends by itself, so its handle must not cancel it.
void KeyedTimers::release(std::string_view key, std::uint64_t generation) {
  MutexLock lock(mu_);
  const auto slot = find_slot(key, generation);
  if (slot == slots_.end()) return;
  slot->second.timer.release();
  slots_.erase(slot);
}

}  // namespace detent::internal
