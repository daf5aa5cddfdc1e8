// The rules of access in force, which a reload replaces while requests are served.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "server/access_rules.h"

namespace detent::server {

/// Thread-safe.
class Access {
 public:
  /// Reads a file of tokens. It may be read by others, which is warned of (it holds hashes only),
  /// but one that others than its owner may write is refused: they could write their own token.
  /// Errors: `invalid_argument`, as AccessRules::parse(), and for a file that cannot be read.
  static Result<std::unique_ptr<Access>> load(std::string file);

  /// Reads the file again. When it is wrong the rules in force stay. Errors: as load().
  Result<void> reload() DETENT_EXCLUDES(mutex_);

  /// Who sends this value of the Authorization header; nothing when it is no known token.
  std::optional<Caller> identify(std::string_view authorization) const DETENT_EXCLUDES(mutex_);

 private:
  Access(std::string file, AccessRules rules)
      : file_(std::move(file)), rules_(std::make_shared<const AccessRules>(std::move(rules))) {}

  const std::string file_;
  mutable Mutex mutex_;
  std::shared_ptr<const AccessRules> rules_ DETENT_GUARDED_BY(mutex_);  // and callers
};

}  // namespace detent::server
