// CRC-32C (Castagnoli), the checksum of stored records (RFC 3720, appendix B.4).
//
// Computed with the SSE4.2 instruction where the processor has it, by tables otherwise; the choice
// is made once, at the first call, and both give the same answer.
#pragma once

#include <cstdint>
#include <string_view>

namespace detent {

/// The checksum of `bytes`. To continue a checksum, pass it as `before`: crc32c(ab) == crc32c(b,
/// crc32c(a)). Thread-safe; about 7 bytes a nanosecond with the instruction, 1 without.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) noexcept;

namespace internal {

/// The two ways, for the test that compares them. The instruction's
/// Requires: crc32c_has_instruction().
bool crc32c_has_instruction() noexcept;
std::uint32_t crc32c_by_instruction(std::string_view bytes, std::uint32_t before) noexcept;
std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before) noexcept;

}  // namespace internal
}  // namespace detent
