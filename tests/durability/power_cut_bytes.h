// The bytes of one file under a PowerCutFileSystem, apart from the file's names. Tracks how many
// bytes are durable, and changes the file as a power cut would.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <utility>

#include "base/rng.h"
#include "detent/check.h"
#include "tests/durability/power_cut_file_system.h"

namespace detent {

/// Returns a random number from 0 to `most`. In half of the cases this is 0 or `most`, because code
/// may depend on these two without knowing it.
inline std::uint64_t any_part(std::uint64_t most, Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return 0;
    case 1:
      return most;
    default:
      return rng.next() % (most + 1);
  }
}

struct PowerCutFileSystem::Bytes {
  explicit Bytes(std::string backing) : path(std::move(backing)) {}
  ~Bytes() { std::filesystem::remove(path); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  /// Removes bytes that the disk may not have. If more space was reserved, also leaves a random
  /// number of zeros.
  void tear(Rng& rng, Tear how) {
    tear_written(rng, how);
    if (reserved > size) size += any_part(reserved - size, rng);
    std::filesystem::resize_file(path, size);
    synced = size;
  }
  /// If a file was truncated without this object, the truncation counts as durable.
  void tear_written(Rng& rng, Tear how) {
    size = std::min<std::uint64_t>(size, std::filesystem::file_size(path));
    synced = std::min(synced, size);
    std::uint64_t kept = synced + any_part(size - synced, rng);
    if (how == Tear::sectors && kept < size) {
      kept = std::max(synced, kept / kSectorBytes * kSectorBytes);
    }
    std::filesystem::resize_file(path, kept);
    size = kept;
    if (how == Tear::bytes) return;
    const std::uint32_t lost_of_4 = rng.below(5);
    for (std::uint64_t begin = synced; begin < kept;) {
      const std::uint64_t end = std::min(kept, (begin / kSectorBytes + 1) * kSectorBytes);
      if (rng.below(4) < lost_of_4) zero(path, begin, end);
      begin = end;
    }
  }

  const std::string path;           // in the backing folder
  std::uint64_t size = 0;           // bytes written
  std::uint64_t reserved = 0;       // if more than `size`: the size of the open file
  std::uint64_t synced = 0;         // this many bytes from the beginning are durable
  bool is_table = false;            // see goes_on_without_power()
  bool has_failed_to_sync = false;  // then `synced` does not grow again

 private:
  static constexpr std::uint64_t kSectorBytes = 512;

  static void zero(const std::string& path, std::uint64_t begin, std::uint64_t end) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(begin));
    file << std::string(end - begin, '\0');
    DETENT_CHECK(file.flush().good());
  }
};

}  // namespace detent
