#include "store/store_check.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/wall_time.h"
#include "store/key_check.h"
#include "store/store_findings.h"

namespace detent {

namespace {

constexpr std::size_t kPageTasks = 1'000;
constexpr std::array<std::string_view, 4> kLaneNames{"due", "ready", "dead", "ended"};

std::string_view name_of(Lane lane) noexcept { return kLaneNames[static_cast<std::size_t>(lane)]; }

bool is_in_webhook_lane(const Place& place) noexcept { return (place.queue & kWebhookLane) != 0; }

std::string describe_lane(const Place& place) {
  std::string text = "the " + std::string(name_of(place.lane));
  text += is_in_webhook_lane(place) ? " webhook lane" : " lane";
  const std::uint32_t queue = place.queue & ~kWebhookLane;
  if (queue != 0) text += " of queue number " + std::to_string(queue);
  return text;
}

std::string describe(const Place& place) {
  return "task " + to_string(place.id) + " in " + describe_lane(place) + " at " +
         format_rfc3339(place.at);
}

std::string describe(DueBin bin) {
  return std::string(bin.width == DueBin::Width::day ? "the day" : "the minute") + " from " +
         format_rfc3339(begin_of(bin));
}

/// A queue as stored, and the sums over its records.
struct CheckedQueue {
  QueueRecord record;
  QueueRecord sums;  // only the counts are used
};

class StoreCheck {
 public:
  StoreCheck(Store& store, const std::function<void(std::uint64_t)>& at)
      : store_(store), findings_(at) {}

  StoreReport run() {
    if (Result<void> read = read_all(); !read) findings_.report.ended_by = std::move(read).error();
    return std::move(findings_.report);
  }

 private:
  Result<void> read_all() {
    TRY(read_queues());
    TRY(read_schedules());
    TRY(read_by_id());
    TRY(read_lane(Lane::due, 0));
    TRY(read_lane(Lane::ended, 0));
    TRY(keys_.read_keys(kNoQueue));
    // Includes the numbers of removed queues: their lanes must have no task.
    for (std::uint32_t left = store_.last_queue_number(); left > 0; --left) {
      TRY(read_lane(Lane::ready, left));
      TRY(read_lane(Lane::ready, left | kWebhookLane));
      TRY(read_lane(Lane::dead, left));
      TRY(keys_.read_keys(left));
    }
    compare_lanes();
    compare_queues();
    TRY(compare_due_counts());
    const Result<std::uint64_t> quarantined = store_.quarantined();
    ASSIGN_OR_RETURN(const bool is_read,
                     findings_.expect_read(quarantined, "the quarantine cannot be read"));
    if (is_read) findings_.report.quarantined = *quarantined;
    return ok();
  }

  /// The number of records in a lane, as one of the two ways of reading found it.
  struct LaneCount {
    std::uint64_t sound = 0;
    std::uint64_t damaged = 0;
    bool is_whole = true;  // false if the lane was read only up to a damaged part
  };
  using LaneCounts = std::array<LaneCount, 4>;

  Result<void> read_queues() {
    const Result<std::vector<QueueRecord>> records = store_.queues();
    ASSIGN_OR_RETURN(has_queues_, findings_.expect_read(records, "queues cannot be read"));
    if (!has_queues_) return ok();
    findings_.report.queues = records->size();
    std::map<std::uint32_t, std::string> names;
    for (const QueueRecord& record : *records) {
      if (record.number == 0 || record.number > store_.last_queue_number()) {
        findings_.add("queue " + record.queue + ": its number " + std::to_string(record.number) +
                      " was never given out");
      }
      const auto [other, is_new] = names.emplace(record.number, record.queue);
      if (!is_new) {
        findings_.add("queue " + record.queue + ": has the number of queue " + other->second);
      }
      if (!queues_.emplace(record.queue, CheckedQueue{record, {}}).second) {
        findings_.add("queue " + record.queue + ": has two records");
      }
    }
    keys_.set_queues(std::move(names));
    return ok();
  }

