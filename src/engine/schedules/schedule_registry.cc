#include "engine/schedules/schedule_registry.h"

#include <algorithm>
#include <utility>

#include "base/wall_time.h"
#include "calendar/time_zone.h"
#include "detent/check.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// The wait after an error, whose cause may be gone by then.
constexpr milliseconds kRetry{1'000};
/// If the clock is put back by at most this time, no occurrence is decided a second time.
constexpr milliseconds kLongestStepBack = std::chrono::hours{24};
constexpr milliseconds kInstant{1};

Error no_schedule(const std::string& name) {
  return {ErrorCode::not_found, "there is no schedule '" + name + "'", "name"};
}

Error too_many() {
  return {ErrorCode::resource_exhausted,
          "schedule limit reached: there are " + std::to_string(kMaxSchedules) + " schedules", ""};
}

/// Corrects the anchor of a rule after the clock was put back to `now`, if the old clock had passed
/// the anchor. The anchor of an interval moves back by whole periods, to `now` or earlier. The
/// anchor of a calendar becomes `now` if it is the time when the schedule was created. Any other
/// anchor is a date that the user gave, and it stays.
void bring_anchor_back(ScheduleRecord& record, WallTime now) {
  const ScheduleProgress& progress = record.progress;
  if (auto* const interval = std::get_if<IntervalRule>(&record.schedule.rule)) {
    const WallTime anchor = interval->anchor.value_or(now);
    if (anchor <= now || anchor > progress.decided_to) return;
    const auto periods = (anchor - now + interval->period - kInstant) / interval->period;
    interval->anchor = std::max(anchor - periods * interval->period, WallTime{});
  } else if (auto* const calendar = std::get_if<CalendarRule>(&record.schedule.rule)) {
    if (calendar->anchor != progress.created_at || progress.created_at <= now) return;
    calendar->anchor = now;
    // If the clock is put back again, this equality shows that the user did not give the anchor.
    record.progress.created_at = now;
  }
}

/// The occurrences of a rule before `to` that are not after `now`.
class PastOccurrences {
 public:
  PastOccurrences(const Recurrence& rule, WallTime to, WallTime now)
      : rule_(rule), end_(std::min(to, now + kInstant)) {}

  std::optional<WallTime> next_after(WallTime time) const {
    const std::optional<WallTime> next = rule_.next_after(time);
    return next && *next < end_ ? next : std::nullopt;
  }

 private:
  const Recurrence& rule_;
  const WallTime end_;
};

/// Spells the time zone as the tz database does. An unknown zone stays, and its rule is refused.
void spell_zone(RecurringSchedule& schedule) {
  if (const Result<TimeZone> zone = TimeZone::load(schedule.time_zone)) {
    schedule.time_zone = zone->name();
  }
}

/// Sets the anchor of the rule if the request did not give one.
void fill_anchor(RecurringSchedule& schedule, const RecurringSchedule* before, WallTime now) {
  const auto fill = [&]<class Rule>(Rule& rule) {
    if constexpr (requires { rule.anchor; }) {
      if (rule.anchor) return;
      rule.anchor = schedule.start.value_or(now);
      if (before == nullptr || !std::holds_alternative<Rule>(before->rule)) return;
      Rule as_before = rule;
      as_before.anchor = std::get<Rule>(before->rule).anchor;
      if (before->start == schedule.start && as_before == std::get<Rule>(before->rule)) {
        rule = as_before;
      }
    }
  };
  std::visit(fill, schedule.rule);
}

}  // namespace

struct ScheduleRegistry::Entry {
  ScheduleRecord record;
  std::optional<Recurrence> rule;  // empty: broken
  std::string broken;
  std::optional<WallTime> wake;  // is in wakes_
  TaskId awaited;                // is in awaited_, unless 0
  bool is_changed = false;       // is in changed_

  const RecurringSchedule& schedule() const noexcept { return record.schedule; }
  ScheduleProgress& progress() noexcept { return record.progress; }
  bool is_over() const noexcept {
    return record.schedule.count && record.progress.made >= *record.schedule.count;
  }
  std::optional<WallTime> next() const {
    if (record.progress.paused || !rule || is_over()) return std::nullopt;
    return rule->next_after(record.progress.decided_to);
  }
};

