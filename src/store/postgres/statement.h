// An SQL statement with its parameters, and the rows of its result. Both use the binary format of
// PostgreSQL (https://www.postgresql.org/docs/15/protocol-overview.html#PROTOCOL-FORMAT-CODES):
// big-endian numbers, raw bytes, and arrays of them.
#pragma once

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace detent {

/// Thread-compatible. Each add_… function returns the name of the parameter with its type, such as
/// "$1::bigint". The caller puts it into the text of the statement.
class Statement {
 public:
  Statement() = default;
  /// A statement whose text has no parameters, or names them by number.
  explicit Statement(std::string sql) : sql_(std::move(sql)) {}

  std::string add_bigint(std::int64_t value);
  std::string add_bytes(std::string_view value);
  std::string add_text(std::string_view value);
  std::string add_bigints(const std::vector<std::int64_t>& values);
  std::string add_byte_strings(const std::vector<std::string>& values);
  std::string add_texts(const std::vector<std::string>& values);
  void set_sql(std::string sql) { sql_ = std::move(sql); }
  /// Says that the same text is used often, so that a connection may prepare it. Requires: one plan
  /// is good for all values.
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

/// The rows of a result. Columns are counted from 0. Asking for a column that does not exist or has
/// another type is a bug. The returned views point into this object.
class Rows {
 public:
  explicit Rows(PGresult* result) noexcept : result_(result) {}

  std::size_t size() const noexcept { return static_cast<std::size_t>(PQntuples(result_.get())); }
  bool empty() const noexcept { return size() == 0; }
  bool is_null(std::size_t row, int column) const noexcept;
  std::int64_t bigint(std::size_t row, int column) const;
  /// The value of a column of type bytea or text.
  std::string_view bytes(std::size_t row, int column) const noexcept;

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

}  // namespace detent
