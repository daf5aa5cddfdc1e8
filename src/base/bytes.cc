#include "base/bytes.h"

#include <utility>

namespace detent {

namespace {

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
// In a key, a zero byte of a string is written as 00 FF, and the end of the string as 00 01. The
// end sorts before every byte that a longer string could have at this place.
constexpr char kEscape = '\x00';
constexpr char kEscapedZero = '\xFF';
constexpr char kStringEnd = '\x01';

template <class Unsigned>
void append_little_endian(std::string& out, Unsigned value) {
  for (std::size_t shift = 0; shift < 8 * sizeof(Unsigned); shift += 8) {
    out.push_back(static_cast<char>((std::uint64_t{value} >> shift) & 0xFFu));
  }
}

template <class Unsigned>
void append_big_endian(std::string& out, Unsigned value) {
  for (std::size_t shift = 8 * sizeof(Unsigned); shift > 0;) {
    shift -= 8;
    out.push_back(static_cast<char>((std::uint64_t{value} >> shift) & 0xFFu));
  }
}

}  // namespace

void ByteWriter::u16(std::uint16_t value) { append_little_endian(out_, value); }
void ByteWriter::u32(std::uint32_t value) { append_little_endian(out_, value); }
void ByteWriter::u64(std::uint64_t value) { append_little_endian(out_, value); }

void ByteWriter::varint(std::uint64_t value) {
  while (value >= 0x80u) {
    out_.push_back(static_cast<char>((value & 0x7Fu) | 0x80u));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void ByteWriter::string(std::string_view bytes) {
  varint(bytes.size());
  raw(bytes);
}

void ByteWriter::key_u16(std::uint16_t value) { append_big_endian(out_, value); }
void ByteWriter::key_u32(std::uint32_t value) { append_big_endian(out_, value); }
void ByteWriter::key_u64(std::uint64_t value) { append_big_endian(out_, value); }

void ByteWriter::key_i64(std::int64_t value) {
  key_u64(static_cast<std::uint64_t>(value) ^ kSignBit);
}

void ByteWriter::key_string(std::string_view bytes) {
  for (const char byte : bytes) {
    out_.push_back(byte);
    if (byte == kEscape) out_.push_back(kEscapedZero);
  }
  out_.push_back(kEscape);
  out_.push_back(kStringEnd);
}

Error ByteReader::malformed(std::string_view what) const {
  std::string message("read ");
  message.append(what).append(" at byte ").append(std::to_string(position_));
  message.append(": malformed or truncated, ").append(std::to_string(remaining()));
  message.append(" bytes left");
  return Error{.code = ErrorCode::data_loss, .message = std::move(message), .field = {}};
}

template <class Unsigned>
Result<Unsigned> ByteReader::little_endian() {
  if (remaining() < sizeof(Unsigned)) return malformed("integer");
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[position_ + i]);
    value = static_cast<Unsigned>(value | static_cast<Unsigned>(Unsigned{byte} << (8 * i)));
  }
  position_ += sizeof(Unsigned);
  return value;
}

template <class Unsigned>
Result<Unsigned> ByteReader::big_endian() {
  if (remaining() < sizeof(Unsigned)) return malformed("key integer");
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[position_ + i]);
    value = static_cast<Unsigned>(static_cast<Unsigned>(value << 8) | byte);
  }
  position_ += sizeof(Unsigned);
  return value;
}

Result<std::uint8_t> ByteReader::u8() { return little_endian<std::uint8_t>(); }
Result<std::uint16_t> ByteReader::u16() { return little_endian<std::uint16_t>(); }
Result<std::uint32_t> ByteReader::u32() { return little_endian<std::uint32_t>(); }
Result<std::uint64_t> ByteReader::u64() { return little_endian<std::uint64_t>(); }

Result<std::int64_t> ByteReader::i64() {
  ASSIGN_OR_RETURN(const std::uint64_t value, u64());
  return static_cast<std::int64_t>(value);
}

Result<std::uint64_t> ByteReader::varint() {
  std::uint64_t value = 0;
  std::size_t position = position_;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (position == bytes_.size()) return malformed("varint");
    const auto byte = static_cast<unsigned char>(bytes_[position++]);
    const std::uint64_t bits = byte & 0x7Fu;
    if (shift == 63 && bits > 1) return malformed("varint");
    value |= bits << shift;
    if (byte < 0x80u) {
      if (bits == 0 && shift > 0) return malformed("varint");
      position_ = position;
      return value;
    }
  }
  return malformed("varint");
}

Result<std::string_view> ByteReader::raw(std::size_t size) {
  if (remaining() < size) return malformed("bytes");
  const std::string_view bytes = bytes_.substr(position_, size);
  position_ += size;
  return bytes;
}

Result<std::string_view> ByteReader::string() {
  const std::size_t start = position_;
  ASSIGN_OR_RETURN(const std::uint64_t size, varint());
  if (size > remaining()) {
    position_ = start;
    return malformed("string");
  }
  return raw(static_cast<std::size_t>(size));
}

Result<std::uint16_t> ByteReader::key_u16() { return big_endian<std::uint16_t>(); }
Result<std::uint32_t> ByteReader::key_u32() { return big_endian<std::uint32_t>(); }
Result<std::uint64_t> ByteReader::key_u64() { return big_endian<std::uint64_t>(); }

Result<std::int64_t> ByteReader::key_i64() {
  ASSIGN_OR_RETURN(const std::uint64_t value, key_u64());
  return static_cast<std::int64_t>(value ^ kSignBit);
}

Result<std::string> ByteReader::key_string() {
  std::string text;
  std::size_t position = position_;
  while (position < bytes_.size()) {
    const char byte = bytes_[position++];
    if (byte != kEscape) {
      text.push_back(byte);
      continue;
    }
    if (position == bytes_.size()) break;
    const char kind = bytes_[position++];
    if (kind == kStringEnd) {
      position_ = position;
      return text;
    }
    if (kind != kEscapedZero) break;
    text.push_back(kEscape);
  }
  return malformed("key string");
}

Result<void> ByteReader::expect_end() const {
  if (!at_end()) return malformed("end of record");
  return ok();
}

}  // namespace detent
