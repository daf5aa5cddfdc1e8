#include "store/postgres/fenced_statement.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "detent/check.h"
#include "store/postgres/postgres_error.h"

namespace detent {

namespace {

std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

/// SQL for a check: 1 if the part `name` returned `rows` rows, otherwise an error with the word
/// `refusal`.
std::string check_of(std::string_view name, const std::string& rows, std::string_view refusal) {
  return "(select case when count(*) = " + rows + " then '1' else " + quoted(refusal) +
         " end from " + std::string(name) + ")::bigint";
}

}  // namespace

std::int64_t id_number(TaskId id) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(id.value, kMost));
}

std::string in_shard(Statement& statement, Fence fence) {
  const std::string shard = statement.add_bigint(fence.shard);
  const std::string epoch = statement.add_bigint(static_cast<std::int64_t>(fence.epoch));
  return "shard = " + shard + " and (select (case when fence.epoch = " + epoch + " then '1' else " +
         quoted(kFenced) + " end)::bigint from detent.shard as fence where fence.shard = " + shard +
         ") = 1";
}

FencedStatement::FencedStatement(Fence fence) {
  const std::string shard = statement_.add_bigint(fence.shard);
  const std::string is_ours = "shard = " + shard + " and epoch = " +
                              statement_.add_bigint(static_cast<std::int64_t>(fence.epoch));
  const std::string writes = statement_.add_bigint(static_cast<std::int64_t>(fence.writes));
  with_ = " where " + is_ours + " and writes = " + writes + " returning epoch)";
  checks_ =
      "(select case when exists (select from fence) then '1' when exists (select from detent.shard "
      "where " +
      is_ours + " and writes <> " + writes + ") then " + quoted(kWritesMissing) + " else " +
      quoted(kFenced) + " end)::bigint";
}

void FencedStatement::raise_last(TaskId id, std::uint32_t queue) {
  raises_ += ", last_id = greatest(last_id, " + statement_.add_bigint(id_number(id)) +
             "), last_queue = greatest(last_queue, " + statement_.add_bigint(queue) + ")";
}

void FencedStatement::raise_epoch() { raises_ = "epoch = epoch + 1, writes = 1"; }

void FencedStatement::add(std::string_view name, const std::string& sql) {
  with_ += ", " + std::string(name) + " as (" + sql + ")";
}

void FencedStatement::add_exact(std::string_view name, const std::string& sql, std::size_t rows) {
  DETENT_CHECK(rows > 0);
  add(name, sql);
  // The number is a parameter, so the text of the statement does not depend on it.
  const std::string expected = statement_.add_bigint(static_cast<std::int64_t>(rows));
  checks_ += " + " + check_of(name, expected, kRowsMissing);
}

Statement FencedStatement::finish(const std::string& answer) && {
  // Even an empty synced batch changes the row of the shard. So its commit waits until all buffered
  // commits are on disk.
  statement_.set_sql("with fence as (update detent.shard set " + raises_ + with_ + " select " +
                     checks_ + (answer.empty() ? "" : ", " + answer));
  statement_.keep_plan();  // an index finds the rows, however many there are
  return std::move(statement_);
}

}  // namespace detent
