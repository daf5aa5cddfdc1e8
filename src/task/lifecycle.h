// A task's life as one table: which verb is allowed in which state, and where it leads.
//
//                 no task    scheduled  ready      leased     dead
//  schedule       scheduled  –          –          –          –
//  become_due     –          ready      –          –          –
//  move           –          scheduled  scheduled  –          scheduled
//  run_now        –          ready      ready      –          ready
//  lease          –          –          leased     –          –
//  complete       –          –          –          completed  –
//  fail           –          –          –          scheduled  –
//  fail_last      –          –          –          dead       –
//  extend         –          –          –          leased     –
//  release        –          –          –          ready      –
//  release_later  –          –          –          scheduled  –
//  run_out        –          –          –          scheduled  –
//  run_out_last   –          –          –          dead       –
//  bury           –          –          –          dead       –
//  redrive        –          –          –          –          ready
//  cancel         –          cancelled  cancelled  –          cancelled
//  purge          –          cancelled  cancelled  –          cancelled
//
// A failed attempt leads back to scheduled (after a backoff), or to dead when it was the last one
// (fail_last); a lease that runs out (run_out) is an attempt that failed without a word. A task
// given back is ready again, or scheduled when a delay was asked (release_later). Completed and
// cancelled are ends: the record is removed, and no verb leads out of them. "–" is a conflict, or
// there is no such task: nothing changes. Pure: no I/O, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace detent {

enum class TaskState : std::uint8_t { scheduled, ready, leased, dead, completed, cancelled };
enum class TaskVerb : std::uint8_t {
  schedule,
  become_due,
  move,
  run_now,
  lease,
  complete,
  fail,
  fail_last,
  extend,
  release,
  release_later,
  run_out,
  run_out_last,
  bury,
  redrive,
  cancel,
  purge
};

/// The state after `verb`, or nothing when the verb is not allowed in `state`. No state: there is
/// no such task yet.
std::optional<TaskState> next_state(std::optional<TaskState> state, TaskVerb verb) noexcept;

/// The state after a verb that is allowed in `state`. Stops the process when it is not: whoever
/// changes a task by something that can be refused has asked next_state() before.
TaskState state_after(TaskState state, TaskVerb verb) noexcept;

std::string_view to_string(TaskState state) noexcept;
/// Nothing when no state is called so.
std::optional<TaskState> parse_task_state(std::string_view text) noexcept;

}  // namespace detent