  Result<void> read_schedules() {
    const Result<std::vector<Result<ScheduleRecord>>> records = store_.read_schedules();
    ASSIGN_OR_RETURN(const bool is_read,
                     findings_.expect_read(records, "schedules cannot be read"));
    if (!is_read) return ok();
    std::string_view last;
    for (const Result<ScheduleRecord>& record : *records) {
      if (!record) {
        findings_.add(record.error().message);
        continue;
      }
      ++findings_.report.schedules;
      const RecurringSchedule& schedule = record->schedule;
      if (const Result<void> valid = validate(schedule); !valid) {
        findings_.add("schedule " + schedule.name + ": " + valid.error().message);
      }
      if (schedule.name <= last) findings_.add("schedule " + schedule.name + ": is out of order");
      last = schedule.name;
    }
    return ok();
  }

  // ---- the records by id ----

  Result<void> read_by_id() {
    std::size_t limit = kPageTasks;
    for (TaskId after{};;) {
      const Result<TaskPage> page =
          read_in_parts(limit, [&](std::size_t most) { return store_.read_by_id(after, most); });
      const std::string from = after == TaskId{} ? "" : " after task " + to_string(after);
      ASSIGN_OR_RETURN(const bool is_read,
                       findings_.expect_read(page, "records cannot be read by id" + from));
      if (!is_read) {
        read_by_id_to_ = after;
        return ok();
      }
      findings_.note_read(page->tasks.size() + page->damaged.size());
      for (const Place& place : page->damaged) TRY(note_damaged(place));
      TRY(check_places(page->tasks));
      for (const StoredTask& stored : page->tasks) {
        if (stored.place.id <= after)
          findings_.add(describe(stored.place) + ": is out of order by id");
        after = stored.place.id;
        TRY(check_task(stored));
      }
      if (!page->read_to) return ok();
      after = page->read_to->id;
    }
  }

  Result<void> note_damaged(const Place& place) {
    ++count_of(by_id_, place.lane).damaged;
    const Result<std::vector<Result<Task>>> records = store_.read_at(std::span(&place, 1));
    ASSIGN_OR_RETURN(const bool is_read, findings_.expect_read(records, describe(place)));
    if (!is_read) return ok();
    const Result<Task>& record = records->front();
    findings_.add(describe(place) + ": the record is damaged" +
                  (record ? "" : ": " + record.error().message));
    return ok();
  }

  /// Checks that the records that were read by id are at their places.
  Result<void> check_places(std::span<const StoredTask> tasks) {
    std::vector<Place> places;
    places.reserve(tasks.size());
    for (const StoredTask& stored : tasks) places.push_back(stored.place);
    const Result<std::vector<Result<Task>>> records = store_.read_at(places);
    ASSIGN_OR_RETURN(const bool is_read,
                     findings_.expect_read(records, "records cannot be read by place"));
    for (std::size_t i = 0; is_read && i < tasks.size(); ++i) {
      const Result<Task>& record = (*records)[i];
      if (!record) {
        findings_.add(describe(places[i]) +
                      ": cannot be read by its place: " + record.error().message);
      } else if (*record != tasks[i].task) {
        findings_.add(describe(places[i]) +
                      ": its record read by place differs from its record read by id");
      }
    }
    return ok();
  }

  Result<void> check_task(const StoredTask& stored) {
    const auto& [place, task] = stored;
    ++count_of(by_id_, place.lane).sound;
    if (task.id != place.id) findings_.add(describe(place) + ": the record is of another task");
    if (place.id > store_.last_id())
      findings_.add(describe(place) + ": this id was never given out");
    check_lane(stored);
    if (task.standing != Standing::live && task.standing != Standing::dead) return ok();
    if (task.standing == Standing::live) ++due_sums_[due_bin_of(task.due_at, task.created_at)];
    if (!has_queues_) return ok();
    const auto queue = queues_.find(task.queue);
    if (queue == queues_.end()) {
      findings_.add(describe(place) + ": its queue " + task.queue + " does not exist");
      return ok();
    }
    if (place.queue != 0 && (place.queue & ~kWebhookLane) != queue->second.record.number) {
      findings_.add(describe(place) + ": is in the lane of another queue; its own queue is " +
                    task.queue);
    }
    add_to_sums(stored, queue->second.sums);
    if (task.key.empty()) return ok();
    return keys_.check_key_of(task, queue->second.record.number, describe(place));
  }

