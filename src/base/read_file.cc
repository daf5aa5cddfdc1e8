#include "base/read_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace detent {
namespace {

struct Close {
  // The file was only read, so a failed close loses no data.
  void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};

}  // namespace

Result<std::string> read_file(const std::filesystem::path& file, std::size_t most) {
  const auto failed = [&file] {
    return Error{ErrorCode::unavailable, "read " + file.string() + ": " + std::strerror(errno), ""};
  };
  const std::unique_ptr<std::FILE, Close> in(std::fopen(file.c_str(), "rbe"));
  if (in == nullptr) return failed();
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), in.get())) {
    text.append(part.data(), size);
    if (text.size() > most) {
      return Error{ErrorCode::too_large,
                   file.string() + " has more than " + std::to_string(most) + " bytes", ""};
    }
  }
  if (std::ferror(in.get()) != 0) return failed();
  return text;
}

}  // namespace detent
