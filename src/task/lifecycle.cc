#include "task/lifecycle.h"

#include <array>
#include <cstddef>

#include "detent/check.h"

namespace detent {

namespace {

using Cell = std::optional<TaskState>;
using Row = std::array<Cell, 5>;
constexpr std::size_t kVerbCount = 22;

using enum TaskState;
constexpr Cell kNo = std::nullopt;

// The table of lifecycle.h. The rows are in the order of TaskVerb. The first column is "no task",
// and the other columns are in the order of TaskState.
// clang-format off
constexpr std::array<Row, kVerbCount> kNext{{
  // no task   scheduled  ready      leased     dead
    {scheduled, kNo,       kNo,       kNo,       kNo},        // schedule
    {scheduled, kNo,       kNo,       kNo,       kNo},        // restore
    {dead,      kNo,       kNo,       kNo,       kNo},        // restore_dead
    {kNo,       ready,     kNo,       kNo,       kNo},        // become_due
    {kNo,       scheduled, scheduled, kNo,       scheduled},  // move
    {kNo,       scheduled, ready,     kNo,       dead},       // edit
    {kNo,       ready,     ready,     kNo,       ready},      // run_now
    {kNo,       ready,     kNo,       kNo,       kNo},        // run_scheduled
    {kNo,       kNo,       leased,    kNo,       kNo},        // lease
    {kNo,       kNo,       kNo,       completed, kNo},        // complete
    {kNo,       kNo,       kNo,       scheduled, kNo},        // fail
    {kNo,       kNo,       kNo,       dead,      kNo},        // fail_last
    {kNo,       kNo,       kNo,       leased,    kNo},        // extend
    {kNo,       kNo,       kNo,       ready,     kNo},        // release
    {kNo,       kNo,       kNo,       scheduled, kNo},        // release_later
    {kNo,       kNo,       kNo,       scheduled, kNo},        // run_out
    {kNo,       kNo,       kNo,       dead,      kNo},        // run_out_last
    {kNo,       kNo,       kNo,       ready,     kNo},        // run_out_ready
    {kNo,       kNo,       kNo,       dead,      kNo},        // bury
    {kNo,       kNo,       kNo,       kNo,       ready},      // redrive
    {kNo,       cancelled, cancelled, kNo,       cancelled},  // cancel
    {kNo,       cancelled, cancelled, kNo,       cancelled},  // purge
}};
// clang-format on

static_assert(static_cast<std::size_t>(TaskVerb::purge) + 1 == kVerbCount);
static_assert(static_cast<std::size_t>(dead) + 2 == std::tuple_size_v<Row>);

}  // namespace

std::optional<TaskState> next_state(std::optional<TaskState> state, TaskVerb verb) noexcept {
  if (state == completed || state == cancelled) return std::nullopt;
  const std::size_t column = state ? static_cast<std::size_t>(*state) + 1 : 0;
  return kNext[static_cast<std::size_t>(verb)][column];
}

TaskState state_after(std::optional<TaskState> state, TaskVerb verb) noexcept {
  const std::optional<TaskState> next = next_state(state, verb);
  DETENT_CHECK(next.has_value());
  return *next;
}

bool is_live(TaskState state) noexcept {
  return state == scheduled || state == ready || state == leased;
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

std::optional<TaskState> parse_task_state(std::string_view text) noexcept {
  for (const TaskState state : {scheduled, ready, leased, dead, completed, cancelled}) {
    if (to_string(state) == text) return state;
  }
  return std::nullopt;
}

}  // namespace detent