bool ScheduleRegistry::WakeOrder::operator()(const Entry* a, const Entry* b) const noexcept {
  if (a->wake != b->wake) return a->wake < b->wake;
  return a->schedule().name < b->schedule().name;
}

// ---- reading ----

ScheduleRegistry::ScheduleRegistry() = default;
ScheduleRegistry::~ScheduleRegistry() = default;

void ScheduleRegistry::restore(std::vector<ScheduleRecord> records) {
  for (ScheduleRecord& record : records) add(std::move(record));
}

Result<bool> ScheduleRegistry::restore(ScheduleRecord record, WallTime now) {
  TRY(validate(record.schedule));
  if (schedules_.contains(record.schedule.name)) return false;
  if (schedules_.size() >= kMaxSchedules) return too_many();
  spell_zone(record.schedule);
  fill_anchor(record.schedule, nullptr, record.progress.created_at);
  if (const Result<Recurrence> rule = Recurrence::make(record.schedule)) {
    TRY(rule->check_period());
  }
  Entry& entry = add(std::move(record));
  note_change(entry);
  restart_if_ahead(entry, now);
  return true;
}

ScheduleRegistry::Entry& ScheduleRegistry::add(ScheduleRecord record) {
  auto entry = std::make_unique<Entry>();
  entry->record = std::move(record);
  read_rule(*entry);
  Entry& added = *entry;
  const bool is_new = schedules_.emplace(added.schedule().name, std::move(entry)).second;
  DETENT_CHECK(is_new);
  return added;
}

Result<bool> ScheduleRegistry::put(RecurringSchedule schedule, WallTime now) {
  TRY(validate(schedule));
  spell_zone(schedule);
  const auto it = schedules_.find(schedule.name);
  Entry* entry = it == schedules_.end() ? nullptr : it->second.get();
  fill_anchor(schedule, entry == nullptr ? nullptr : &entry->schedule(), now);
  const bool was_there = entry != nullptr;
  if (was_there && entry->schedule() == schedule && entry->rule) return true;
  ASSIGN_OR_RETURN(Recurrence rule, Recurrence::make_new(schedule));
  if (!was_there) {
    if (schedules_.size() >= kMaxSchedules) return too_many();
    auto made = std::make_unique<Entry>();
    entry = made.get();
    entry->progress().created_at = now;
    schedules_.emplace(schedule.name, std::move(made));
  }
  set_wake(*entry, std::nullopt);  // wakes_ is sorted by name too, so the entry leaves it first
  entry->record.schedule = std::move(schedule);
  entry->rule = std::move(rule);
  entry->broken.clear();
  entry->progress().decided_to = std::max(entry->progress().decided_to, now);
  note_change(*entry);
  wake_for_next(*entry);
  return was_there;
}

Result<SchedulePreview> ScheduleRegistry::preview(RecurringSchedule schedule, std::size_t count,
                                                  WallTime now) const {
  TRY(validate(schedule));
  spell_zone(schedule);
  const auto it = schedules_.find(schedule.name);
  fill_anchor(schedule, it == schedules_.end() ? nullptr : &it->second->schedule(), now);
  ASSIGN_OR_RETURN(const Recurrence rule, Recurrence::make_new(schedule));
  return SchedulePreview{.words = rule.explain(), .next = rule.next(count, now)};
}

Result<void> ScheduleRegistry::remove(const std::string& name) {
  ASSIGN_OR_RETURN(Entry* const entry, find(name));
  set_wake(*entry, std::nullopt);
  forget_awaited(*entry);
  if (entry->is_changed) std::erase(changed_, entry);
  if (std::ranges::find(removed_, name) == removed_.end()) removed_.push_back(name);
  DETENT_CHECK(!entry->wake && entry->awaited.value == 0);
  schedules_.erase(name);
  return ok();
}

