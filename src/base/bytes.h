// Bytes of stored records, wire frames and sortable keys, written and read back with checks.
//
// Values are little-endian, fixed or as varints (LEB128). Keys are made of big-endian parts, so
// that comparing the bytes compares the values part by part; a string inside a key is escaped and
// ended (as in FoundationDB's tuple layer) so that no string is a prefix of another's encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace detent {

/// Appends to a string it does not own. Thread-compatible.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) noexcept : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  /// 1 byte for values below 128, at most 10.
  void varint(std::uint64_t value);
  /// The bytes alone; the reader must know how many.
  void raw(std::string_view bytes) { out_.append(bytes); }
  /// A varint of the size, then the bytes.
  void string(std::string_view bytes);

  void key_u8(std::uint8_t value) { u8(value); }
  void key_u16(std::uint16_t value);
  void key_u32(std::uint32_t value);
  void key_u64(std::uint64_t value);
  /// Negative numbers sort before positive ones.
  void key_i64(std::int64_t value);
  /// Any bytes. The encoding sorts as the string itself, whatever follows it.
  void key_string(std::string_view bytes);

 private:
  std::string& out_;
};

/// Reads the output of ByteWriter, from bytes that it does not own. Never reads past the end. A
/// truncated or malformed value is `data_loss` and leaves the position unchanged. Returned views
/// point into the given bytes. Thread-compatible.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) noexcept : bytes_(bytes) {}

  Result<std::uint8_t> u8();
  Result<std::uint16_t> u16();
  Result<std::uint32_t> u32();
  Result<std::uint64_t> u64();
  Result<std::int64_t> i64();
  /// Refuses more than 64 bits and encodings longer than needed: one value, one encoding.
  Result<std::uint64_t> varint();
  Result<std::string_view> raw(std::size_t size);
  Result<std::string_view> string();

  Result<std::uint8_t> key_u8() { return u8(); }
  Result<std::uint16_t> key_u16();
  Result<std::uint32_t> key_u32();
  Result<std::uint64_t> key_u64();
  Result<std::int64_t> key_i64();
  Result<std::string> key_string();

  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return bytes_.size() - position_; }
  bool at_end() const noexcept { return remaining() == 0; }
  /// For the end of a record: bytes left over are `data_loss`.
  Result<void> expect_end() const;

 private:
  template <class Unsigned>
  Result<Unsigned> little_endian();
  template <class Unsigned>
  Result<Unsigned> big_endian();
  Error malformed(std::string_view what) const;

  std::string_view bytes_;
  std::size_t position_ = 0;
};

}  // namespace detent
