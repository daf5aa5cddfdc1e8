#include "base/read_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace detent {
namespace {

struct Close {
  // The file was only read, so a failed close loses no data.
  void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};

}  // namespace

Result<std::string> read_file(const std::filesystem::path& file, std::size_t most) {
  const auto failed = [&file] {
    return Error{ErrorCode::unavailable, "read " + file.string() + ": " + reason_for(errno, file),
                 ""};
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

std::string show_rights(const std::filesystem::path& file) {
  std::string me = "uid " + std::to_string(::geteuid());
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return me;
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(status.st_mode & 07777U));
  return me + "; its owner is uid " + std::to_string(status.st_uid) + ", its mode " + mode.data();
}

std::string reason_for(int error, const std::filesystem::path& file) {
  std::string reason = std::generic_category().message(error);
  if (error != EACCES && error != EPERM) return reason;
  return reason + " (" + show_rights(file) + ")";
}

}  // namespace detent
