#include "engine/window/task_timers.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "detent/check.h"
#include "engine/queues/queue.h"

namespace detent {

/// A new crowd gets a new wheel. If all wheels exist, it gets the wheel with the fewest timers,
/// except the common wheel.
TaskTimers::Wheel TaskTimers::wheel_for(Queue& queue) {
  if (queue.wheel == kCommon && queue.loaded >= crowd_) {
    if (wheels_.size() < kWheels) wheels_.emplace_back(wheels_.front().now());
    const auto emptiest =
        std::ranges::min_element(wheels_.begin() + 1, wheels_.end(), {}, &DenseWheel::size);
    queue.wheel = static_cast<Wheel>(emptiest - wheels_.begin());
  } else if (queue.wheel != kCommon && queue.loaded < std::min<std::size_t>(2, crowd_)) {
    queue.wheel = kCommon;  // none of its other tasks has a timer in that wheel
  }
  DETENT_CHECK(queue.wheel < wheels_.size());
  return queue.wheel;
}

void TaskTimers::set(LoadedTask& task, Tick tick) {
  const Wheel wheel = wheel_for(*task.queue);
  if (wheel != task.wheel) cancel(task);
  task.wheel = wheel;
  wheels_[wheel].schedule(task.index, tick);
}

std::vector<TaskTimers::Wheel> TaskTimers::go_to(Tick now) {
  std::vector<Wheel> due;
  for (std::size_t i = 0; i < wheels_.size(); ++i) {
    const std::optional<Tick> next = wheels_[i].next_wakeup();
    if (next && *next <= now) {
      due.push_back(static_cast<Wheel>(i));
    } else {
      wheels_[i].advance(now, [](std::uint32_t) { DETENT_CHECK(false); });
    }
  }
  std::ranges::sort(
      due, {}, [this](Wheel wheel) { return std::pair(wheel != kCommon, wheels_[wheel].size()); });
  return due;
}

std::optional<Tick> TaskTimers::next_wakeup() const noexcept {
  std::optional<Tick> next;
  for (const DenseWheel& wheel : wheels_) {
    const std::optional<Tick> of_wheel = wheel.next_wakeup();
    if (of_wheel && (!next || *of_wheel < *next)) next = of_wheel;
  }
  return next;
}

std::size_t TaskTimers::size() const noexcept {
  const auto add = [](std::size_t sum, const DenseWheel& wheel) { return sum + wheel.size(); };
  return std::accumulate(wheels_.begin(), wheels_.end(), std::size_t{0}, add);
}

std::vector<WheelSlot> TaskTimers::slots() const {
  std::vector<WheelSlot> all;
  for (const DenseWheel& wheel : wheels_) {
    wheel.for_each_slot([&all](const WheelSlot& slot) { all.push_back(slot); });
  }
  std::ranges::sort(all, {},
                    [](const WheelSlot& slot) { return std::tuple(slot.first, slot.level); });
  std::vector<WheelSlot> merged;
  for (const WheelSlot& slot : all) {
    const bool is_next =
        merged.empty() || merged.back().first != slot.first || merged.back().level != slot.level;
    if (is_next) {
      merged.push_back(slot);
    } else {
      merged.back().count += slot.count;
    }
  }
  return merged;
}

void TaskTimers::check_invariants() const noexcept {
  for (const DenseWheel& wheel : wheels_) wheel.check_invariants();
}

}  // namespace detent
