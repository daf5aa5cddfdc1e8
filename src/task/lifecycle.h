// The life of a task as a table: for each verb and state, the next state.
//
//                 no task    scheduled  ready      leased     dead
//  schedule       scheduled  –          –          –          –
//  restore        scheduled  –          –          –          –
//  restore_dead   dead       –          –          –          –
//  become_due     –          ready      –          –          –
//  move           –          scheduled  scheduled  –          scheduled
//  edit           –          scheduled  ready      –          dead
//  run_now        –          ready      ready      –          ready
//  run_scheduled  –          ready      –          –          –
//  lease          –          –          leased     –          –
//  complete       –          –          –          completed  –
//  fail           –          –          –          scheduled  –
//  fail_last      –          –          –          dead       –
//  extend         –          –          –          leased     –
//  release        –          –          –          ready      –
//  release_later  –          –          –          scheduled  –
//  run_out        –          –          –          scheduled  –
//  run_out_last   –          –          –          dead       –
//  run_out_ready  –          –          –          ready      –
//  bury           –          –          –          dead       –
//  redrive        –          –          –          –          ready
//  cancel         –          cancelled  cancelled  –          cancelled
//  purge          –          cancelled  cancelled  –          cancelled
//
// - schedule, restore, move: if the task is already due, become_due follows at once.
// - edit: changes other fields than the due time.
// - run_scheduled: one task of a queue whose scheduled tasks are all made due.
// - fail: a failed attempt leads back to scheduled (after a backoff), or to dead if it was the last
//   attempt (fail_last).
// - release: the task is ready again, or scheduled if a delay was given (release_later).
// - run_out: an expired lease is an attempt that failed without a report. It leads to dead after
//   the last attempt (run_out_last), or always to ready if the lease asked for it (run_out_ready).
// - Completed and cancelled are ends: the record is removed, and no verb leads out of them.
//
// "–" means a conflict, or that there is no such task: the state is unchanged. The engine carries
// out what the table says (src/engine/verbs/transitions.h). Pure: no I/O, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace detent {

enum class TaskState : std::uint8_t { scheduled, ready, leased, dead, completed, cancelled };
enum class TaskVerb : std::uint8_t {
  schedule,
  restore,
  restore_dead,
  become_due,
  move,
  edit,
  run_now,
  run_scheduled,
  lease,
  complete,
  fail,
  fail_last,
  extend,
  release,
  release_later,
  run_out,
  run_out_last,
  run_out_ready,
  bury,
  redrive,
  cancel,
  purge
};

/// The state after `verb`; empty if the verb is not allowed in `state`. An empty `state` means that
/// the task does not exist yet.
std::optional<TaskState> next_state(std::optional<TaskState> state, TaskVerb verb) noexcept;

/// The state after a verb that is allowed in `state`. Stops the process if the verb is not allowed.
/// If a verb may be refused, check it with next_state() first.
TaskState state_after(std::optional<TaskState> state, TaskVerb verb) noexcept;

/// Whether a task in this state can still run without a request: it is scheduled, ready or leased.
bool is_live(TaskState state) noexcept;

std::string_view to_string(TaskState state) noexcept;
/// Empty if no state has this name.
std::optional<TaskState> parse_task_state(std::string_view text) noexcept;

}  // namespace detent
