#include "store/key_check.h"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/lasting_keys.h"

namespace detent {

namespace {

constexpr std::size_t kPageKeys = 1'000;

bool has_ended(const Task& task) noexcept {
  return task.standing == Standing::completed || task.standing == Standing::cancelled;
}

}  // namespace

void KeyCheck::set_queues(std::map<std::uint32_t, std::string> names) {
  has_queues_ = true;
  names_ = std::move(names);
}

Result<void> KeyCheck::check_key_of(const Task& task, std::uint32_t queue,
                                    const std::string& what) {
  const Result<std::optional<KeyRecord>> key = store_.find_key(queue, task.key);
  ASSIGN_OR_RETURN(const bool is_read, findings_.expect_read(key, what + ": its key is damaged"));
  if (!is_read) {
    damaged_keys_.emplace(queue, task.key);
  } else if (!*key || (*key)->id != task.id) {
    findings_.add(what + ": its key stands for another task or does not exist");
  } else if ((*key)->expires_at) {
    findings_.add(what + ": its key expires, although the task has not ended");
  }
  return ok();
}

Result<void> KeyCheck::read_keys(std::uint32_t queue) {
  std::size_t limit = kPageKeys;
  for (std::string after;;) {
    const Result<KeyPage> page = read_in_parts(
        limit, [&](std::size_t most) { return store_.read_keys(queue, after, most); });
    const std::string from = after.empty() ? "" : " after \"" + after + "\"";
    const std::string what = "keys of " + describe(queue) + " cannot be read" + from;
    ASSIGN_OR_RETURN(const bool is_read, findings_.expect_read(page, what));
    if (!is_read) return ok();
    findings_.note_read(page->records.size() + page->damaged.size());
    for (const std::string& key : page->damaged) {
      if (damaged_keys_.contains({queue, key})) continue;
      findings_.add(describe({.queue = queue, .key = key, .id = {}}) + "its record is damaged");
    }
    TRY(check_expiries(queue, page->records));
    if (queue == kNoQueue) {
      for (const KeyRecord& record : page->records) check_own(record);
    } else {
      TRY(check_tasks_of(page->records));
    }
    if (!page->read_to) return ok();
    after = *page->read_to;
  }
}

std::string KeyCheck::describe(std::uint32_t queue) const {
  if (queue == kNoQueue) return "no queue";
  const auto name = names_.find(queue);
  return "queue " + (name != names_.end() ? name->second : "number " + std::to_string(queue));
}

std::string KeyCheck::describe(const KeyRecord& record) const {
  return "key \"" + record.key + "\" of " + describe(record.queue) + ": ";
}

/// An entry of the order of expiry without its key is not a finding, because trim_keys() drops such
/// entries.
Result<void> KeyCheck::check_expiries(std::uint32_t queue, std::span<const KeyRecord> records) {
  const Result<std::vector<KeyRecord>> wrong = store_.wrong_expiries(records);
  const std::string what = "the order of expiry of keys of " + describe(queue) + " cannot be read";
  ASSIGN_OR_RETURN(const bool is_read, findings_.expect_read(wrong, what));
  if (!is_read) return ok();
  for (const KeyRecord& record : *wrong) {
    findings_.add(describe(record) + "is missing from its place in the order of expiry");
  }
  return ok();
}

/// A key of the engine either is the id of its task as text, or it expires, or it is one of the
/// lasting keys.
void KeyCheck::check_own(const KeyRecord& record) {
  const std::optional<TaskId> named = parse_task_id(record.key);
  if (named && *named != record.id) {
    findings_.add(describe(record) + "stands for task " + to_string(record.id));
  } else if (!named && !record.expires_at && !record.key.starts_with(kLastingKeys)) {
    findings_.add(describe(record) + "does not expire, but should");
  }
}

Result<void> KeyCheck::check_tasks_of(std::span<const KeyRecord> records) {
  std::vector<TaskId> ids;
  for (const KeyRecord& record : records) {
    if (!record.expires_at) ids.push_back(record.id);
  }
  const Result<std::vector<StoredTask>> found = store_.find_all(ids);
  if (!found && !is_damage(found.error())) return found.error();
  std::unordered_map<std::uint64_t, const Task*> tasks;
  for (std::size_t i = 0; found && i < found->size(); ++i) {
    tasks.emplace((*found)[i].place.id.value, &(*found)[i].task);
  }
  for (const KeyRecord& record : records) {
    if (record.expires_at) continue;
    if (const auto task = tasks.find(record.id.value); task != tasks.end()) {
      check_task_of(record, *task->second);
      continue;
    }
    const Result<std::optional<StoredTask>> one = store_.find(record.id);
    if (!one && is_damage(one.error())) continue;  // the check of the records reports it
    if (!one) return one.error();
    if (*one) {
      check_task_of(record, (*one)->task);
    } else {
      findings_.add(describe(record) + "stands for task " + to_string(record.id) +
                    ", which does not exist, but the key does not expire");
    }
  }
  return ok();
}

void KeyCheck::check_task_of(const KeyRecord& record, const Task& task) {
  const std::string stands = describe(record) + "stands for task " + to_string(record.id);
  const auto queue = names_.find(record.queue);
  if (has_queues_ && queue == names_.end()) {
    findings_.add(describe(record) + "its queue does not exist, but the key does not expire");
  } else if (has_ended(task)) {
    findings_.add(stands + ", which has ended, but the key does not expire");
  } else if (task.key != record.key || (has_queues_ && task.queue != queue->second)) {
    findings_.add(stands + ", which has another key or queue");
  }
}

}  // namespace detent
