// A port of the persistent wheel of many tutorials, with its bugs: a wheel in memory and a table in
// a database. The regression cases PW_* and HY_* use it. Tests only.
//
// A task that is due within the threshold goes only into the wheel, any other task only into the
// table. Every hour, a scan moves the rows that are due within the threshold to the wheel, and
// deletes them. The wheel has one slot per second, and a turn takes one day.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace detent::classic {

/// The table: tasks by id, with their due times in seconds. It outlives the wheels that use it.
/// Statements can be made to fail, and the port ignores all results.
class TaskTable {
 public:
  bool insert(int id, std::int64_t due) { return works() && rows_.emplace(id, due).second; }
  bool remove(int id) { return works() && rows_.erase(id) > 0; }

  /// SELECT … WHERE due > after AND due <= until ORDER BY due LIMIT … OFFSET …
  std::vector<std::pair<int, std::int64_t>> select(std::int64_t after, std::int64_t until,
                                                   std::size_t limit, std::size_t offset) const {
    std::vector<std::pair<int, std::int64_t>> found;
    for (const auto& row : rows_) {
      if (row.second > after && row.second <= until) found.emplace_back(row);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    found.erase(found.begin(),
                found.begin() + static_cast<std::ptrdiff_t>(std::min(offset, found.size())));
    found.resize(std::min(limit, found.size()));
    return found;
  }

  void fail_statements(int count) { failing_ = count; }
  std::size_t size() const { return rows_.size(); }

 private:
  bool works() { return failing_ == 0 || failing_-- == 0; }

  std::map<int, std::int64_t> rows_;
  int failing_ = 0;
};

class PersistentWheelPort {
 public:
  static constexpr std::int64_t kHour = 3'600;
  static constexpr std::int64_t kDay = 24 * kHour;
  static constexpr std::int64_t kNoLimit = INT64_MAX;
  using Rows = std::vector<std::pair<int, std::int64_t>>;

  struct Options {
    std::int64_t threshold = kHour;  // tasks that are due within it belong to the wheel
    std::size_t page = static_cast<std::size_t>(kNoLimit);
  };

  /// Starts the wheel. The first scan comes after one hour.
  PersistentWheelPort(TaskTable& table, std::int64_t now, Options options)
      : table_(table), options_(options), now_(now), next_scan_(now + kHour), slots_(kDay) {}

  void add(int id, std::int64_t delay) {
    if (delay <= options_.threshold) {
      put(id, now_ + delay);
    } else {
      table_.insert(id, now_ + delay);
    }
  }

  /// The hybrid design: moves a task of the wheel to the table, because it is now due much later.
  void move_to_table(int id, std::int64_t due) {
    table_.insert(id, due);
    for (std::vector<int>& slot : slots_) std::erase(slot, id);
  }

  void run_until(std::int64_t second) {
    while (now_ < second) {
      ++now_;
      if (now_ == next_scan_) scan();
      for (const int id : std::exchange(slot_of(now_), {})) fired_.emplace_back(id, now_);
    }
  }

  void scan() {
    next_scan_ = now_ + kHour;
    for (std::size_t offset = 0;; offset += options_.page) {
      const Rows rows = select(offset);
      load(rows);
      if (rows.size() < options_.page) return;
    }
  }
  // The two halves of one page. Between them, another node may do the same.
  Rows select(std::size_t offset) const {
    return table_.select(now_, now_ + options_.threshold, options_.page, offset);
  }
  void load(const Rows& rows) {
    for (const auto& [id, due] : rows) {
      put(id, due);
      table_.remove(id);
    }
  }

  /// The tasks that fired, with their times.
  const std::vector<std::pair<int, std::int64_t>>& fired() const { return fired_; }
  std::size_t in_memory() const {
    std::size_t count = 0;
    for (const std::vector<int>& slot : slots_) count += slot.size();
    return count;
  }

 private:
  std::vector<int>& slot_of(std::int64_t second) {
    return slots_[static_cast<std::size_t>(second % kDay)];
  }
  void put(int id, std::int64_t due) { slot_of(due).push_back(id); }

  TaskTable& table_;
  Options options_;
  std::int64_t now_;
  std::int64_t next_scan_;
  std::vector<std::vector<int>> slots_;
  std::vector<std::pair<int, std::int64_t>> fired_;
};

}  // namespace detent::classic
