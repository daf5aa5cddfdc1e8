// Writes and reads the bytes of stored records, wire frames and sortable keys. Reading checks the
// bytes.
//
// Values are little-endian, fixed in size or as varints (LEB128). Keys consist of big-endian parts,
// so the order of the bytes is the order of the values, part by part. A string in a key is escaped
// and has an end mark (as in FoundationDB's tuple layer), so no encoded string is a prefix of
// another encoded string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace detent {

/// Appends to the caller's string. Thread-compatible.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) noexcept : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  /// Needs 1 byte for a value below 128, and at most 10 bytes.
  void varint(std::uint64_t value);
  /// Appends only the bytes. The reader must know how many there are.
  void raw(std::string_view bytes) { out_.append(bytes); }
  /// Appends the size as a varint, and then the bytes.
  void string(std::string_view bytes);

  void key_u8(std::uint8_t value) { u8(value); }
  void key_u16(std::uint16_t value);
  void key_u32(std::uint32_t value);
  void key_u64(std::uint64_t value);
  /// Negative numbers sort before positive ones.
  void key_i64(std::int64_t value);
  /// Appends any bytes. The encoded strings sort like the strings, even if more parts follow.
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
  /// Refuses a value of more than 64 bits and a longer encoding than needed, so that each value has
  /// exactly one encoding.
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
  /// Call this at the end of a record. Fails with `data_loss` if bytes are left.
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
