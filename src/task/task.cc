#include "task/task.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace detent {

namespace {

/// The bytes that a queue name may contain. A table does not depend on the locale, and it is fast:
/// this check runs for every request.
constexpr std::array<bool, 256> kQueueNameBytes = [] {
  std::array<bool, 256> allowed{};
  for (char c = 'a'; c <= 'z'; ++c) allowed[static_cast<unsigned char>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) allowed[static_cast<unsigned char>(c)] = true;
  for (char c = '0'; c <= '9'; ++c) allowed[static_cast<unsigned char>(c)] = true;
  for (const char c : std::string_view("-+/;:.$_()")) allowed[static_cast<unsigned char>(c)] = true;
  return allowed;
}();

}  // namespace

std::optional<TaskId> parse_task_id(std::string_view text) noexcept {
  // from_chars accepts a minus sign only for signed types. It does not accept a plus sign, a space
  // or a prefix. A first digit of 0 is a leading zero or the id 0, which is not a task id.
  if (text.empty() || text.front() == '0') return std::nullopt;
  TaskId id;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id.value);
  if (error != std::errc{} || stop != end || id.value >= TaskId::kEnd) return std::nullopt;
  return id;
}

std::string to_string(TaskId id) { return std::to_string(id.value); }

bool is_queue_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kMaxQueueNameBytes || name.front() == '-') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return kQueueNameBytes[static_cast<unsigned char>(c)]; });
}

void add_attempt(Task& task, Attempt attempt) {
  if (task.history.size() >= kMaxHistory) task.history.erase(task.history.begin());
  task.history.push_back(std::move(attempt));
}

std::string_view last_error(const Task& task) noexcept {
  if (task.history.empty()) return {};
  return task.history.back().error;
}

}  // namespace detent
