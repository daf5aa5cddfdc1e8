// An SQL statement with its parameters, and the rows it answers, both in PostgreSQL's binary format
// (https://www.postgresql.org/docs/15/protocol-overview.html#PROTOCOL-FORMAT-CODES): big-endian
// numbers, bytes as they are, arrays of those.
#pragma once

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace detent {

/// Thread-compatible. Each add_… answers the parameter's name: "$1", "$2", … with its type, so that
/// the text can be put together along with them.
class Statement {
 public:
  Statement() = default;
  /// One whose text needs no parameter, or names them by number.
  explicit Statement(std::string sql) : sql_(std::move(sql)) {}

  std::string add_bigint(std::int64_t value);
  std::string add_bytes(std::string_view value);
  std::string add_text(std::string_view value);
  std::string add_bigints(const std::vector<std::int64_t>& values);
  std::string add_byte_strings(const std::vector<std::string>& values);
  std::string add_texts(const std::vector<std::string>& values);
  void set_sql(std::string sql) { sql_ = std::move(sql); }
  /// The same text comes again and again: a connection may have the database keep its plan.
  /// Requires: that plan is a good one whatever the values are.
  void keep_plan() noexcept { keeps_plan_ = true; }

  bool keeps_plan() const noexcept { return keeps_plan_; }
  const std::string& sql() const noexcept { return sql_; }
  const std::vector<Oid>& types() const noexcept { return types_; }
  const std::vector<std::string>& values() const noexcept { return values_; }

 private:
  std::string add(Oid type, std::string value, const char* cast);

  std::string sql_;
  std::vector<Oid> types_;
  std::vector<std::string> values_;
  bool keeps_plan_ = false;
};

/// What a statement answered. Columns are counted from 0; asking for one that is not there, or is
/// of another type, is a bug. Views are into the rows.
class Rows {
 public:
  explicit Rows(PGresult* result) noexcept : result_(result) {}

  std::size_t size() const noexcept { return static_cast<std::size_t>(PQntuples(result_.get())); }
  bool empty() const noexcept { return size() == 0; }
  bool is_null(std::size_t row, int column) const noexcept;
  std::int64_t bigint(std::size_t row, int column) const;
  /// Of bytes and of text.
  std::string_view bytes(std::size_t row, int column) const noexcept;

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

}  // namespace detent
