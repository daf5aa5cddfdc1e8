#include "store/postgres/statement.h"

#include <limits>
#include <utility>

#include "base/bytes.h"
#include "detent/check.h"

namespace detent {

namespace {

// The numbers of types. They never change (pg_type.dat of PostgreSQL).
constexpr Oid kBytea = 17;
constexpr Oid kBigint = 20;
constexpr Oid kText = 25;
constexpr Oid kByteaArray = 1001;
constexpr Oid kTextArray = 1009;
constexpr Oid kBigintArray = 1016;

// The size and the count of an array are 32 bits, and a statement has at most this many parameters.
constexpr std::size_t kMostElements = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostParameters = std::numeric_limits<std::uint16_t>::max();

std::string big_endian(std::int64_t value) {
  std::string bytes;
  ByteWriter(bytes).key_u64(static_cast<std::uint64_t>(value));
  return bytes;
}

/// Writes the header of an array with one dimension, without nulls, counted from 1. The caller
/// appends each element with its size.
void begin_array(ByteWriter& writer, Oid element, std::size_t count) {
  DETENT_CHECK(count <= kMostElements);
  writer.key_u32(count == 0 ? 0 : 1);
  writer.key_u32(0);
  writer.key_u32(element);
  if (count == 0) return;
  writer.key_u32(static_cast<std::uint32_t>(count));
  writer.key_u32(1);
}

std::string array_of(const std::vector<std::string>& values, Oid element) {
  std::size_t size = 20;
  for (const std::string& value : values) size += 4 + value.size();
  std::string bytes;
  bytes.reserve(size);
  ByteWriter writer(bytes);
  begin_array(writer, element, values.size());
  for (const std::string& value : values) {
    DETENT_CHECK(value.size() <= kMostElements);
    writer.key_u32(static_cast<std::uint32_t>(value.size()));
    writer.raw(value);
  }
  return bytes;
}

}  // namespace

std::string Statement::add(Oid type, std::string value, const char* cast) {
  DETENT_CHECK(values_.size() < kMostParameters);
  DETENT_CHECK(types_.size() == values_.size());
  types_.push_back(type);
  values_.push_back(std::move(value));
  return "$" + std::to_string(values_.size()) + cast;
}

std::string Statement::add_bigint(std::int64_t value) {
  return add(kBigint, big_endian(value), "::bigint");
}

std::string Statement::add_bytes(std::string_view value) {
  return add(kBytea, std::string(value), "::bytea");
}

std::string Statement::add_text(std::string_view value) {
  return add(kText, std::string(value), "::text");
}

std::string Statement::add_bigints(const std::vector<std::int64_t>& values) {
  std::string bytes;
  bytes.reserve(20 + 12 * values.size());
  ByteWriter writer(bytes);
  begin_array(writer, kBigint, values.size());
  for (const std::int64_t value : values) {
    writer.key_u32(sizeof value);
    writer.key_u64(static_cast<std::uint64_t>(value));
  }
  return add(kBigintArray, std::move(bytes), "::bigint[]");
}

std::string Statement::add_byte_strings(const std::vector<std::string>& values) {
  return add(kByteaArray, array_of(values, kBytea), "::bytea[]");
}

std::string Statement::add_texts(const std::vector<std::string>& values) {
  return add(kTextArray, array_of(values, kText), "::text[]");
}

bool Rows::is_null(std::size_t row, int column) const noexcept {
  return PQgetisnull(result_.get(), static_cast<int>(row), column) != 0;
}

std::int64_t Rows::bigint(std::size_t row, int column) const {
  DETENT_CHECK(PQftype(result_.get(), column) == kBigint);
  ByteReader reader(bytes(row, column));
  return static_cast<std::int64_t>(reader.key_u64().value());
}

std::string_view Rows::bytes(std::size_t row, int column) const noexcept {
  const int at = static_cast<int>(row);
  return {PQgetvalue(result_.get(), at, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), at, column))};
}

}  // namespace detent
