#include "server/watch/event_hub.h"

#include <algorithm>
#include <utility>

#include "protocol/json/stats_point.h"
#include "server/watch/change_collector.h"

namespace detent::server {
namespace {

std::uint64_t run_number(const Clock& clock) {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::milliseconds>(clock.wall_now()).time_since_epoch().count());
}

}  // namespace

EventHub::EventHub(AskFigures ask, ChangeSource& changes, Clock& clock, EventHubOptions options)
    : EventHub(std::move(ask), nullptr, &changes, clock, options) {}

EventHub::EventHub(EngineThread& engine, ChangeFeed& feed, Clock& clock, EventHubOptions options)
    : EventHub(figures_of(engine), std::make_unique<ChangeCollector>(run_number(clock), feed),
               nullptr, clock, options) {}

EventHub::EventHub(AskFigures ask, std::unique_ptr<ChangeSource> own, ChangeSource* changes,
                   Clock& clock, EventHubOptions options)
    : ask_(std::move(ask)),
      own_changes_(std::move(own)),
      changes_(changes != nullptr ? *changes : *own_changes_),
      clock_(clock),
      options_(options),
      figures_(std::make_shared<Figures>()),
      next_question_(clock.now()),
      thread_([this] { run(); }) {}

EventHub::~EventHub() { stop(); }

// ---- from any thread ----------------------------------------------------------------------------

Result<EventHub::Number> EventHub::count_in(const std::string& name) {
  const MutexLock lock(mutex_);
  if (is_ending_) return Error{ErrorCode::unavailable, "the server is stopping", ""};
  if (open_.size() >= options_.max_streams) {
    return Error{ErrorCode::unavailable,
                 "limit of open event streams reached: " + std::to_string(options_.max_streams),
                 ""};
  }
  const auto is_own = [&name](const auto& entry) { return entry.second == name; };
  if (std::ranges::count_if(open_, is_own) >=
      static_cast<std::ptrdiff_t>(options_.max_streams_of_one)) {
    return Error{ErrorCode::unavailable,
                 "limit of open event streams of " + name +
                     " reached: " + std::to_string(options_.max_streams_of_one),
                 ""};
  }
  open_.emplace(++last_number_, name);
  return last_number_;
}

void EventHub::count_out(Number number) {
  const MutexLock lock(mutex_);
  open_.erase(number);
}

Result<void> EventHub::open(const HttpReply& reply, Watcher watcher, EventFilter filter,
                            std::string last_id) {
  ASSIGN_OR_RETURN(const Number number, count_in(watcher.name));
  const net::ResponseStream stream =
      reply.stream({.status = 200,
                    .content_type = "text/event-stream",
                    .body = "",
                    .headers = {{"cache-control", "no-store"}, {"x-accel-buffering", "no"}}});
  bool is_too_late = false;
  {
    const MutexLock lock(mutex_);
    is_too_late = is_ending_;  // since it was looked at above; the thread takes no more
    if (!is_too_late) {
      news_.arrivals.push_back({.number = number,
                                .stream = stream,
                                .may_watch = std::move(watcher.may_watch),
                                .filter = std::move(filter),
                                .last_id = std::move(last_id)});
    }
  }
  if (is_too_late) stream.end();
  changes_.bell().ring();
  stream.on_gone([this, number] {  // runs immediately for a closed stream, so it comes after the
                                   // arrival
    count_out(number);
    {
      const MutexLock lock(mutex_);
      news_.gone.push_back(number);
    }
    changes_.bell().ring();
  });
  return ok();
}

std::vector<json::StatsPoint> EventHub::history(const HistoryRange& range) const {
  const MutexLock lock(mutex_);
  return history_.points(range);
}

std::size_t EventHub::streams() const {
  const MutexLock lock(mutex_);
  return open_.size();
}

void EventHub::check_again() {
  {
    const MutexLock lock(mutex_);
    news_.must_check = true;
  }
  changes_.bell().ring();
}

void EventHub::end_streams() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
  }
  changes_.bell().ring();
}

void EventHub::stop() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    is_stopping_ = true;
  }
  changes_.bell().ring();
  const MutexLock lock(joining_);
  thread_.join();
}

// ---- the thread ---------------------------------------------------------------------------------

void EventHub::run() {
  for (;;) {
    News news = take_news();
    const MonotonicTime now = clock_.now();
    for (Arrival& arrival : news.arrivals) begin(std::move(arrival));
    for (const Number number : news.gone) listeners_.erase(number);
    if (news.must_check) end_those_who_may_not();
    if (news.is_ending) end_all();
    if (news.is_stopping) break;
    watch_or_not(now);
    next_collection_ = changes_.collect(now);
    take_figures(now);
    tell_changes(now);
    ask_for_figures(now);
    clock_.wait(changes_.bell(), next_wakeup(now));
  }
  changes_.stop();
}

void EventHub::end_all() {
  for (const auto& [number, listener] : listeners_) listener.stream.end();
  listeners_.clear();
}

