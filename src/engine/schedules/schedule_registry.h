// The recurring schedules of an engine: their next occurrences, and the decisions about them.
//
// When the time of an occurrence has come, the occurrence is decided: it gets a task, or it passes
// without a task (missed, overlapping, paused). The decision moves `decided_to` of the schedule.
// The task and the new `decided_to` become durable in the same batch. So after any crash, each
// occurrence that gets a task has exactly one. The next occurrence is always computed, and never
// stored. If the rules of a time zone change, a start with newer tzdata or a call of refresh() is
// sufficient.
//
// All schedules are in memory. A schedule takes about a kilobyte plus its payload. Each schedule
// that needs a look is in `wakes_` with the instant of its next look. Thread-compatible; used on
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
#include "engine/schedules/recurrence.h"
#include "task/recurring_schedule.h"

namespace detent {

inline constexpr std::size_t kMaxSchedules = 100'000;

/// The functions of the engine that the registry needs.
class OccurrenceTasks {
 public:
  virtual ~OccurrenceTasks() = default;
  /// Whether a task is scheduled, ready or leased. Errors: the store could not be read.
  virtual Result<bool> lives(TaskId id) = 0;
  /// Schedules the task of an occurrence, due at `due`, with the key occurrence_key(). Empty if the
  /// occurrence already has its task, whose key still exists. Errors: as Engine::schedule().
  virtual Result<std::optional<TaskId>> make(const RecurringSchedule& schedule, WallTime occurrence,
                                             WallTime due) = 0;
};

/// One step of a back-fill.
struct BackfillStep {
  std::size_t made = 0;
  std::size_t there = 0;         // occurrences that already had their task
  std::optional<WallTime> next;  // the first remaining occurrence; empty: the range is complete
  std::optional<Error> stop;     // why the task of `next` could not be created
};

class ScheduleRegistry {
 public:
  ScheduleRegistry();
  ~ScheduleRegistry();
  ScheduleRegistry(const ScheduleRegistry&) = delete;
  ScheduleRegistry& operator=(const ScheduleRegistry&) = delete;

  /// Loads the stored schedules. If a rule can no longer be read (for example because its zone is
  /// gone), the schedule is broken and creates no tasks. Call clock_stepped() after this, because
  /// the clock may have been put back since.
  void restore(std::vector<ScheduleRecord> records);

  /// Copies a schedule from another store, with its progress. Returns false, and changes nothing,
  /// if the name exists. If the rule cannot be read here, the schedule is broken. If `decided_to`
  /// is far ahead of `now`, the schedule is treated as by clock_stepped(). Errors: as validate();
  /// invalid_argument for a period that is not allowed; resource_exhausted beyond kMaxSchedules.
  Result<bool> restore(ScheduleRecord record, WallTime now);

  /// Creates or replaces a schedule. An existing schedule keeps its progress, and the new rule
  /// applies to occurrences after `now`. If the schedule is equal to the present schedule, it stays
  /// unchanged. If no anchor is given, the anchor is the start, or the anchor of the existing
  /// schedule, or `now`. Returns whether the schedule existed. Errors: as validate() and
  /// Recurrence::make(); invalid_argument for a period that is not allowed; resource_exhausted
  /// beyond kMaxSchedules.
  Result<bool> put(RecurringSchedule schedule, WallTime now);
  /// All following calls with a name answer not_found if there is no such schedule.
  Result<void> remove(const std::string& name);
  /// Occurrences during a pause pass without a task.
  Result<void> pause(const std::string& name);
  Result<void> resume(const std::string& name, WallTime now);
  /// Creates a task now, independently of the rule. The task counts for `overlap`, but not for
  /// `count`.
  Result<TaskId> trigger(const std::string& name, WallTime now, OccurrenceTasks& tasks);
  /// Checks that a back-fill of the range may begin. It handles at most kMaxBackfill occurrences.
  /// Errors: invalid_argument if the range has more occurrences, with the instant at which to cut
  /// the range; conflict if the schedule is broken or paused.
  Result<void> check_backfill(const std::string& name, WallTime from, WallTime to,
                              WallTime now) const;
  /// One step of a back-fill: creates the tasks of past occurrences, from `from` on and before
  /// `to`, oldest first, due `now`. Handles at most `limit` > 0 occurrences. They do not count for
  /// `count`. Errors: conflict as above.
  Result<BackfillStep> backfill(const std::string& name, WallTime from, WallTime to,
                                std::size_t limit, WallTime now, OccurrenceTasks& tasks);

  Result<ScheduleView> view(const std::string& name) const;
  /// The first `count` occurrences of the rule after `from`, whether the schedule is paused or not.
  Result<std::vector<WallTime>> next(const std::string& name, std::size_t count,
                                     WallTime from) const;
  /// A preview of put(). Errors: as put().
  Result<SchedulePreview> preview(RecurringSchedule schedule, std::size_t count,
                                  WallTime now) const;
  /// At most `limit` schedules after the name `after`, by name.
  std::vector<ScheduleView> page(std::string_view after, std::size_t limit) const;
  std::size_t size() const noexcept { return schedules_.size(); }

  /// When decide() must be called next. Empty: not before a change.
  std::optional<WallTime> next_wake() const;
  /// Decides the occurrences up to `now`, about `limit` at most. If an error prevents a decision (a
  /// queue at its quota, a record that cannot be read), the registry tries again in a second.
  void decide(WallTime now, std::size_t limit, OccurrenceTasks& tasks);
  /// Call this for every task that ended.
  void task_ended(TaskId id);

  /// The wall clock was stepped, or may have been stepped since the records were stored. After a
  /// step forward, the skipped occurrences are missed. After a step back of up to a day, the
  /// decided occurrences stay decided. After a larger step back, the schedules begin again from
  /// `now`.
  void clock_stepped(WallTime now);
  /// Reads the rules of up to `limit` schedules again, from where the previous call stopped.
  /// Returns true after the last schedule.
  bool refresh(std::size_t limit);

  /// The changes since the last call, for the store.
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
  /// Reads the rule and computes the next occurrence.
  void read_rule(Entry& entry);
  void set_wake(Entry& entry, std::optional<WallTime> wake);
  void wake_for_next(Entry& entry);
  void forget_awaited(Entry& entry);
  void restart_if_ahead(Entry& entry, WallTime now);

  // Steps of decide(). Errors: the reason why it cannot continue.
  Result<void> decide(Entry& entry, WallTime now, std::size_t& budget, OccurrenceTasks& tasks);
  Result<void> decide_queued(Entry& entry, OccurrenceTasks& tasks);
  Result<void> decide_missed(Entry& entry, WallTime before, std::size_t& budget,
                             OccurrenceTasks& tasks);
  Result<void> occur(Entry& entry, WallTime occurrence, OccurrenceTasks& tasks);
  Result<void> make_task(Entry& entry, WallTime occurrence, OccurrenceTasks& tasks);

  std::map<std::string, std::unique_ptr<Entry>, std::less<>> schedules_;
  std::set<Entry*, WakeOrder> wakes_;  // schedules with a next look
  std::unordered_map<std::uint64_t, Entry*>
      awaited_;  // by task: a queue_one schedule waits for the end of the task
  std::vector<Entry*> changed_;
  std::vector<std::string> removed_;
  std::string refreshed_to_;  // progress of refresh(); empty: at the beginning
};

}  // namespace detent
