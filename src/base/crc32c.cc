#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "detent/check.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace detent {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78u;  // 0x1EDC6F41 with its bits reversed
constexpr std::size_t kStride = 8;                  // bytes per step of the method with tables

// kTables[k][b] is the register after byte b and k zero bytes. Source: "slicing by 8", Kounavis and
// Berry, "A Systematic Approach to Building High Performance, Software-based, CRC Generators",
// 2005.
using Tables = std::array<std::array<std::uint32_t, 256>, kStride>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    tables[0][byte] = crc;
  }
  for (std::size_t zeros = 1; zeros < kStride; ++zeros) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[zeros - 1][byte];
      tables[zeros][byte] = (crc >> 8) ^ tables[0][crc & 0xFFu];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint32_t step(std::uint32_t crc, char byte) {
  return (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xFFu];
}

}  // namespace

namespace internal {

std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before) noexcept {
  std::uint32_t crc = ~before;
  while (bytes.size() >= kStride) {
    std::array<unsigned char, kStride> block{};
    std::memcpy(block.data(), bytes.data(), kStride);
    for (std::size_t i = 0; i < 4; ++i) {
      block[i] = static_cast<unsigned char>(block[i] ^ ((crc >> (8 * i)) & 0xFFu));
    }
    crc = 0;
    for (std::size_t i = 0; i < kStride; ++i) crc ^= kTables[kStride - 1 - i][block[i]];
    bytes.remove_prefix(kStride);
  }
  for (const char byte : bytes) crc = step(crc, byte);
  return ~crc;
}

#if defined(__x86_64__)

bool crc32c_has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(
    std::string_view bytes, std::uint32_t before) noexcept {
  std::uint64_t crc = ~before;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = _mm_crc32_u64(crc, word);
    bytes.remove_prefix(sizeof(word));
  }
  auto tail = static_cast<std::uint32_t>(crc);
  for (const char byte : bytes) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(byte));
  return ~tail;
}

#else

bool crc32c_has_instruction() noexcept { return false; }

std::uint32_t crc32c_by_instruction(std::string_view, std::uint32_t) noexcept {
  DETENT_CHECK(crc32c_has_instruction());
  return 0;
}

#endif

}  // namespace internal

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) noexcept {
  static const bool has_instruction = internal::crc32c_has_instruction();
  return has_instruction ? internal::crc32c_by_instruction(bytes, before)
                         : internal::crc32c_by_table(bytes, before);
}

}  // namespace detent
