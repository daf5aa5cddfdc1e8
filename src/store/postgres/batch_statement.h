// What changes a shard, as one SQL statement: all of it happens, or none.
//
// Each part of it is a WITH query: `fence` updates the shard's row if it carries our epoch and the
// number of our writes, the others change tasks, queues and so on, by arrays. PostgreSQL runs all
// of them on one snapshot, whatever their order, so no part may touch a row of another. What the
// statement answers at last checks them: where a count is not as it must be, a word is read as a
// number, which fails, and with it the statement. So nothing a fenced server sends changes
// anything, and no answer has to be waited for before the transaction ends.
//
// The number of writes tells of a database that failed, or that another one took over from, and no
// longer has a batch that was buffered: behind a pgbouncer a connection survives that.
//
// A statement whose arrays did not arrive in full has not begun: a server that is stopped while it
// sends one holds no lock. One that is stopped in the instant between the statement and the end of
// the transaction holds the shard's row, and PostgreSQL has no time-out for that: whoever takes the
// shard ends that session (shard_lease.h).
#pragma once

#include <cstdint>
#include <string>

#include "store/postgres/statement.h"
#include "store/store.h"

namespace detent {

/// Whose changes they are.
struct Fence {
  std::uint32_t shard = 0;
  std::uint64_t epoch = 0;
  std::uint64_t writes = 0;  // that the shard's row has seen under this epoch
};

/// Thread-compatible. Gathers the parts; `$1` is the shard, as a bigint.
class FencedStatement {
 public:
  explicit FencedStatement(Fence fence);

  /// For the parameters of the parts.
  Statement& parameters() noexcept { return statement_; }
  /// Raises what the shard's row knows of ids and queues; higher than before or not.
  void raise_last(TaskId id, std::uint32_t queue);
  /// Raises the epoch itself; it has seen 1 write then.
  void raise_epoch();
  /// A part named `name`: "delete …".
  void add(std::string_view name, const std::string& sql);
  /// The same, which must answer exactly so many rows.
  void add_exact(std::string_view name, const std::string& sql, std::size_t rows);
  /// It answers one row: a number that means nothing, then the value of `answer`, if there is one.
  Statement finish(const std::string& answer = "") &&;

 private:
  Statement statement_;
  std::string with_;
  std::string checks_;
  std::string raises_ = "writes = writes + 1";
};

/// A condition of a select: the rows of the fence's shard. The select fails, whatever rows there
/// are, when the shard has another epoch: what another owner has made of the tasks would not fit
/// what this one has in memory. Read once a statement, on the snapshot of its rows.
std::string in_shard(Statement& statement, Fence fence);

/// All that a batch changes. Requires: what WriteBatch does.
Statement batch_statement(Fence fence, const WriteBatch& batch);

/// Of a place, in the columns of detent.task. An id above all that there can be is the highest
/// number.
std::int64_t id_number(TaskId id) noexcept;
std::int64_t milliseconds_of(WallTime at) noexcept;

}  // namespace detent
