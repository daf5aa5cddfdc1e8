#include "store/store_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/wall_time.h"

namespace detent {

namespace {

constexpr std::size_t kPageTasks = 1'000;
constexpr std::array<std::string_view, 4> kLaneNames{"due", "ready", "dead", "ended"};

std::string_view name_of(Lane lane) noexcept { return kLaneNames[static_cast<std::size_t>(lane)]; }

bool is_in_webhook_lane(const Place& place) noexcept { return (place.queue & kWebhookLane) != 0; }

std::string describe(const Place& place) {
  std::string text = "task " + to_string(place.id) + " in the " + std::string(name_of(place.lane));
  text += is_in_webhook_lane(place) ? " webhook lane" : " lane";
  const std::uint32_t queue = place.queue & ~kWebhookLane;
  if (queue != 0) text += " of queue number " + std::to_string(queue);
  return text + " at " + format_rfc3339(place.at);
}

std::string describe(DueBin bin) {
  return std::string(bin.width == DueBin::Width::day ? "the day" : "the minute") + " from " +
         format_rfc3339(begin_of(bin));
}

/// A queue as stored, and what its records add up to.
struct CheckedQueue {
  QueueRecord record;
  QueueRecord sums;  // the counts only
};

class StoreCheck {
 public:
  StoreCheck(Store& store, const std::function<void(std::uint64_t)>& at) : store_(store), at_(at) {}

  Result<StoreReport> run() {
    TRY(read_queues());
    TRY(read_schedules());
    TRY(read_by_id());
    TRY(read_lane(Lane::due, 0));
    TRY(read_lane(Lane::ended, 0));
    // Also the numbers that no queue has any more: nothing may lie there.
    for (std::uint32_t left = store_.last_queue_number(); left > 0; --left) {
      TRY(read_lane(Lane::ready, left));
      TRY(read_lane(Lane::ready, left | kWebhookLane));
      TRY(read_lane(Lane::dead, left));
    }
    compare_lanes();
    compare_queues();
    TRY(compare_due_counts());
    ASSIGN_OR_RETURN(report_.quarantined, store_.quarantined());
    return std::move(report_);
  }

 private:
  /// What one way through the records met in a lane.
  struct LaneCount {
    std::uint64_t sound = 0;
    std::uint64_t damaged = 0;
  };
  using LaneCounts = std::array<LaneCount, 4>;

  void find_fault(std::string what) {
    ++report_.finding_count;
    if (report_.findings.size() < StoreReport::kMaxFindings) {
      report_.findings.push_back(std::move(what));
    }
  }

  void note_read(const TaskPage& page) {
    read_ += page.tasks.size() + page.damaged.size();
    at_(read_);
  }

  Result<void> read_queues() {
    ASSIGN_OR_RETURN(const std::vector<QueueRecord> records, store_.queues());
    report_.queues = records.size();
    std::map<std::uint32_t, std::string> names;
    for (const QueueRecord& record : records) {
      if (record.number == 0 || record.number > store_.last_queue_number()) {
        find_fault("queue " + record.queue + ": number " + std::to_string(record.number) +
                   " was never given out");
      }
      const auto [other, is_new] = names.emplace(record.number, record.queue);
      if (!is_new) {
        find_fault("queue " + record.queue + ": has the number of queue " + other->second);
      }
      if (!queues_.emplace(record.queue, CheckedQueue{record, {}}).second) {
        find_fault("queue " + record.queue + ": is there twice");
      }
    }
    return ok();
  }

  /// One that is damaged hides the others: a store reads all or none.
  Result<void> read_schedules() {
    const Result<std::vector<ScheduleRecord>> records = store_.schedules();
    if (!records && records.error().code != ErrorCode::data_loss) return records.error();
    if (!records) {
      find_fault(records.error().message);
      return ok();
    }
    report_.schedules = records->size();
    std::string_view last;
    for (const ScheduleRecord& record : *records) {
      const RecurringSchedule& schedule = record.schedule;
      if (const Result<void> valid = validate(schedule); !valid) {
        find_fault("schedule " + schedule.name + ": " + valid.error().message);
      }
      if (schedule.name <= last) find_fault("schedule " + schedule.name + ": is out of order");
      last = schedule.name;
    }
    return ok();
  }

