// Access rules: a list of tokens. Each token has scopes, and each scope applies to the queues whose
// names begin with a prefix. docs/operating/security.md describes the file and the scope that each
// route needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/access/access_token.h"

namespace detent::server {

/// `admin` includes every other scope on its queues. Every scope permits reading its queues and
/// their tasks.
enum class Scope : std::uint8_t { read, produce, consume, admin };
std::string_view to_string(Scope scope) noexcept;

/// The permission that a route needs. It concerns one queue unless the enumerator says otherwise.
enum class Need : std::uint8_t {
  nothing,    // open to all
  any_token,  // the answer contains only the caller's queues
  look,
  look_all,  // at all queues
  produce,
  consume,
  admin,
  admin_all,  // of all queues
};
/// The scope that satisfies `need`, as text for people: "admin for all queues".
std::string_view to_string(Need need) noexcept;

struct Grant {
  Scope scope = Scope::read;
  std::string prefix;  // of queues' names; "": all queues

  friend bool operator==(const Grant&, const Grant&) = default;
};
/// Reads "SCOPE" or "SCOPE:PREFIX". Errors: `invalid_argument`; the message says which values are
/// allowed.
Result<Grant> parse_grant(std::string_view text);

/// The permissions of one token.
struct Role {
  std::string name;  // the token's, for people
  TokenHash hash = {};
  std::vector<Grant> grants = {};

  bool may(Need need, std::string_view queue) const noexcept;
  /// Returns true if the role has this permission for at least one queue.
  bool may_somewhere(Need need) const noexcept;
};

/// Immutable.
class AccessRules {
 public:
  /// Reads the text of a token file. Errors: `invalid_argument`; the message begins with `file` and
  /// the line, and says which values are allowed.
  static Result<AccessRules> parse(std::string_view text, const std::string& file);

  /// Returns the role of this token, or null if the token is unknown. It always compares with every
  /// token, so the time does not reveal which token matched.
  const Role* find(std::string_view token) const;
  std::size_t size() const noexcept { return roles_.size(); }

 private:
  std::vector<Role> roles_;
};

/// The sender of a request. Copyable; it keeps the rules in which it was found.
class Caller {
 public:
  /// A caller of a server without rules. It may do everything.
  Caller() = default;
  /// Requires: `role` belongs to `rules`.
  Caller(std::shared_ptr<const AccessRules> rules, const Role& role)
      : rules_(std::move(rules)), role_(&role) {}

  bool is_token() const noexcept { return role_ != nullptr; }
  bool may_all() const noexcept { return role_ == nullptr || role_->may(Need::admin_all, ""); }
  bool may(Need need, std::string_view queue) const noexcept {
    return role_ == nullptr || role_->may(need, queue);
  }
  bool may_somewhere(Need need) const noexcept {
    return role_ == nullptr || role_->may_somewhere(need);
  }
  /// Errors: `forbidden`, naming the scope.
  Result<void> require(Need need, std::string_view queue) const;
  /// "local" on a server without tokens.
  std::string_view name() const noexcept {
    return role_ == nullptr ? std::string_view("local") : role_->name;
  }

 private:
  std::shared_ptr<const AccessRules> rules_;  // shared with other callers and Access
  const Role* role_ = nullptr;                // of rules_
};

/// The error for a caller that lacks `need` for `queue`; "" means any queue.
Error forbidden(Need need, std::string_view queue);

}  // namespace detent::server
