#include "server/access/access.h"

#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log/log.h"
#include "base/read_file.h"

namespace detent::server {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;

Error wrong(const std::string& file, const std::string& what) {
  return Error{ErrorCode::invalid_argument, "--auth " + file + ": " + what, "auth"};
}

Error cannot(const std::string& what) {
  return Error{ErrorCode::invalid_argument, "--auth: cannot " + what, "auth"};
}

Result<AccessRules> read_rules(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return cannot("read " + file + ": " + std::strerror(errno));
  // Docker makes a folder in place of a missing file that is mounted.
  if (S_ISDIR(status.st_mode)) return cannot("read " + file + ": it is a folder, not a file");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return wrong(file, "users other than the owner can write the file: run chmod go-w " + file);
  }
  const Result<std::string> text = read_file(file, kLargestFile);
  if (!text && text.error().code == ErrorCode::unavailable) return cannot(text.error().message);
  if (!text) return wrong(file, text.error().message);
  ASSIGN_OR_RETURN(AccessRules rules, AccessRules::parse(*text, file));
  if ((status.st_mode & S_IROTH) != 0) {
    log_warning("every user of this machine can read the token file",
                {{"file", file}, {"action", "run chmod o-r"}});
  }
  return rules;
}

/// The token of "Bearer TOKEN" (RFC 6750); "" for another text.
std::string_view bearer_of(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return {};
  }
  return authorization.substr(kScheme.size());
}

}  // namespace

Result<std::unique_ptr<Access>> Access::load(std::string file) {
  ASSIGN_OR_RETURN(AccessRules rules, read_rules(file));
  return std::unique_ptr<Access>(new Access(std::move(file), std::move(rules)));
}

Result<void> Access::reload() {
  ASSIGN_OR_RETURN(AccessRules rules, read_rules(file_));
  const auto fresh = std::make_shared<const AccessRules>(std::move(rules));
  const MutexLock lock(mutex_);
  rules_ = fresh;
  return ok();
}

std::optional<Caller> Access::identify(std::string_view authorization) const {
  const std::string_view token = bearer_of(authorization);
  if (token.empty()) return std::nullopt;
  std::shared_ptr<const AccessRules> rules;
  {
    const MutexLock lock(mutex_);
    rules = rules_;
  }
  const Role* const role = rules->find(token);
  if (role == nullptr) return std::nullopt;
  return Caller(std::move(rules), *role);
}

}  // namespace detent::server