  // ---- the records by id ----

  Result<void> read_by_id() {
    for (TaskId after{};;) {
      ASSIGN_OR_RETURN(const TaskPage page, store_.read_by_id(after, kPageTasks));
      note_read(page);
      for (const Place& place : page.damaged) {
        find_fault(describe(place) + ": the record is damaged");
        ++count_of(by_id_, place.lane).damaged;
      }
      TRY(check_places(page.tasks));
      for (const StoredTask& stored : page.tasks) {
        if (stored.place.id <= after)
          find_fault(describe(stored.place) + ": is out of order by id");
        after = stored.place.id;
        TRY(check_task(stored));
      }
      if (!page.read_to) return ok();
      after = page.read_to->id;
    }
  }

  /// What is found by id lies where its place says.
  Result<void> check_places(std::span<const StoredTask> tasks) {
    std::vector<Place> places;
    places.reserve(tasks.size());
    for (const StoredTask& stored : tasks) places.push_back(stored.place);
    ASSIGN_OR_RETURN(const auto records, store_.read_at(places));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!records[i]) {
        find_fault(describe(places[i]) +
                   ": not to be read by its place: " + records[i].error().message);
      } else if (*records[i] != tasks[i].task) {
        find_fault(describe(places[i]) + ": another record by its place than by its id");
      }
    }
    return ok();
  }

  Result<void> check_task(const StoredTask& stored) {
    const auto& [place, task] = stored;
    ++count_of(by_id_, place.lane).sound;
    if (task.id != place.id) find_fault(describe(place) + ": the record is another task's");
    if (place.id > store_.last_id()) find_fault(describe(place) + ": this id was never given out");
    check_lane(stored);
    if (task.standing != Standing::live && task.standing != Standing::dead) return ok();
    const auto queue = queues_.find(task.queue);
    if (queue == queues_.end()) {
      find_fault(describe(place) + ": there is no queue " + task.queue);
      return ok();
    }
    if (place.queue != 0 && (place.queue & ~kWebhookLane) != queue->second.record.number) {
      find_fault(describe(place) + ": lies with another queue than its own, " + task.queue);
    }
    add_to_sums(stored, queue->second.sums);
    return check_key(stored, queue->second.record.number);
  }

