// CRC-32C (Castagnoli), the checksum of stored records (RFC 3720, appendix B.4).
//
// Uses the SSE4.2 instruction if the processor has it, and tables otherwise. The first call makes
// this choice. Both methods give the same result.
#pragma once

#include <cstdint>
#include <string_view>

namespace detent {

/// The checksum of `bytes`. To continue a checksum, pass it as `before`: crc32c(ab) == crc32c(b,
/// crc32c(a)). Thread-safe. Cost: about 7 bytes per nanosecond with the instruction, and 1 without.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) noexcept;

namespace internal {

/// The two methods, for the test that compares them. crc32c_by_instruction() requires
/// crc32c_has_instruction().
bool crc32c_has_instruction() noexcept;
std::uint32_t crc32c_by_instruction(std::string_view bytes, std::uint32_t before) noexcept;
std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before) noexcept;

}  // namespace internal
}  // namespace detent
