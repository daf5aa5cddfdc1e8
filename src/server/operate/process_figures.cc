#include "server/operate/process_figures.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>

#include "server/operate/memory_plan.h"

namespace detent::server {
namespace {

/// The number after `word` in a file of words, such as "VmRSS:     1234 kB" in /proc/self/status.
/// Other systems than Linux have no such files.
std::optional<std::uint64_t> number_after(const char* file, std::string_view wanted) {
  std::ifstream words(file);
  for (std::string word; words >> word;) {
    std::uint64_t number = 0;
    if (word == wanted && words >> number) return number;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> resident_bytes() {
  constexpr std::uint64_t kKilobyte = 1024;
  const std::optional<std::uint64_t> kilobytes = number_after("/proc/self/status", "VmRSS:");
  if (!kilobytes) return std::nullopt;
  return *kilobytes * kKilobyte;
}

std::optional<double> cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  const auto seconds = [](const timeval& time) {
    return std::chrono::duration<double>(std::chrono::seconds(time.tv_sec) +
                                         std::chrono::microseconds(time.tv_usec))
        .count();
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The start of the machine, plus the clock ticks until the start of this process: field 22 of
/// /proc/self/stat. The fields are counted from the end of the name of the program, which may have
/// spaces.
std::optional<double> start_seconds() {
  constexpr int kFieldsAfterName = 20;
  const std::optional<std::uint64_t> machine = number_after("/proc/stat", "btime");
  std::ifstream stat("/proc/self/stat");
  stat.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string field;
  for (int i = 0; i < kFieldsAfterName; ++i) stat >> field;
  // NOLINTNEXTLINE(google-runtime-int): the type of sysconf()
  const long per_second = ::sysconf(_SC_CLK_TCK);
  if (!machine || !stat || per_second <= 0) return std::nullopt;
  return static_cast<double>(*machine) + std::stod(field) / static_cast<double>(per_second);
}

/// Since Linux 6.2, the size of the folder is the number of its entries.
std::optional<std::uint64_t> open_fds() {
  constexpr const char* kFolder = "/proc/self/fd";
  struct stat folder {};
  if (::stat(kFolder, &folder) == 0 && folder.st_size > 0) {
    return static_cast<std::uint64_t>(folder.st_size);
  }
  std::error_code error;
  const std::filesystem::directory_iterator entries(kFolder, error);
  if (error) return std::nullopt;
  return static_cast<std::uint64_t>(std::distance(begin(entries), end(entries)));
}

std::optional<std::uint64_t> max_fds() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

std::optional<std::uint64_t> free_bytes(const std::filesystem::path& data) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(data, error);
  if (error) return std::nullopt;
  return space.available;
}

ProcessFigures read_process_figures(std::size_t memory_bytes) {
  static const std::optional<double> start = start_seconds();
  return {
      .resident_bytes = resident_bytes(),
      .cpu_seconds = cpu_seconds(),
      .start_seconds = start,
      .open_fds = open_fds(),
      .max_fds = max_fds(),
      .memory = MemoryBudget{.bytes = memory_bytes, .tasks = plan_memory(memory_bytes).max_loaded}};
}

}  // namespace detent::server
