// The bytes of a file under a PowerCutFileSystem, whatever its names: how much of them is durable,
// and what a power cut leaves.
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

/// 0 … most; the ends, which are what code may rely on unawares, as often as all between.
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

  /// Takes away what the disk may not have got, and leaves zeros where more was reserved.
  void tear(Rng& rng, Tear how) {
    tear_written(rng, how);
    if (reserved > size) size += any_part(reserved - size, rng);
    std::filesystem::resize_file(path, size);
    synced = size;
  }
  /// A file that was cut short behind this object's back was so durably.
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
  std::uint64_t size = 0;           // written
  std::uint64_t reserved = 0;       // the size until it is closed, if more
  std::uint64_t synced = 0;         // so many from the beginning are durable
  bool is_table = false;            // see goes_on_without_power()
  bool has_failed_to_sync = false;  // then no more will be

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
