// The C interface of a wheel (detent/detent.h): a DenseWheel whose timers have ids and data.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "c/guarded.h"
#include "c/timer_numbers.h"
#include "detent/dense_wheel.h"
#include "detent/detent.h"

/// One wheel of a C program. Thread-compatible.
struct detent_wheel {
  explicit detent_wheel(std::uint64_t now) noexcept : timers(now) {}

  /// Returns the number of a pending timer.
  std::optional<std::uint32_t> find(detent_timer_id timer) const noexcept {
    const std::optional<std::uint32_t> number = numbers.find(timer);
    return number && timers.is_pending(*number) ? number : std::nullopt;
  }

  detent::DenseWheel timers;
  detent::c::TimerNumbers<> numbers;
  bool advancing = false;
};

namespace {

detent_status status_of(detent::TryScheduleResult result) noexcept {
  return result == detent::TryScheduleResult::scheduled ? DETENT_OK : DETENT_ERROR_NO_MEMORY;
}

}  // namespace

detent_status detent_wheel_create(uint64_t now, detent_wheel** wheel) noexcept {
  if (wheel == nullptr) return DETENT_ERROR_INVALID;
  return detent::c::guarded([&] {
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded() catches it
    *wheel = new detent_wheel(now);
    return DETENT_OK;
  });
}

detent_status detent_wheel_destroy(detent_wheel* wheel) noexcept {
  if (wheel != nullptr && wheel->advancing) return DETENT_ERROR_INSIDE_CALLBACK;
  delete wheel;
  return DETENT_OK;
}

detent_status detent_wheel_schedule(detent_wheel* wheel, uint64_t deadline, uint64_t data,
                                    detent_timer_id* timer) noexcept {
  if (wheel == nullptr) return DETENT_ERROR_INVALID;
  return detent::c::guarded([&] {
    const std::uint32_t number = wheel->numbers.next();
    const detent_status status = status_of(wheel->timers.try_schedule(number, deadline));
    if (status != DETENT_OK) return status;
    const detent_timer_id id = wheel->numbers.take(data);
    if (timer != nullptr) *timer = id;
    return status;
  });
}

detent_status detent_wheel_reschedule(detent_wheel* wheel, detent_timer_id timer,
                                      uint64_t deadline) noexcept {
  if (wheel == nullptr) return DETENT_ERROR_INVALID;
  const std::optional<std::uint32_t> number = wheel->find(timer);
  if (!number) return DETENT_NOT_PENDING;
  return status_of(wheel->timers.try_schedule(*number, deadline));
}

detent_status detent_wheel_postpone(detent_wheel* wheel, detent_timer_id timer,
                                    uint64_t deadline) noexcept {
  if (wheel == nullptr) return DETENT_ERROR_INVALID;
  const std::optional<std::uint32_t> number = wheel->find(timer);
  if (!number) return DETENT_NOT_PENDING;
  wheel->timers.postpone(*number, deadline);
  return DETENT_OK;
}

detent_status detent_wheel_cancel(detent_wheel* wheel, detent_timer_id timer,
                                  uint64_t* data) noexcept {
  if (wheel == nullptr) return DETENT_ERROR_INVALID;
  const std::optional<std::uint32_t> number = wheel->find(timer);
  if (!number) return DETENT_NOT_PENDING;
  wheel->timers.cancel(*number);
  if (data != nullptr) *data = wheel->numbers.data_of(*number);
  wheel->numbers.give_back(*number);
  return DETENT_OK;
}

detent_status detent_wheel_advance(detent_wheel* wheel, uint64_t now,
                                   detent_wheel_callback callback, void* context, uint64_t limit,
                                   uint64_t* fired) noexcept {
  if (wheel == nullptr || callback == nullptr) return DETENT_ERROR_INVALID;
  if (std::exchange(wheel->advancing, true)) return DETENT_ERROR_INSIDE_CALLBACK;
  const auto on_fire = [&](std::uint32_t number) noexcept {
    const detent_timer_id timer = wheel->numbers.id_of(number);
    const std::uint64_t data = wheel->numbers.data_of(number);
    wheel->numbers.give_back(number);  // the callback may schedule a timer with this number
    callback(context, timer, data);
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max();
  const detent::AdvanceResult result =
      wheel->timers.advance(now, on_fire, static_cast<std::size_t>(std::min(limit, kMost)));
  wheel->advancing = false;
  if (fired != nullptr) *fired = result.fired;
  return result.more ? DETENT_MORE : DETENT_OK;
}

detent_status detent_wheel_next_wakeup(const detent_wheel* wheel, uint64_t* tick) noexcept {
  if (wheel == nullptr || tick == nullptr) return DETENT_ERROR_INVALID;
  const std::optional<detent::Tick> next = wheel->timers.next_wakeup();
  if (!next) return DETENT_NOT_PENDING;
  *tick = *next;
  return DETENT_OK;
}

uint64_t detent_wheel_now(const detent_wheel* wheel) noexcept {
  return wheel == nullptr ? 0 : wheel->timers.now();
}

uint64_t detent_wheel_size(const detent_wheel* wheel) noexcept {
  return wheel == nullptr ? 0 : wheel->timers.size();
}