  /// Lane and place are what the engine gives to such a task.
  void check_lane(const StoredTask& stored) {
    const auto& [place, task] = stored;
    const bool has_webhook = !task.webhook.empty();
    bool is_right = false;
    switch (place.lane) {
      case Lane::due:
        // Later than its due time: so an earlier format placed what was overdue.
        is_right = task.standing == Standing::live && place.at >= task.due_at;
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
    if (!is_right) find_fault(describe(place) + ": the record says that it belongs elsewhere");
  }

  void add_to_sums(const StoredTask& stored, QueueRecord& sums) {
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
    ++due_sums_[due_bin_of(task.due_at, task.created_at)];
  }

  Result<void> check_key(const StoredTask& stored, std::uint32_t queue) {
    const Task& task = stored.task;
    if (task.key.empty()) return ok();
    const Result<std::optional<KeyRecord>> key = store_.find_key(queue, task.key);
    if (!key && key.error().code != ErrorCode::data_loss) return key.error();
    if (!key) {
      find_fault(describe(stored.place) + ": its key is damaged: " + key.error().message);
    } else if (!*key || (*key)->id != task.id) {
      find_fault(describe(stored.place) + ": its key does not stand for it");
    } else if ((*key)->expires_at) {
      find_fault(describe(stored.place) + ": its key expires as if it had ended");
    }
    return ok();
  }

  // ---- the records by place ----

  Result<void> read_lane(Lane lane, std::uint32_t queue) {
    const Place end = end_of(lane, queue);
    for (Place after = begin_of(lane, queue);;) {
      ASSIGN_OR_RETURN(const TaskPage page, store_.read(after, end, kPageTasks));
      note_read(page);
      count_of(by_place_, lane).damaged += page.damaged.size();
      for (const StoredTask& stored : page.tasks) {
        if (stored.place <= after) find_fault(describe(stored.place) + ": is out of order");
        after = stored.place;
        ++count_of(by_place_, lane).sound;
        TRY(check_found(stored));
      }
      if (!page.read_to) return ok();
      after = *page.read_to;
    }
  }

  /// What lies at a place is found by its id, there.
  Result<void> check_found(const StoredTask& stored) {
    const Result<std::optional<StoredTask>> found = store_.find(stored.place.id);
    if (!found && found.error().code != ErrorCode::data_loss) return found.error();
    if (!found || !*found) {
      find_fault(describe(stored.place) + ": not to be found by its id");
    } else if ((*found)->place != stored.place) {
      find_fault(describe(stored.place) + ": its id leads elsewhere, to " +
                 describe((*found)->place));
    }
    return ok();
  }

  // ---- the sums ----

  void compare(const std::string& what, std::uint64_t told, std::uint64_t counted) {
    if (told == counted) return;
    find_fault(what + ": " + std::to_string(told) + " are said to be there, " +
               std::to_string(counted) + " are");
  }

  void compare_lanes() {
    for (const Lane lane : {Lane::due, Lane::ready, Lane::dead, Lane::ended}) {
      const LaneCount& by_id = count_of(by_id_, lane);
      const LaneCount& by_place = count_of(by_place_, lane);
      const std::string name = "the " + std::string(name_of(lane)) + " lane";
      report_.records[static_cast<std::size_t>(lane)] = by_place.sound;
      compare("records of " + name + " by id", by_id.sound, by_place.sound);
      compare("damaged records of " + name + " by id", by_id.damaged, by_place.damaged);
    }
  }

  void compare_queues() {
    for (const auto& [name, queue] : queues_) {
      const auto& [record, sums] = queue;
      const std::string of_queue = "queue " + name + ": ";
      compare(of_queue + "tasks that wait", record.waiting, sums.waiting);
      compare(of_queue + "dead tasks", record.dead, sums.dead);
      compare(of_queue + "bytes of payload", record.bytes, sums.bytes);
      compare(of_queue + "tasks in the ready lane", record.in_ready_lane, sums.in_ready_lane);
      compare(of_queue + "tasks in the webhook lane", record.in_webhook_lane, sums.in_webhook_lane);
    }
  }

  Result<void> compare_due_counts() {
    ASSIGN_OR_RETURN(const std::vector<DueCount> counts, store_.due_counts());
    report_.due_bins = counts.size();
    for (const auto& [bin, count] : counts) {
      const std::string what = "tasks due in " + describe(bin);
      if (count < 0) {
        find_fault(what + ": a count below zero");
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
  const std::function<void(std::uint64_t)>& at_;
  std::uint64_t read_ = 0;
  std::map<std::string, CheckedQueue> queues_;
  std::map<DueBin, std::uint64_t> due_sums_;
  LaneCounts by_id_{};
  LaneCounts by_place_{};
  StoreReport report_;
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
  text += "queues      " + std::to_string(report.queues) + '\n';
  text += "schedules   " + std::to_string(report.schedules) + '\n';
  text += "due bins    " + std::to_string(report.due_bins) + '\n';
  text += "quarantine  " + std::to_string(report.quarantined) + '\n';
  if (report.is_sound()) return text + "all is well\n";
  for (const std::string& finding : report.findings) text += "wrong: " + finding + '\n';
  if (report.finding_count > report.findings.size()) {
    text += "and " + std::to_string(report.finding_count - report.findings.size()) + " more\n";
  }
  return text;
}

Result<StoreReport> check_store(Store& store, const std::function<void(std::uint64_t)>& at) {
  return StoreCheck(store, at).run();
}

}  // namespace detent
