#include "detent/timer_handle.h"

#include "detent/timer_context.h"
#include "runtime/scheduler/timer_owner.h"

namespace detent {

using internal::Share;

// Cancelling destroys the job, and the destructor of a captured object may use this handle. So the
// handle is empty during the call.
void TimerHandle::give_up() noexcept {
  std::exchange(owner_, nullptr)->cancel(id_, Share::give_back);
}

CancelResult TimerHandle::cancel() noexcept {
  if (owner_ == nullptr) return CancelResult::not_pending;
  internal::TimerOwner* const owner = std::exchange(owner_, nullptr);
  const internal::TimerId id = std::exchange(id_, {});
  const CancelResult result = owner->cancel(id, Share::give_back_unless_running);
  if (result != CancelResult::running) return result;
  owner_ = owner;
  id_ = id;
  return result;
}

CancelResult TimerHandle::cancel_and_wait() noexcept {
  return owner_ == nullptr ? CancelResult::not_pending : owner_->cancel_and_wait(id_);
}

bool TimerHandle::move_to(std::chrono::nanoseconds delay) noexcept {
  return owner_ != nullptr && owner_->move_by(id_, delay);
}

bool TimerHandle::expires_at(MonotonicTime deadline) noexcept {
  return owner_ != nullptr && owner_->move_to(id_, deadline);
}

bool TimerHandle::expires_at(WallTime due) noexcept {
  return owner_ != nullptr && owner_->move_to(id_, due);
}

bool TimerHandle::is_pending() const noexcept {
  return owner_ != nullptr && owner_->is_pending(id_);
}

void TimerHandle::release() noexcept {
  if (owner_ == nullptr) return;
  std::exchange(owner_, nullptr)->take_share();
  id_ = {};
}

// ---- TimerContext -------------------------------------------------------------------------------

TimerContext::TimerContext(const void* called) noexcept
    : TimerContext(internal::InsideJob::run_that_calls(called)) {}

void TimerContext::stop() noexcept {
  if (owner_ != nullptr) owner_->cancel(id_, Share::keep);
}

}  // namespace detent
