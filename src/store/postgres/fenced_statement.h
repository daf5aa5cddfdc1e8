// Builds the SQL statement that changes a shard, and that PostgreSQL refuses after another owner
// has taken the shard: here a write with an old epoch is refused. Each change is one statement, so
// it happens completely or not at all.
//
// Each part of the statement is a WITH query. The part `fence` updates the row of the shard, but
// only if the row has our epoch and our number of writes. The other parts change tasks, queues and
// so on; they take arrays. PostgreSQL runs all parts on one snapshot, in any order, so two parts
// must never touch the same row. The final SELECT checks the number of rows that each part changed.
// If a number is wrong, the SELECT reads a word such as `fenced` as a number. That fails, and the
// whole statement fails with it. So a fenced server changes nothing, and the transaction can end in
// the same round trip.
//
// The number of writes shows that the database lost a buffered batch, because it crashed or another
// database took over. Behind a pgbouncer, the connection survives both.
//
// A statement begins only after all of its arrays have arrived. So a server that is stopped while
// it sends a statement holds no lock. But a server can be stopped between the statement and the end
// of its transaction. Then it holds the row of the shard, and PostgreSQL has no time-out for this
// state. The next server that takes the shard ends that session (shard_lease.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/postgres/statement.h"
#include "store/store.h"

namespace detent {

/// The owner of the changes. The row of the shard must have the same values.
struct Fence {
  std::uint32_t shard = 0;
  std::uint64_t epoch = 0;
  std::uint64_t writes = 0;  // number of writes under this epoch
};

/// Collects the parts of a statement. `$1` is the shard, as a bigint. Thread-compatible.
class FencedStatement {
 public:
  explicit FencedStatement(Fence fence);

  /// The statement, to which the caller adds the parameters of its parts.
  Statement& parameters() noexcept { return statement_; }
  /// Raises the last id and the last queue number in the row of the shard. Lower values change
  /// nothing.
  void raise_last(TaskId id, std::uint32_t queue);
  /// Raises the epoch. The number of writes under the new epoch begins at 1.
  void raise_epoch();
  /// Adds a part with the name `name`. `sql` is for example "delete …".
  void add(std::string_view name, const std::string& sql);
  /// Adds a part that must return exactly `rows` rows.
  void add_exact(std::string_view name, const std::string& sql, std::size_t rows);
  /// Returns the statement. Its result is one row: a number without a meaning, then the columns of
  /// `answer`, if it is not empty.
  Statement finish(const std::string& answer = "") &&;

 private:
  Statement statement_;
  std::string with_;
  std::string checks_;
  std::string raises_ = "writes = writes + 1";
};

/// A condition for a SELECT: the rows of the fence's shard. The SELECT fails if the shard has
/// another epoch, even if no row matches. Otherwise the result could include changes of another
/// owner, which do not fit the memory of this one. PostgreSQL reads the epoch once for each
/// statement, on the same snapshot as the rows.
std::string in_shard(Statement& statement, Fence fence);

/// The largest bigint for ids above it.
std::int64_t id_number(TaskId id) noexcept;

}  // namespace detent