EventHub::News EventHub::take_news() {
  const MutexLock lock(mutex_);
  news_.is_ending = is_ending_;
  news_.is_stopping = is_stopping_;
  return std::exchange(news_, {});
}

void EventHub::end_those_who_may_not() {
  std::erase_if(listeners_, [this](const auto& entry) {
    if (entry.second.may_watch()) return false;
    entry.second.stream.end();
    count_out(entry.first);
    return true;
  });
}

void EventHub::begin(Arrival arrival) {
  if (!arrival.may_watch()) {  // check again: the tokens may have been reloaded since the request
    arrival.stream.end();
    return count_out(arrival.number);
  }
  // Changes after the start of the stream are reported.
  if (arrival.filter.tasks && !std::exchange(is_watching_, true)) changes_.watch();
  std::string start;
  ChangeReader reader(changes_.log(), std::move(arrival.filter), arrival.last_id, start);
  const MonotonicTime now = clock_.now();
  if (reader.filter().stats) {
    // An answer that is on its way is as good as one to another question.
    next_question_ = is_asked_ ? std::min(next_question_, now + kStatsPeriod) : now;
  }
  const auto it =
      listeners_
          .insert_or_assign(arrival.number, Listener{.stream = std::move(arrival.stream),
                                                     .may_watch = std::move(arrival.may_watch),
                                                     .reader = std::move(reader)})
          .first;
  send(it->second, start, now);
}

void EventHub::send(Listener& listener, const std::string& text, MonotonicTime now) {
  (void)listener.stream.send(text);  // one that is over is told of by on_gone
  listener.sent_at = now;
}

void EventHub::watch_or_not(MonotonicTime now) {
  const bool is_wanted = std::ranges::any_of(
      listeners_, [](const auto& entry) { return entry.second.reader.filter().tasks; });
  if (std::exchange(is_watching_, is_wanted) == is_wanted) return;
  if (is_wanted) {
    changes_.watch();
  } else {
    changes_.unwatch(now);
  }
}

void EventHub::tell_changes(MonotonicTime now) {
  for (auto& [number, listener] : listeners_) {
    std::string text;
    listener.reader.read(changes_.log(), now, text);
    if (text.empty() && now - listener.sent_at >= kHeartbeat) text = ": still here\n\n";
    if (!text.empty()) send(listener, text, now);
  }
}

void EventHub::ask_for_figures(MonotonicTime now) {
  if (is_asked_ || now < next_question_) return;
  const auto period = has_listeners_to_stats() ? kStatsPeriod : HistoryRange::kFineStep;
  next_question_ = now + period;
  const auto take = [figures = figures_, &clock = clock_,
                     &bell = changes_.bell()](std::optional<EngineStats> stats) {
    {
      const MutexLock lock(figures->mutex);
      figures->is_answered = true;
      if (stats) {
        figures->sample =
            StatsSample{.taken_at = clock.now(),
                        .at = std::chrono::floor<std::chrono::milliseconds>(clock.wall_now()),
                        .stats = *std::move(stats)};
      }
    }
    bell.ring();
  };
  is_asked_ = ask_(take);
}

void EventHub::take_figures(MonotonicTime now) {
  std::optional<StatsSample> sample;
  {
    const MutexLock lock(figures_->mutex);
    sample = std::exchange(figures_->sample, std::nullopt);
    if (std::exchange(figures_->is_answered, false)) is_asked_ = false;
  }
  if (!sample) return;
  {
    const MutexLock lock(mutex_);
    history_.add(*sample);
  }
  if (recent_.empty()) recent_.push_back(*sample);  // all counts start at the first sample
  recent_.push_back(*std::move(sample));
  while (recent_.size() > 2 && recent_[1].taken_at <= recent_.back().taken_at - kRecent) {
    recent_.pop_front();
  }
  if (!has_listeners_to_stats()) return;
  const json::StatsPoint last = difference(recent_[recent_.size() - 2], recent_.back());
  const std::string text = event_text(
      "", "stats", json::render_stats_event(last, difference(recent_.front(), recent_.back())));
  for (auto& [number, listener] : listeners_) {
    if (listener.reader.filter().stats) send(listener, text, now);
  }
}

bool EventHub::has_listeners_to_stats() const {
  return std::ranges::any_of(listeners_,
                             [](const auto& entry) { return entry.second.reader.filter().stats; });
}

MonotonicTime EventHub::next_wakeup(MonotonicTime now) const {
  MonotonicTime next = is_asked_ ? now + kHeartbeat : next_question_;
  next = std::min(next, next_collection_);
  for (const auto& [number, listener] : listeners_) {
    if (listener.reader.is_behind(changes_.log())) {
      next = std::min(next, now + ChangeCollector::kTakePeriod);
    }
    if (const auto at = listener.reader.tells_missed_at()) next = std::min(next, *at);
    next = std::min(next, listener.sent_at + kHeartbeat);
  }
  return next;
}

}  // namespace detent::server
