// The C interface of a scheduler (detent/detent.h): a Scheduler whose jobs are functions and user
// pointers.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "c/guarded.h"
#include "detent/detent.h"
#include "detent/scheduler.h"

/// One scheduler of a C program. Thread-safe.
struct detent_scheduler {
  detent::Scheduler scheduler;
};

/// A handle of a C program. Thread-compatible.
struct detent_timer {
  detent::TimerHandle handle;
};

namespace {

/// The scheduler whose job this thread runs; otherwise null.
thread_local const detent_scheduler* inside = nullptr;

/// A user pointer that is released exactly once. Movable.
class User {
 public:
  User(void* user, detent_release release) noexcept : user_(user), release_(release) {}
  User(User&& other) noexcept
      : user_(other.user_), release_(std::exchange(other.release_, nullptr)) {}
  User& operator=(User&&) = delete;
  ~User() {
    if (release_ != nullptr) release_(user_);
  }

  void* get() const noexcept { return user_; }
  bool is_released_by_caller() const noexcept { return release_ == nullptr; }

 private:
  void* user_;
  detent_release release_;
};

void run(const detent_scheduler* scheduler, detent_job job, void* user) noexcept {
  const detent_scheduler* const outer = std::exchange(inside, scheduler);
  job(user);
  inside = outer;
}

/// Without a release function the job needs no allocation.
detent::Job make_job(const detent_scheduler* scheduler, detent_job job, User user) {
  if (user.is_released_by_caller()) {
    return [scheduler, job, pointer = user.get()] { run(scheduler, job, pointer); };
  }
  return [scheduler, job, user = std::move(user)] { run(scheduler, job, user.get()); };
}

detent_status status_of(detent::CancelResult result) noexcept {
  switch (result) {
    case detent::CancelResult::cancelled:
      return DETENT_OK;
    case detent::CancelResult::running:
      return DETENT_RUNNING;
    case detent::CancelResult::not_pending:
      break;
  }
  return DETENT_NOT_PENDING;
}

/// Returns no value for options that this version does not know. The only version so far has one
/// size.
std::optional<detent::SchedulerOptions> read(const detent_scheduler_options* options) {
  detent::SchedulerOptions result;
  if (options == nullptr) return result;
  if (options->size != sizeof(detent_scheduler_options) || options->resolution_ns < 0) return {};
  if (options->resolution_ns > 0) {
    result.resolution = std::chrono::nanoseconds(options->resolution_ns);
  }
  if (options->capacity > 0) result.capacity = static_cast<std::size_t>(options->capacity);
  return result;
}

}  // namespace

detent_status detent_scheduler_create(const detent_scheduler_options* options,
                                      detent_scheduler** scheduler) noexcept {
  if (scheduler == nullptr) return DETENT_ERROR_INVALID;
  return detent::c::guarded([&]() -> detent_status {
    std::optional<detent::SchedulerOptions> given = read(options);
    if (!given) return DETENT_ERROR_INVALID;
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded() catches it
    *scheduler = new detent_scheduler{detent::Scheduler(*std::move(given))};
    return DETENT_OK;
  });
}

detent_status detent_scheduler_destroy(detent_scheduler* scheduler) noexcept {
  if (scheduler != nullptr && inside == scheduler) return DETENT_ERROR_INSIDE_CALLBACK;
  delete scheduler;
  return DETENT_OK;
}

detent_status detent_scheduler_schedule_after(detent_scheduler* scheduler, int64_t delay_ns,
                                              detent_job job, void* user, detent_release release,
                                              detent_timer** timer) noexcept {
  User owned(user, release);
  if (scheduler == nullptr || job == nullptr) return DETENT_ERROR_INVALID;
  return detent::c::guarded([&]() -> detent_status {
    auto made = timer == nullptr ? nullptr : std::make_unique<detent_timer>();
    detent::TimerHandle handle = scheduler->scheduler.schedule_after(
        std::chrono::nanoseconds(delay_ns), make_job(scheduler, job, std::move(owned)));
    if (!handle) {
      return scheduler->scheduler.is_running() ? DETENT_ERROR_FULL : DETENT_ERROR_STOPPED;
    }
    if (made == nullptr) {
      handle.release();
      return DETENT_OK;
    }
    made->handle = std::move(handle);
    *timer = made.release();
    return DETENT_OK;
  });
}

detent_status detent_timer_cancel(detent_timer* timer) noexcept {
  return timer == nullptr ? DETENT_ERROR_INVALID : status_of(timer->handle.cancel());
}

detent_status detent_timer_cancel_and_wait(detent_timer* timer) noexcept {
  return timer == nullptr ? DETENT_ERROR_INVALID : status_of(timer->handle.cancel_and_wait());
}

detent_status detent_timer_reschedule_after(detent_timer* timer, int64_t delay_ns) noexcept {
  if (timer == nullptr) return DETENT_ERROR_INVALID;
  const bool moved = timer->handle.expires_after(std::chrono::nanoseconds(delay_ns));
  return moved ? DETENT_OK : DETENT_NOT_PENDING;
}

void detent_timer_free(detent_timer* timer) noexcept {
  if (timer == nullptr) return;
  timer->handle.release();
  delete timer;
}

detent_status detent_scheduler_stop(detent_scheduler* scheduler, int32_t drain,
                                    int64_t limit_ns) noexcept {
  if (scheduler == nullptr || drain < DETENT_DROP || drain > DETENT_RUN_PENDING) {
    return DETENT_ERROR_INVALID;
  }
  return detent::c::guarded([&]() -> detent_status {
    detent::Drain how = detent::Drain::drop;
    if (drain == DETENT_RUN_DUE) how = detent::Drain::run_due;
    if (drain == DETENT_RUN_PENDING) how = detent::Drain::run_pending;
    static_cast<void>(scheduler->scheduler.stop(how, std::chrono::nanoseconds(limit_ns)));
    return DETENT_OK;
  });
}