Result<void> ScheduleRegistry::pause(const std::string& name) {
  ASSIGN_OR_RETURN(Entry* const entry, find(name));
  if (std::exchange(entry->progress().paused, true)) return ok();
  forget_awaited(*entry);
  note_change(*entry);
  wake_for_next(*entry);
  return ok();
}

Result<void> ScheduleRegistry::resume(const std::string& name, WallTime now) {
  ASSIGN_OR_RETURN(Entry* const entry, find(name));
  if (!std::exchange(entry->progress().paused, false)) return ok();
  entry->progress().decided_to = std::max(entry->progress().decided_to, now);
  note_change(*entry);
  wake_for_next(*entry);
  return ok();
}

Result<TaskId> ScheduleRegistry::trigger(const std::string& name, WallTime now,
                                         OccurrenceTasks& tasks) {
  ASSIGN_OR_RETURN(Entry* const entry, find(name));
  ASSIGN_OR_RETURN(const std::optional<TaskId> id, tasks.make(entry->schedule(), now, now));
  if (!id) {
    return Error{ErrorCode::conflict,
                 "the schedule was already triggered in this millisecond: try again", "name"};
  }
  entry->progress().last_task = *id;
  note_change(*entry);
  return *id;
}

Result<BackfillStep> ScheduleRegistry::backfill(const std::string& name, WallTime from, WallTime to,
                                                std::size_t limit, WallTime now,
                                                OccurrenceTasks& tasks) {
  ASSIGN_OR_RETURN(const Entry* const entry, find_to_backfill(name));
  const PastOccurrences past(*entry->rule, to, now);
  BackfillStep step;
  step.next = past.next_after(from - kInstant);
  for (std::size_t i = 0; i < limit && step.next; ++i) {
    const Result<std::optional<TaskId>> id = tasks.make(entry->schedule(), *step.next, now);
    if (!id) {
      step.stop = id.error();
      break;
    }
    ++(*id ? step.made : step.there);
    step.next = past.next_after(*step.next);
  }
  return step;
}

Result<void> ScheduleRegistry::check_backfill(const std::string& name, WallTime from, WallTime to,
                                              WallTime now) const {
  ASSIGN_OR_RETURN(const Entry* const entry, find_to_backfill(name));
  const PastOccurrences past(*entry->rule, to, now);
  std::optional<WallTime> next = past.next_after(from - kInstant);
  for (std::uint64_t count = 0; next && count < kMaxBackfill; ++count) {
    next = past.next_after(*next);
  }
  if (!next) return ok();
  return Error{
      ErrorCode::invalid_argument,
      "the range has more than " + std::to_string(kMaxBackfill) +
          " occurrences, the limit of one back-fill: back-fill it in parts, the first up to " +
          format_rfc3339(*next),
      "to"};
}

Result<ScheduleRegistry::Entry*> ScheduleRegistry::find_to_backfill(const std::string& name) const {
  ASSIGN_OR_RETURN(Entry* const entry, find(name));
  if (!entry->rule) return Error{ErrorCode::conflict, entry->broken, "name"};
  if (entry->progress().paused) {
    return Error{ErrorCode::conflict,
                 "schedule '" + name + "' is paused: resume it before a back-fill", "name"};
  }
  return entry;
}

Result<ScheduleRegistry::Entry*> ScheduleRegistry::find(const std::string& name) const {
  const auto it = schedules_.find(name);
  if (it == schedules_.end()) return no_schedule(name);
  return it->second.get();
}

ScheduleView ScheduleRegistry::view_of(const Entry& entry) {
  return {.record = entry.record,
          .next_at = entry.next(),
          .words = entry.rule ? entry.rule->explain() : std::string(),
          .broken = entry.broken};
}

Result<ScheduleView> ScheduleRegistry::view(const std::string& name) const {
  ASSIGN_OR_RETURN(const Entry* const entry, find(name));
  return view_of(*entry);
}