  /// Checks that the lane and the place fit the task.
  void check_lane(const StoredTask& stored) {
    const auto& [place, task] = stored;
    const bool has_webhook = !task.webhook.empty();
    bool is_right = false;
    switch (place.lane) {
      case Lane::due:
        is_right = task.standing == Standing::live && place.at == task.due_at;
        break;
      case Lane::ready:
        is_right = task.standing == Standing::live && place.at == task.due_at &&
                   place.priority == task.rules.priority &&
                   is_in_webhook_lane(place) == has_webhook;
        break;
      case Lane::dead:
        is_right = task.standing == Standing::dead && !is_in_webhook_lane(place);
        break;
      case Lane::ended:
        is_right = task.standing == Standing::completed || task.standing == Standing::cancelled;
        break;
    }
    if (!is_right) findings_.add(describe(place) + ": its record does not fit this lane or place");
  }

  static void add_to_sums(const StoredTask& stored, QueueRecord& sums) {
    const auto& [place, task] = stored;
    sums.bytes += task.payload.data.size();
    if (task.standing == Standing::dead) {
      ++sums.dead;
      return;
    }
    ++sums.waiting;
    if (place.lane == Lane::ready) {
      ++(is_in_webhook_lane(place) ? sums.in_webhook_lane : sums.in_ready_lane);
    }
  }

  // ---- the records by place ----

  Result<void> read_lane(Lane lane, std::uint32_t queue) {
    LaneCount& count = count_of(by_place_, lane);
    const Place begin = begin_of(lane, queue);
    const Place end = end_of(lane, queue);
    std::size_t limit = kPageTasks;
    for (Place after = begin;;) {
      const Result<TaskPage> page =
          read_in_parts(limit, [&](std::size_t most) { return store_.read(after, end, most); });
      const std::string from =
          after == begin ? ""
                         : " after task " + to_string(after.id) + " at " + format_rfc3339(after.at);
      ASSIGN_OR_RETURN(
          const bool is_read,
          findings_.expect_read(page, describe_lane(begin) + " cannot be read" + from));
      if (!is_read) {
        count.is_whole = false;
        return ok();
      }
      findings_.note_read(page->tasks.size() + page->damaged.size());
      count.damaged += page->damaged.size();
      for (const Place& place : page->damaged) {
        if (place.id > read_by_id_to_) TRY(note_damaged(place));
      }
      for (const StoredTask& stored : page->tasks) {
        if (stored.place <= after) findings_.add(describe(stored.place) + ": is out of order");
        after = stored.place;
        ++count.sound;
        TRY(check_found(stored));
        if (stored.place.id > read_by_id_to_) TRY(check_task(stored));
      }
      findings_.report.records[static_cast<std::size_t>(lane)] = count.sound;
      if (!page->read_to) return ok();
      after = *page->read_to;
    }
  }

  /// Checks that find() returns the record with this place.
  Result<void> check_found(const StoredTask& stored) {
    const Result<std::optional<StoredTask>> found = store_.find(stored.place.id);
    if (found && *found && (*found)->place == stored.place) return ok();
    const std::string what = describe(stored.place) + ": cannot be found by its id";
    ASSIGN_OR_RETURN(const bool is_read, findings_.expect_read(found, what));
    if (is_read && !*found) findings_.add(what);
    if (is_read && *found) {
      findings_.add(describe(stored.place) + ": its id leads to another place, " +
                    describe((*found)->place));
    }
    return ok();
  }

  // ---- the sums ----

  /// `expected` is the stored count, `found` is the sum over the records that could be read.
  void compare(const std::string& what, std::uint64_t expected, std::uint64_t found) {
    if (expected == found) return;
    findings_.add(what + ": expected " + std::to_string(expected) + ", found " +
                  std::to_string(found));
  }

  void compare_lanes() {
    for (const Lane lane : {Lane::due, Lane::ready, Lane::dead, Lane::ended}) {
      const LaneCount& by_id = count_of(by_id_, lane);
      const LaneCount& by_place = count_of(by_place_, lane);
      const std::string name = "the " + std::string(name_of(lane)) + " lane";
      if (!by_place.is_whole) continue;
      compare("records of " + name + ", by id and by place", by_id.sound, by_place.sound);
      compare("damaged records of " + name + ", by id and by place", by_id.damaged,
              by_place.damaged);
    }
  }

