#include "server/operate/process_figures.h"

#include <fstream>
#include <string>
#include <system_error>

namespace detent::server {
namespace {

/// "VmRSS:     1234 kB" in /proc/self/status; other systems have no such file.
std::optional<std::uint64_t> resident_bytes() {
  constexpr std::uint64_t kKilobyte = 1024;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes * kKilobyte;
  }
  return std::nullopt;
}

}  // namespace

ProcessFigures read_process_figures(const std::filesystem::path& data) {
  ProcessFigures figures{.resident_bytes = resident_bytes()};
  if (data.empty()) return figures;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(data, error);
  if (!error) figures.data_free_bytes = space.available;
  return figures;
}

}  // namespace detent::server