Result<std::vector<WallTime>> ScheduleRegistry::next(const std::string& name, std::size_t count,
                                                     WallTime from) const {
  ASSIGN_OR_RETURN(const Entry* const entry, find(name));
  if (!entry->rule) return Error{ErrorCode::conflict, entry->broken, "name"};
  return entry->rule->next(count, from);
}

std::vector<ScheduleView> ScheduleRegistry::page(std::string_view after, std::size_t limit) const {
  std::vector<ScheduleView> views;
  for (auto it = schedules_.upper_bound(after); it != schedules_.end() && views.size() < limit;
       ++it) {
    views.push_back(view_of(*it->second));
  }
  return views;
}

void ScheduleRegistry::note_change(Entry& entry) {
  if (std::exchange(entry.is_changed, true)) return;
  changed_.push_back(&entry);
}

ScheduleRegistry::Changes ScheduleRegistry::take_changes() {
  Changes changes;
  changes.removed = std::exchange(removed_, {});
  for (Entry* const entry : std::exchange(changed_, {})) {
    DETENT_CHECK(entry->is_changed);
    entry->is_changed = false;
    changes.schedules.push_back(entry->record);
  }
  return changes;
}

// ---- when it is looked at next ----

void ScheduleRegistry::read_rule(Entry& entry) {
  Result<Recurrence> rule = Recurrence::make(entry.schedule());
  if (rule) {
    entry.rule = *std::move(rule);
    entry.broken.clear();
  } else if (!entry.rule) {  // a rule that could be read before stays in use
    entry.broken = rule.error().message;
  }
  wake_for_next(entry);
}

void ScheduleRegistry::set_wake(Entry& entry, std::optional<WallTime> wake) {
  const std::size_t before = wakes_.size() - (entry.wake ? 1 : 0);
  if (entry.wake) wakes_.erase(&entry);
  DETENT_CHECK(wakes_.size() == before);
  entry.wake = wake;
  if (!wake) return;
  wakes_.insert(&entry);
  DETENT_CHECK(wakes_.size() == before + 1);
}

void ScheduleRegistry::wake_for_next(Entry& entry) {
  const bool has_queued = entry.progress().queued_at && !entry.progress().paused;
  if (has_queued && entry.awaited.value == 0) return set_wake(entry, WallTime{});
  std::optional<WallTime> next = entry.next();
  if (next) *next += phase_of(entry.schedule());
  set_wake(entry, next);
}

std::optional<WallTime> ScheduleRegistry::next_wake() const {
  return wakes_.empty() ? std::nullopt : (*wakes_.begin())->wake;
}

void ScheduleRegistry::forget_awaited(Entry& entry) {
  awaited_.erase(entry.awaited.value);
  entry.awaited = {};
}

void ScheduleRegistry::task_ended(TaskId id) {
  const auto it = awaited_.find(id.value);
  if (it == awaited_.end()) return;
  Entry& entry = *it->second;
  DETENT_CHECK(entry.awaited == id);
  forget_awaited(entry);
  wake_for_next(entry);
}

void ScheduleRegistry::clock_stepped(WallTime now) {
  for (const auto& [name, entry] : schedules_) restart_if_ahead(*entry, now);
}

void ScheduleRegistry::restart_if_ahead(Entry& entry, WallTime now) {
  if (entry.progress().decided_to <= now + kLongestStepBack) return;
  bring_anchor_back(entry.record, now);
  entry.progress().decided_to = now;
  note_change(entry);
  read_rule(entry);
}

bool ScheduleRegistry::refresh(std::size_t limit) {
  auto it = schedules_.upper_bound(refreshed_to_);
  for (; it != schedules_.end() && limit > 0; ++it, --limit) {
    refreshed_to_ = it->first;
    read_rule(*it->second);
  }
  if (it != schedules_.end()) return false;
  refreshed_to_.clear();
  return true;
}

// ---- decisions about occurrences ----

void ScheduleRegistry::decide(WallTime now, std::size_t limit, OccurrenceTasks& tasks) {
  while (limit > 0 && !wakes_.empty() && (*wakes_.begin())->wake <= now) {
    Entry& entry = **wakes_.begin();
    --limit;  // the look at a schedule counts like an occurrence
    if (decide(entry, now, limit, tasks)) {
      wake_for_next(entry);
    } else {
      set_wake(entry, now + kRetry);
    }
  }
}

