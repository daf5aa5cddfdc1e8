#include "task/lifecycle.h"

#include <array>
#include <cstddef>

namespace detent {

namespace {

using Cell = std::optional<TaskState>;
using Row = std::array<Cell, 7>;
constexpr std::size_t kStateCount = 6;

using enum TaskState;
constexpr Cell kNo = std::nullopt;

// The table of lifecycle.h. Rows are in the order of TaskState, columns in that of TaskVerb.
// clang-format off
constexpr std::array<Row, kStateCount> kNext{{
  // become_due lease   complete   fail       fail_last release cancel
    {ready,     kNo,    kNo,       kNo,       kNo,      kNo,    cancelled},  // scheduled
    {kNo,       leased, kNo,       kNo,       kNo,      kNo,    cancelled},  // ready
    {kNo,       kNo,    completed, scheduled, dead,     ready,  kNo},        // leased
    {kNo,       kNo,    kNo,       kNo,       kNo,      kNo,    cancelled},  // dead
    {kNo,       kNo,    kNo,       kNo,       kNo,      kNo,    kNo},        // completed
    {kNo,       kNo,    kNo,       kNo,       kNo,      kNo,    kNo},        // cancelled
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
