// The access rules in force. A reload can replace the rules while the server handles requests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "server/access/access_rules.h"

namespace detent::server {

/// Thread-safe.
class Access {
 public:
  /// Reads a file of tokens. If other users can read the file, a warning is logged; the file holds
  /// only hashes. If other users can write the file, it is refused, because they could add a token
  /// of their own. Errors: `invalid_argument`, as AccessRules::parse(), and for a file that cannot
  /// be read.
  static Result<std::unique_ptr<Access>> load(std::string file);

  /// Reads the file again. If the file is invalid, the current rules stay in force. Errors: as
  /// load().
  Result<void> reload() DETENT_EXCLUDES(mutex_);

  /// Returns the caller for this value of the Authorization header, or no value if the token is
  /// unknown.
  std::optional<Caller> identify(std::string_view authorization) const DETENT_EXCLUDES(mutex_);

 private:
  Access(std::string file, AccessRules rules)
      : file_(std::move(file)), rules_(std::make_shared<const AccessRules>(std::move(rules))) {}

  const std::string file_;
  mutable Mutex mutex_;
  std::shared_ptr<const AccessRules> rules_ DETENT_GUARDED_BY(mutex_);  // and callers
};

}  // namespace detent::server
