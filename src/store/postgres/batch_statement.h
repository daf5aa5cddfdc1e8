// The statement that writes a batch: all its tasks, queues, schedules, keys and counts.
#pragma once

#include <cstdint>

#include "store/postgres/fenced_statement.h"
#include "store/postgres/statement.h"
#include "store/store.h"

namespace detent {

/// The statement for all changes of a batch. Requires: the requirements of WriteBatch.
Statement batch_statement(Fence fence, const WriteBatch& batch);

/// An instant in the columns of detent.task.
std::int64_t milliseconds_of(WallTime at) noexcept;

}  // namespace detent