Result<void> ScheduleRegistry::decide(Entry& entry, WallTime now, std::size_t& budget,
                                      OccurrenceTasks& tasks) {
  TRY(decide_queued(entry, tasks));
  const WallTime until = now - phase_of(entry.schedule());
  TRY(decide_missed(entry, until - entry.schedule().misfire_grace, budget, tasks));
  std::optional<WallTime> next = entry.next();
  for (; next && *next <= until && budget > 0; next = entry.next()) {
    TRY(occur(entry, *next, tasks));
    --budget;
  }
  return ok();
}

Result<void> ScheduleRegistry::decide_queued(Entry& entry, OccurrenceTasks& tasks) {
  ScheduleProgress& progress = entry.progress();
  if (!progress.queued_at || entry.awaited.value != 0) return ok();
  ASSIGN_OR_RETURN(const bool lives, tasks.lives(progress.last_task));
  if (lives) {
    DETENT_CHECK(progress.last_task.value != 0);
    entry.awaited = progress.last_task;
    awaited_[entry.awaited.value] = &entry;
    return ok();
  }
  TRY(make_task(entry, *progress.queued_at, tasks));
  progress.queued_at.reset();
  return ok();
}

/// Decides the occurrences before `before`. They are too late, so the misfire policy applies.
Result<void> ScheduleRegistry::decide_missed(Entry& entry, WallTime before, std::size_t& budget,
                                             OccurrenceTasks& tasks) {
  const std::optional<WallTime> first = entry.next();
  if (!first || *first >= before) return ok();
  std::vector<WallTime> kept;  // the occurrences that get a task, the newest first
  const Misfire misfire = entry.schedule().misfire;
  const std::size_t most = misfire == Misfire::skip   ? 0
                           : misfire == Misfire::once ? 1
                                                      : entry.schedule().misfire_limit;
  for (WallTime at = before; kept.size() < most;) {
    const std::optional<WallTime> last = entry.rule->last_before(at);
    if (!last || *last < *first) break;
    kept.push_back(at = *last);
  }
  for (; !kept.empty() && !entry.is_over(); kept.pop_back()) {
    if (budget == 0) return ok();
    TRY(occur(entry, kept.back(), tasks));
    --budget;
  }
  entry.progress().decided_to = before - kInstant;
  note_change(entry);
  return ok();
}

/// Decides one occurrence: it gets a task, waits for the end of the previous task, or passes.
Result<void> ScheduleRegistry::occur(Entry& entry, WallTime occurrence, OccurrenceTasks& tasks) {
  ScheduleProgress& progress = entry.progress();
  const ScheduleOverlap overlap = entry.schedule().overlap;
  bool overlaps = false;
  if (overlap != ScheduleOverlap::allow && progress.last_task.value != 0) {
    ASSIGN_OR_RETURN(overlaps, tasks.lives(progress.last_task));
  }
  if (!overlaps) {
    TRY(make_task(entry, occurrence, tasks));
  } else if (overlap == ScheduleOverlap::queue_one && !progress.queued_at) {
    progress.queued_at = occurrence;
  } else {
    ++progress.overlapped;
  }
  DETENT_CHECK(occurrence > progress.decided_to);  // otherwise it would be decided twice
  progress.decided_to = occurrence;
  note_change(entry);
  return ok();
}

Result<void> ScheduleRegistry::make_task(Entry& entry, WallTime occurrence,
                                         OccurrenceTasks& tasks) {
  ASSIGN_OR_RETURN(
      const std::optional<TaskId> id,
      tasks.make(entry.schedule(), occurrence, occurrence + phase_of(entry.schedule())));
  note_change(entry);
  if (!id) return ok();
  ScheduleProgress& progress = entry.progress();
  progress.last_task = *id;
  progress.last_at = occurrence;
  ++progress.made;
  return ok();
}

}  // namespace detent
