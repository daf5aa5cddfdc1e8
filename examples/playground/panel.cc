#include "panel.h"

#include <utility>

namespace playground {
namespace {

constexpr std::size_t kLongestLog = 200;  // events of one command

}  // namespace

void Panel::schedule(TimerNumber timer, Tick deadline) {
  ++counts_.schedules;
  TimerEntry& entry = timers_[timer];
  entry = {.deadline = deadline};
  if (!machine_->schedule(timer, deadline)) {
    entry.state = TimerState::refused;
    log({"refused", machine_->now(), {deadline}});
    return;
  }
  const Places now_places = places();
  const auto found = now_places.find(deadline);
  if (found == now_places.end()) return;
  const auto& [level, slot] = found->second;
  log({level > 0 ? "overflows" : "placed", machine_->now(), {deadline, level, slot}});
}

void Panel::cancel(TimerNumber timer) {
  const auto found = timers_.find(timer);
  if (found == timers_.end()) return;
  TimerEntry& entry = found->second;
  if (entry.state != TimerState::pending) {
    log({"cancel-not-pending", machine_->now(), {entry.deadline}});
    return;
  }
  if (!machine_->can_cancel()) {
    log({"cancel-impossible", machine_->now(), {entry.deadline}});
    return;
  }
  ++counts_.cancels;
  entry.was_cancelled = true;
  const bool is_cancelled = machine_->cancel(timer);
  if (is_cancelled) entry.state = TimerState::cancelled;
  log({is_cancelled ? "cancelled" : "cancel-not-found", machine_->now(), {entry.deadline}});
}

void Panel::advance(Tick end) {
  while (machine_->now() < end) {
    const Places before = places();
    std::vector<FiredTimer> fired;
    counts_.wakeups += machine_->step(end, fired);
    for (const FiredTimer& one : fired) log_fired(one);
    log_moves(before);
  }
}

std::vector<Tick> Panel::pending() const {
  std::vector<Tick> deadlines;
  for (const auto& [timer, entry] : timers_) {
    if (entry.state == TimerState::pending) deadlines.push_back(entry.deadline);
  }
  return deadlines;
}

Panel::Places Panel::places() const {
  Places places;
  const Picture picture = machine_->picture(pending());
  for (std::size_t level = 0; level < picture.levels.size(); ++level) {
    for (const SlotPicture& slot : picture.levels[level].slots) {
      for (const Tick deadline : slot.deadlines) places[deadline] = {level, slot.index};
    }
  }
  return places;
}

void Panel::log(Event event) {
  if (log_.size() < kLongestLog) log_.push_back(std::move(event));
}

void Panel::log_moves(const Places& before) {
  for (const auto& [deadline, place] : places()) {
    const auto was = before.find(deadline);
    if (was == before.end() || was->second == place) continue;
    ++counts_.moves;
    log({place.first < was->second.first ? "cascades" : "moves",
         machine_->now(),
         {deadline, was->second.first, was->second.second, place.first, place.second}});
  }
}

void Panel::log_fired(const FiredTimer& fired) {
  ++counts_.fired;
  TimerEntry& entry = timers_[fired.timer];
  entry.state = TimerState::fired;
  entry.fired_at = fired.at;
  if (fired.at < entry.deadline) {
    log({"fires-early", fired.at, {entry.deadline, entry.deadline - fired.at}});
  } else if (fired.at > entry.deadline) {
    log({"fires-late", fired.at, {entry.deadline, fired.at - entry.deadline}});
  } else {
    log({"fires", fired.at, {entry.deadline}});
  }
  if (entry.was_cancelled) log({"fires-cancelled", fired.at, {entry.deadline}});
}

}  // namespace playground
