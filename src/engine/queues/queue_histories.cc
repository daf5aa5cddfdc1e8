#include "engine/queues/queue_histories.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace detent {
namespace {

using std::chrono::milliseconds;

/// The events of a step, in the order of their counts.
constexpr std::array kShownEvents{&TaskCounters::scheduled, &TaskCounters::fired,
                                  &TaskCounters::leased,    &TaskCounters::completed,
                                  &TaskCounters::failed,    &TaskCounters::leases_expired,
                                  &TaskCounters::dead};
constexpr std::size_t kLeased = 2;

std::int64_t index_at(WallTime at, milliseconds length) noexcept {
  return at.time_since_epoch() / length;
}

}  // namespace

void QueueHistories::Step::add(const Step& more) noexcept {
  for (std::size_t i = 0; i < kEvents; ++i) counts[i] += more.counts[i];
  late_max_ms = std::max(late_max_ms, more.late_max_ms);
  late_total_ms += more.late_total_ms;
}

QueueHistories::Step& QueueHistories::Ring::step_at(WallTime now) {
  // Most events are in the last step, which needs no division.
  if (!steps.empty()) {
    const milliseconds since = now.time_since_epoch() - steps.back().index * length;
    if (since >= milliseconds{0} && since < length) return steps.back();
  }
  const std::int64_t index = index_at(now, length);
  // If the clock was put back, the later steps are in the future.
  while (!steps.empty() && steps.back().index > index) steps.pop_back();
  if (steps.empty() || steps.back().index < index) steps.push_back({.index = index});
  while (steps.front().index < index - most) steps.pop_front();
  return steps.back();
}

void QueueHistories::count(Queue& queue, std::uint64_t TaskCounters::*event) {
  static_assert(kShownEvents.size() == kEvents);
  const auto* const shown = std::ranges::find(kShownEvents, event);
  if (shown == kShownEvents.end()) return;
  History* history = find(queue);
  if (history == nullptr) {
    if (histories_.size() == kMostQueues) return;
    history = &begin(queue);
  }
  const auto i = static_cast<std::size_t>(shown - kShownEvents.begin());
  ++history->fine.step_at(now_).counts.at(i);
  ++history->coarse.step_at(now_).counts.at(i);
}

void QueueHistories::note_lateness(const Queue& queue, milliseconds late) {
  History* const history = find(queue);
  if (history == nullptr) return;
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(late.count(), 0, kMost));
  for (Ring* const ring : {&history->fine, &history->coarse}) {
    Step& step = ring->step_at(now_);
    step.late_max_ms = std::max(step.late_max_ms, ms);
    step.late_total_ms += ms;
  }
}

QueueHistory QueueHistories::of(Queue& queue, const HistoryRange& range) {
  History* known = find(queue);
  if (known == nullptr) known = &begin(queue);
  known->asked = ++last_asked_;
  const Ring& ring = range.is_fine() ? known->fine : known->coarse;
  const auto stride = static_cast<std::int64_t>(range.stride());
  const auto rounded = [&](WallTime at) { return index_at(at, ring.length) / stride * stride; };
  const std::int64_t end = rounded(now_);
  const std::int64_t span = static_cast<std::int64_t>(range.most()) * stride;
  QueueHistory answer{.queue = queue.record.queue, .step = range.step, .since = known->since};
  auto step = ring.steps.begin();
  for (std::int64_t at = std::max(end - span, rounded(known->since)); at < end; at += stride) {
    Step sum;
    for (; step != ring.steps.end() && step->index < at + stride; ++step) {
      if (step->index >= at) sum.add(*step);
    }
    answer.points.push_back(point_of(sum, WallTime{ring.length * (at + stride)}, range.step));
  }
  return answer;
}

QueuePoint QueueHistories::point_of(const Step& step, WallTime at, milliseconds span) {
  QueuePoint point{.at = at,
                   .span = span,
                   .accepted = step.counts[0],
                   .fired = step.counts[1],
                   .leased = step.counts[kLeased],
                   .completed = step.counts[3],
                   .failed = step.counts[4],
                   .expired = step.counts[5],
                   .died = step.counts[6]};
  if (point.leased > 0) {
    const auto mean = static_cast<std::int64_t>(step.late_total_ms / point.leased);
    point.lateness = {.mean = milliseconds{mean}, .max = milliseconds{step.late_max_ms}};
  }
  return point;
}

QueueHistories::History* QueueHistories::find(const Queue& queue) noexcept {
  if (queue.history == 0) return nullptr;
  History& history = histories_[queue.history_index];
  return history.number == queue.history ? &history : nullptr;
}

QueueHistories::History& QueueHistories::begin(Queue& queue) {
  std::size_t index = histories_.size();
  if (index < kMostQueues) {
    histories_.emplace_back();
  } else {
    index = oldest();
    histories_[index] = History{};
  }
  History& history = histories_[index];
  history.number = ++last_number_;
  history.since = now_;
  queue.history = history.number;
  queue.history_index = static_cast<std::uint32_t>(index);
  return history;
}

std::size_t QueueHistories::oldest() const {
  const auto age = [](const History& history) {
    return std::tuple(history.asked, history.last_event());
  };
  return static_cast<std::size_t>(std::ranges::min_element(histories_, {}, age) -
                                  histories_.begin());
}

}  // namespace detent
