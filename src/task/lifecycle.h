// A task's life as one table: which verb is allowed in which state, and where it leads.
//
//              become_due  lease    complete   fail       fail_last  release  cancel
//  scheduled   ready       –        –          –          –          –        cancelled
//  ready       –           leased   –          –          –          –        cancelled
//  leased      –           –        completed  scheduled  dead       ready    –
//  dead        –           –        –          –          –          –        cancelled
//
// A failed attempt leads back to scheduled (after a backoff), or to dead when it was the last one
// (fail_last). A lease that runs out is an attempt that failed without a word. Completed and
// cancelled are ends: the record is removed. "–" is a conflict: nothing changes. Pure: no I/O, no
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace detent {

enum class TaskState : std::uint8_t { scheduled, ready, leased, dead, completed, cancelled };
enum class TaskVerb : std::uint8_t {
  become_due,
  lease,
  complete,
  fail,
  fail_last,
  release,
  cancel
};

/// The state after `verb`, or nothing when the verb is not allowed in `state`.
std::optional<TaskState> next_state(TaskState state, TaskVerb verb) noexcept;

std::string_view to_string(TaskState state) noexcept;

}  // namespace detent
