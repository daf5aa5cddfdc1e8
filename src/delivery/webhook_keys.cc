#include "delivery/webhook_keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/read_file.h"

namespace detent {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} * 1024;

Error failed(std::string_view verb, const std::filesystem::path& file) {
  return Error{ErrorCode::unavailable,
               std::string(verb) + " " + file.string() + ": " + std::strerror(errno), ""};
}

/// A file descriptor, closed at the end.
class File {
 public:
  File(const std::filesystem::path& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }

 private:
  const int fd_;
};

Result<void> sync_folder(const std::filesystem::path& folder) {
  const File file(folder, O_RDONLY | O_DIRECTORY);
  if (!file.is_open() || ::fsync(file.fd()) != 0) return failed("sync", folder);
  return ok();
}

/// Under another name first, so that no start finds half a key.
Result<void> make_key_file(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const WebhookKey key, WebhookKey::make());
  const std::string text = key.text() + "\n";
  std::filesystem::path unfinished = path;
  unfinished += ".new";
  {
    const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const auto size = static_cast<ssize_t>(text.size());
    if (!file.is_open() || ::fchmod(file.fd(), 0600) != 0 ||
        ::write(file.fd(), text.data(), text.size()) != size || ::fsync(file.fd()) != 0) {
      return failed("write", unfinished);
    }
  }
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return failed("make", path);
  return sync_folder(path.parent_path().empty() ? "." : path.parent_path());
}

}  // namespace

Result<WebhookKeys> load_webhook_keys(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxFileBytes));
  Result<WebhookKeys> keys = parse_webhook_keys(text);
  if (!keys) return with_context("webhook keys in " + path.string(), std::move(keys).error());
  return keys;
}

Result<WebhookKeys> load_or_make_webhook_key(const std::filesystem::path& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) TRY(make_key_file(path));
  return load_webhook_keys(path);
}

}  // namespace detent
