// The recurring schedules of an engine: what occurs when, and what becomes of it.
//
// An occurrence is decided once its time has come: a task is made for it, or it passes without one
// (missed, overlapping, paused). With it the schedule's `decided_to` moves on; both become durable
// in the same batch. So there is exactly one task for each occurrence that gets one, whatever
// crashes. The next occurrence is always computed, never stored: a start on newer tzdata, or
// refresh(), is all that a change of a zone's rules needs.
//
// All schedules are in memory, about a kilobyte each and their payload. Whatever time it does, a
// schedule stands in `wakes_` with the instant at which it is looked at next. Thread-compatible; on
// the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/recurrence.h"
#include "task/recurring_schedule.h"

namespace detent {

inline constexpr std::size_t kMaxSchedules = 100'000;

/// What the book needs of the engine.
class OccurrenceTasks {
 public:
  virtual ~OccurrenceTasks() = default;
  /// Whether a task is scheduled, ready or leased. Errors: when that can't be read.
  virtual Result<bool> lives(TaskId id) = 0;
  /// Schedules the task of an occurrence, due at `due`, under occurrence_key(). Nothing when one
  /// was made before and its key still stands. Errors: as Engine::schedule().
  virtual Result<std::optional<TaskId>> make(const RecurringSchedule& schedule, WallTime occurrence,
                                             WallTime due) = 0;
};

/// One step of a back-fill.
struct BackfillStep {
  std::size_t made = 0;
  std::size_t there = 0;         // occurrences that had their task before
  std::optional<WallTime> next;  // the first occurrence that is left; none: the range is done
  std::optional<Error> stop;     // why no task could be made for `next`
};

class ScheduleBook {
 public:
  ScheduleBook();
  ~ScheduleBook();
  ScheduleBook(const ScheduleBook&) = delete;
  ScheduleBook& operator=(const ScheduleBook&) = delete;

  /// Takes over what was stored. A schedule whose rule cannot be read any more (its zone is gone)
  /// stands still. clock_stepped() must follow: the clock may have been put back since.
  void restore(std::vector<ScheduleRecord> records);

  /// Takes over one from elsewhere, with how far it has come; does nothing when there is one of its
  /// name. Answers whether there was none. One whose rule cannot be read here stands still. One
  /// that was decided by a clock far ahead of `now` is treated as by clock_stepped(). Errors: as
  /// validate(); invalid_argument for a period that is not allowed; resource_exhausted beyond
  /// kMaxSchedules.
  Result<bool> restore(ScheduleRecord record, WallTime now);

  /// Makes or replaces a schedule. One that is there keeps how far it has come; the new rule holds
  /// for occurrences after `now`. Putting the same again changes nothing. An anchor that is not
  /// given becomes the start, or that of the schedule as it is, or `now`. Answers whether it was
  /// there. Errors: as validate() and Recurrence::make(); invalid_argument for a period that is not
  /// allowed; resource_exhausted beyond kMaxSchedules.
  Result<bool> put(RecurringSchedule schedule, WallTime now);
  /// Errors of all below: not_found.
  Result<void> remove(const std::string& name);
  /// What occurs while it is paused passes without a task.
  Result<void> pause(const std::string& name);
  Result<void> resume(const std::string& name, WallTime now);
  /// Makes a task now, whatever the rule says; it counts for `overlap`, not for `count`.
  Result<TaskId> trigger(const std::string& name, WallTime now, OccurrenceTasks& tasks);
  /// Checks that a back-fill of the range may begin. It goes through at most kMaxBackfill
  /// occurrences. Errors: invalid_argument when there are more, which tells where to cut the range;
  /// conflict when the rule is broken or the schedule is paused.
  Result<void> check_backfill(const std::string& name, WallTime from, WallTime to,
                              WallTime now) const;
  /// Makes the tasks, due `now`, of past occurrences from `from` on and before `to`, oldest first,
  /// for at most `limit` > 0 occurrences. They don't count for `count`. Errors: conflict as above.
  Result<BackfillStep> backfill(const std::string& name, WallTime from, WallTime to,
                                std::size_t limit, WallTime now, OccurrenceTasks& tasks);

  Result<ScheduleView> view(const std::string& name) const;
  /// The first `count` occurrences after `from` as the rule has them, be it paused or not.
  Result<std::vector<WallTime>> next(const std::string& name, std::size_t count,
                                     WallTime from) const;
  /// What put() would make of it. Errors: as put().
  Result<SchedulePreview> preview(RecurringSchedule schedule, std::size_t count,
                                  WallTime now) const;
  /// At most `limit`, by name, after `after`.
  std::vector<ScheduleView> page(std::string_view after, std::size_t limit) const;
  std::size_t size() const noexcept { return schedules_.size(); }

  /// When decide() has something to do; none: not until something changes.
  std::optional<WallTime> next_wake() const;
  /// Decides what has occurred by `now`, at most about `limit` occurrences. What could not be done
  /// because of an error (a queue at its quota, a record that can't be read) is tried again in a
  /// second.
  void decide(WallTime now, std::size_t limit, OccurrenceTasks& tasks);
  /// To be told of every task that lives no more.
  void task_ended(TaskId id);

  /// The wall clock was stepped, or may have been since the records were stored. After a step
  /// forward, the occurrences that it jumped over are missed. After a step back of up to a day, the
  /// decided occurrences stay decided. After a larger step back, the schedules begin again from
  /// `now` on.
  void clock_stepped(WallTime now);
  /// Reads the rules of up to `limit` schedules anew, from where the last call stopped; true when
  /// it has come round.
  bool refresh(std::size_t limit);

  /// What has changed since the last call, to be stored.
  struct Changes {
    std::vector<ScheduleRecord> schedules;
    std::vector<std::string> removed;
  };
  Changes take_changes();

 private:
  struct Entry;
  struct WakeOrder {
    bool operator()(const Entry* a, const Entry* b) const noexcept;
  };

  Entry& add(ScheduleRecord record);
  Result<Entry*> find(const std::string& name) const;
  Result<Entry*> find_to_backfill(const std::string& name) const;
  static ScheduleView view_of(const Entry& entry);
  void note_change(Entry& entry);
  /// Reads the rule, and sees when it occurs next.
  void read_rule(Entry& entry);
  void set_wake(Entry& entry, std::optional<WallTime> wake);
  void wake_for_next(Entry& entry);
  void forget_awaited(Entry& entry);
  void begin_anew_if_ahead(Entry& entry, WallTime now);

  // Of decide(). Errors: what keeps it from going on.
  Result<void> decide(Entry& entry, WallTime now, std::size_t& budget, OccurrenceTasks& tasks);
  Result<void> decide_queued(Entry& entry, OccurrenceTasks& tasks);
  Result<void> decide_missed(Entry& entry, WallTime before, std::size_t& budget,
                             OccurrenceTasks& tasks);
  Result<void> occur(Entry& entry, WallTime occurrence, OccurrenceTasks& tasks);
  Result<void> make_task(Entry& entry, WallTime occurrence, OccurrenceTasks& tasks);

  std::map<std::string, std::unique_ptr<Entry>, std::less<>> schedules_;
  std::set<Entry*, WakeOrder> wakes_;                  // those that have a wake
  std::unordered_map<std::uint64_t, Entry*> awaited_;  // by task: queue_one waits for its end
  std::vector<Entry*> changed_;
  std::vector<std::string> removed_;
  std::string refreshed_to_;  // of the round of refresh(); empty: at the beginning
};

}  // namespace detent
