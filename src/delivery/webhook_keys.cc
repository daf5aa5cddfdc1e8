#include "delivery/webhook_keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/open_file.h"
#include "base/read_file.h"

namespace detent {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} * 1024;

Error failed(std::string_view verb, const std::filesystem::path& file) {
  return Error{ErrorCode::unavailable,
               std::string(verb) + " " + file.string() + ": " + std::strerror(errno), ""};
}

/// Under another name first, so that no start finds half a key.
Result<void> make_key_file(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const WebhookKey key, WebhookKey::make());
  const std::string text = key.text() + "\n";
  std::filesystem::path unfinished = path;
  unfinished += ".new";
  {
    const OpenFile file(unfinished, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const auto size = static_cast<ssize_t>(text.size());
    if (!file.is_open() || ::fchmod(file.descriptor(), 0600) != 0 ||
        ::write(file.descriptor(), text.data(), text.size()) != size || !file.sync()) {
      return failed("write", unfinished);
    }
  }
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return failed("make", path);
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  return sync_folder(folder) ? ok() : Result<void>(failed("sync", folder));
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
