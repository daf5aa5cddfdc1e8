#include "panel.h"

namespace playground {
namespace {

constexpr std::size_t kLongestLog = 200;  // sentences of one command

std::string place_text(const std::pair<std::size_t, std::size_t>& place) {
  return "level " + std::to_string(place.first) + ", slot " + std::to_string(place.second);
}

std::string ticks(Tick count) { return design::number(count) + (count == 1 ? " tick" : " ticks"); }

}  // namespace

void Panel::schedule(TimerNumber timer, Tick deadline) {
  ++counts_.schedules;
  TimerEntry& entry = timers_[timer];
  entry = {.deadline = deadline};
  const std::string name = design::number(deadline);
  if (!machine_->schedule(timer, deadline)) {
    entry.state = TimerState::refused;
    log(name + " is refused: it is beyond the span of this wheel");
    return;
  }
  const Places now_places = places();
  const auto place = now_places.find(deadline);
  if (place == now_places.end()) return;
  log(name + " goes to " + place_text(place->second) +
      (place->second.first > 0 ? ": it overflows the finer levels" : ""));
}

void Panel::cancel(TimerNumber timer) {
  const auto found = timers_.find(timer);
  if (found == timers_.end()) return;
  TimerEntry& entry = found->second;
  if (entry.state != TimerState::pending) {
    log("cancel " + design::number(entry.deadline) + ": it is not pending");
    return;
  }
  if (!machine_->can_cancel()) {
    log("cancel " + design::number(entry.deadline) + ": this wheel cannot cancel");
    return;
  }
  ++counts_.cancels;
  entry.was_cancelled = true;
  const bool is_cancelled = machine_->cancel(timer);
  if (is_cancelled) entry.state = TimerState::cancelled;
  log("cancel " + design::number(entry.deadline) + ": " +
      (is_cancelled ? "cancelled" : "the queue does not find it"));
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

void Panel::log(const std::string& sentence) {
  if (log_.size() < kLongestLog) {
    log_.push_back("tick " + design::number(machine_->now()) + ": " + sentence);
  }
}

void Panel::log_moves(const Places& before) {
  for (const auto& [deadline, place] : places()) {
    const auto was = before.find(deadline);
    if (was == before.end() || was->second == place) continue;
    ++counts_.moves;
    log(design::number(deadline) + " moves from " + place_text(was->second) + " to " +
        place_text(place));
  }
}

void Panel::log_fired(const FiredTimer& fired) {
  ++counts_.fired;
  TimerEntry& entry = timers_[fired.timer];
  entry.state = TimerState::fired;
  entry.fired_at = fired.at;
  const std::string name = design::number(entry.deadline);
  std::string how = "fires";
  if (fired.at < entry.deadline) {
    how += " " + ticks(entry.deadline - fired.at) + " early";
  } else if (fired.at > entry.deadline) {
    how += " " + ticks(fired.at - entry.deadline) + " late";
  }
  if (entry.was_cancelled) how += ", although it was cancelled";
  if (log_.size() < kLongestLog) {
    log_.push_back("tick " + design::number(fired.at) + ": " + name + " " + how);
  }
}

}  // namespace playground
