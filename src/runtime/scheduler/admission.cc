#include "runtime/scheduler/admission.h"

#include "detent/check.h"

namespace detent::internal {

Admission::Admission(std::size_t capacity, Watch watch)
    : capacity_(capacity),
      counts_(watch == Watch::yes || capacity != std::numeric_limits<std::size_t>::max()) {
  DETENT_CHECK(capacity >= 1);
}

std::optional<std::size_t> Admission::try_admit() noexcept {
  MutexLock lock(mu_);
  if (count_ == capacity_ || closed_) return std::nullopt;
  return ++count_;
}

std::optional<std::size_t> Admission::await_room() noexcept {
  MutexLock lock(mu_);
  while (count_ == capacity_ && !closed_) changed_.wait(mu_);
  if (closed_) return std::nullopt;
  return ++count_;
}

void Admission::give_back(std::size_t count) noexcept {
  MutexLock lock(mu_);
  DETENT_CHECK(count <= count_);
  count_ -= count;
  changed_.notify_all();
}

bool Admission::wait_in_caller(Clock& clock, MonotonicTime due) noexcept {
  Doorbell bell;
  {
    MutexLock lock(mu_);
    if (closed_) return false;
    ++callers_;
    bells_.push_back(&bell);
  }
  const bool rung = clock.wait(bell, due);  // only close() rings
  {
    MutexLock lock(mu_);
    std::erase(bells_, &bell);
  }
  if (rung) leave_caller();
  return !rung;
}

void Admission::leave_caller() noexcept {
  MutexLock lock(mu_);
  --callers_;
  changed_.notify_all();
}

void Admission::close() noexcept {
  MutexLock lock(mu_);
  closed_ = true;
  for (Doorbell* const bell : bells_) bell->ring();
  changed_.notify_all();
}

bool Admission::is_closed() const noexcept {
  MutexLock lock(mu_);
  return closed_;
}

void Admission::await_callers() noexcept {
  MutexLock lock(mu_);
  while (callers_ != 0) changed_.wait(mu_);
}

}  // namespace detent::internal
