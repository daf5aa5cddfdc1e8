#include "task/lifecycle.h"

#include <array>
#include <cstddef>

namespace detent {

namespace {

using Cell = std::optional<TaskState>;
using Row = std::array<Cell, 7>;
constexpr std::size_t kStateCount = 6;

constexpr Cell no = std::nullopt;
constexpr Cell ready = TaskState::ready;
constexpr Cell leased = TaskState::leased;
constexpr Cell scheduled = TaskState::scheduled;
constexpr Cell dead = TaskState::dead;
constexpr Cell completed = TaskState::completed;
constexpr Cell cancelled = TaskState::cancelled;

// The table of lifecycle.h. Rows are in the order of TaskState, columns in that of TaskVerb.
// clang-format off
constexpr std::array<Row, kStateCount> kNext{{
  // become_due lease   complete   fail       fail_last release cancel
    {ready,     no,     no,        no,        no,       no,     cancelled},  // scheduled
    {no,        leased, no,        no,        no,       no,     cancelled},  // ready
    {no,        no,     completed, scheduled, dead,     ready,  no},         // leased
    {no,        no,     no,        no,        no,       no,     cancelled},  // dead
    {no,        no,     no,        no,        no,       no,     no},         // completed
    {no,        no,     no,        no,        no,       no,     no},         // cancelled
}};
// clang-format on

static_assert(static_cast<std::size_t>(TaskState::cancelled) + 1 == kStateCount);
static_assert(static_cast<std::size_t>(TaskVerb::cancel) + 1 == std::tuple_size_v<Row>);

}  // namespace

std::optional<TaskState> next_state(TaskState state, TaskVerb verb) noexcept {
  return kNext[static_cast<std::size_t>(state)][static_cast<std::size_t>(verb)];
}

std::string_view to_string(TaskState state) noexcept {
  switch (state) {
    case TaskState::scheduled:
      return "scheduled";
    case TaskState::ready:
      return "ready";
    case TaskState::leased:
      return "leased";
    case TaskState::dead:
      return "dead";
    case TaskState::completed:
      return "completed";
    case TaskState::cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace detent