  void compare_queues() {
    for (const auto& [name, queue] : queues_) {
      const auto& [record, sums] = queue;
      const std::string of_queue = "queue " + name + ": ";
      compare(of_queue + "waiting tasks", record.waiting, sums.waiting);
      compare(of_queue + "dead tasks", record.dead, sums.dead);
      compare(of_queue + "bytes of payload", record.bytes, sums.bytes);
      compare(of_queue + "tasks in the ready lane", record.in_ready_lane, sums.in_ready_lane);
      compare(of_queue + "tasks in the webhook lane", record.in_webhook_lane, sums.in_webhook_lane);
    }
  }

  Result<void> compare_due_counts() {
    const Result<std::vector<DueCount>> counts = store_.due_counts();
    ASSIGN_OR_RETURN(const bool is_read,
                     findings_.expect_read(counts, "the forecast's counts cannot be read"));
    if (!is_read) return ok();
    findings_.report.due_bins = counts->size();
    for (const auto& [bin, count] : *counts) {
      const std::string what = "tasks due in " + describe(bin);
      if (count < 0) {
        findings_.add(what + ": the stored count is negative: " + std::to_string(count));
      } else {
        compare(what, static_cast<std::uint64_t>(count), due_sums_[bin]);
      }
      due_sums_.erase(bin);
    }
    for (const auto& [bin, sum] : due_sums_) compare("tasks due in " + describe(bin), 0, sum);
    return ok();
  }

  static LaneCount& count_of(LaneCounts& counts, Lane lane) noexcept {
    return counts[static_cast<std::size_t>(lane)];
  }

  Store& store_;
  StoreFindings findings_;
  KeyCheck keys_{store_, findings_};
  bool has_queues_ = false;  // if false, the checks that need the queues are skipped
  std::map<std::string, CheckedQueue> queues_;
  // If the records cannot be read by id to the end: the last id that was read. check_task() then
  // runs for higher ids when they are read by place.
  TaskId read_by_id_to_{std::numeric_limits<std::uint64_t>::max()};
  std::map<DueBin, std::uint64_t> due_sums_;
  LaneCounts by_id_{};
  LaneCounts by_place_{};
};

}  // namespace

std::string to_string(const StoreReport& report) {
  std::uint64_t all = 0;
  std::string lanes;
  for (std::size_t i = 0; i < report.records.size(); ++i) {
    all += report.records[i];
    lanes +=
        (i == 0 ? "" : ", ") + std::string(kLaneNames[i]) + ' ' + std::to_string(report.records[i]);
  }
  std::string text = "records     " + std::to_string(all) + " (" + lanes + ")\n";
  if (report.shards > 1) text += "shards      " + std::to_string(report.shards) + '\n';
  text += "queues      " + std::to_string(report.queues) + '\n';
  text += "schedules   " + std::to_string(report.schedules) + '\n';
  text += "due bins    " + std::to_string(report.due_bins) + '\n';
  text += "quarantine  " + std::to_string(report.quarantined) + '\n';
  for (const std::string& note : report.notes) text += "note: " + note + '\n';
  if (report.is_sound()) return text + "all is well\n";
  for (const std::string& finding : report.findings) text += "wrong: " + finding + '\n';
  if (report.finding_count > report.findings.size()) {
    text += "and " + std::to_string(report.finding_count - report.findings.size()) + " more\n";
  }
  if (report.ended_by) text += "not all was read: " + report.ended_by->message + '\n';
  return text;
}

void add_shard(StoreReport& sum, const StoreReport& report, std::uint32_t shard) {
  const std::string name = "shard " + std::to_string(shard);
  for (std::size_t i = 0; i < sum.records.size(); ++i) sum.records[i] += report.records[i];
  sum.queues += report.queues;
  sum.schedules += report.schedules;
  sum.due_bins += report.due_bins;
  sum.quarantined += report.quarantined;
  sum.finding_count += report.finding_count;
  for (const std::string& finding : report.findings) {
    if (sum.findings.size() == StoreReport::kMaxFindings) break;
    sum.findings.push_back(name);
    sum.findings.back().append(": ").append(finding);
  }
  if (report.ended_by) sum.ended_by = with_context(name, *report.ended_by);
}

StoreReport check_store(Store& store, const std::function<void(std::uint64_t)>& at) {
  return StoreCheck(store, at).run();
}

}  // namespace detent
