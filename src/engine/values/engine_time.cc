#include "engine/values/engine_time.h"

#include <algorithm>
#include <variant>

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Two results of read_offset() differ by less than this, unless the wall clock was stepped between
/// them.
constexpr nanoseconds kReadingBlur = std::chrono::microseconds{500};
constexpr int kReadings = 5;

/// Instants before 1970 are tick 0.
Tick tick_of(milliseconds since_1970) noexcept {
  return since_1970.count() < 0 ? 0 : static_cast<Tick>(since_1970.count());
}

}  // namespace

EngineTime::EngineTime(const Clock& clock) : clock_(clock), offset_(read_offset()) {}

nanoseconds EngineTime::read_offset() const noexcept {
  // Each try reads the wall clock between two readings of the monotonic clock. The try with the
  // closest two readings is the most exact.
  nanoseconds best_spread = nanoseconds::max();
  nanoseconds offset{0};
  for (int i = 0; i < kReadings && best_spread > nanoseconds{1'000}; ++i) {
    const MonotonicTime before = clock_.now();
    const WallInstant wall = clock_.wall_now();
    const MonotonicTime after = clock_.now();
    if (after - before >= best_spread) continue;
    best_spread = after - before;
    offset = wall.time_since_epoch() - (before + best_spread / 2).time_since_epoch();
  }
  return offset;
}

nanoseconds EngineTime::steady() const noexcept {
  return clock_.now().time_since_epoch() + offset_;
}

Tick EngineTime::now() const noexcept {
  return tick_of(std::chrono::floor<milliseconds>(steady()));
}

WallTime EngineTime::wall_now() const noexcept {
  return WallTime{std::chrono::floor<milliseconds>(steady() + shift_)};
}

Tick EngineTime::tick_after(milliseconds delay) const noexcept {
  return tick_of(std::chrono::ceil<milliseconds>(steady()) + delay);
}

WallTime EngineTime::wall_after(milliseconds delay) const noexcept {
  return WallTime{std::chrono::ceil<milliseconds>(steady() + shift_) + delay};
}

Tick EngineTime::tick_at(WallTime at) const noexcept {
  // This is computed in milliseconds. In nanoseconds, an instant in the year 9999 would overflow.
  return tick_of(at.time_since_epoch() - std::chrono::floor<milliseconds>(shift_));
}

Deadline EngineTime::deadline_of(const Due& due) const noexcept {
  if (const auto* delay = std::get_if<milliseconds>(&due)) {
    // The task is due at this tick, not at the next tick, so that the next request can get it.
    if (*delay == milliseconds{0}) return {.due_at = wall_now(), .tick = now()};
    return {.due_at = wall_after(*delay), .tick = tick_after(*delay)};
  }
  Deadline deadline = dated(std::get<WallTime>(due));
  deadline.tick = std::max(deadline.tick, now());
  return deadline;
}

Deadline EngineTime::dated(WallTime due_at) const noexcept {
  return {.due_at = due_at, .tick = tick_at(due_at), .follows_wall = true};
}

MonotonicTime EngineTime::when(Tick tick) const noexcept {
  // 64-bit nanoseconds since 1970 end in 2262. Ticks are limited to ten years before that, because
  // `offset_` is negative if the wall clock shows less than 1970 plus the uptime.
  constexpr milliseconds kRoom = std::chrono::years{10};
  constexpr Tick kLatest = static_cast<Tick>(nanoseconds::max() / milliseconds{1} - kRoom.count());
  const nanoseconds since_1970 = milliseconds{static_cast<std::int64_t>(std::min(tick, kLatest))};
  return MonotonicTime{since_1970 - offset_};
}

bool EngineTime::notice_step() noexcept {
  const nanoseconds shift = read_offset() - offset_;
  if (std::chrono::abs(shift - shift_) < kReadingBlur) return false;
  shift_ = shift;
  return true;
}

}  // namespace detent
