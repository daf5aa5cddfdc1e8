// Who may do what: tokens, each with scopes, each scope for the queues whose names begin with a
// prefix. docs/operating/security.md describes the file and says what each route needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/access_token.h"

namespace detent::server {

/// Admin may do on its queues what any other scope may; each may look at its queues and their
/// tasks.
enum class Scope : std::uint8_t { read, produce, consume, admin };
std::string_view to_string(Scope scope) noexcept;

/// What a route needs; of a queue, unless it says otherwise.
enum class Need : std::uint8_t {
  nothing,    // open to all
  any_token,  // answers with what is of the caller's queues only
  look,
  look_all,  // at all queues
  produce,
  consume,
  admin,
  admin_all,  // of all queues
};
/// The scope that has it, for people: "admin for all queues".
std::string_view to_string(Need need) noexcept;

struct Grant {
  Scope scope = Scope::read;
  std::string prefix;  // of queues' names; "": all queues

  friend bool operator==(const Grant&, const Grant&) = default;
};
/// Reads "SCOPE" or "SCOPE:PREFIX". Errors: `invalid_argument`, saying what is allowed.
Result<Grant> parse_grant(std::string_view text);

/// What one token may do.
struct Role {
  std::string name;  // the token's, for people
  TokenHash hash = {};
  std::vector<Grant> grants = {};

  bool may(Need need, std::string_view queue) const noexcept;
  /// On some queue.
  bool may_somewhere(Need need) const noexcept;
};

/// Immutable.
class AccessRules {
 public:
  /// Reads the text of a file of tokens. Errors: `invalid_argument`, beginning with `file` and the
  /// line, and saying what is allowed there.
  static Result<AccessRules> parse(std::string_view text, const std::string& file);

  /// Whose token this is; null: nobody's. Compares with every token, whichever it is.
  const Role* find(std::string_view token) const;
  std::size_t size() const noexcept { return roles_.size(); }

 private:
  std::vector<Role> roles_;
};

/// Whoever sent a request. Copyable; keeps the rules it was found in.
class Caller {
 public:
  /// There are no rules: may do everything.
  Caller() = default;
  /// Requires: `role` is of `rules`.
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
  /// "local" where there are no tokens.
  std::string_view name() const noexcept {
    return role_ == nullptr ? std::string_view("local") : role_->name;
  }

 private:
  std::shared_ptr<const AccessRules> rules_;  // shared with other callers and Access
  const Role* role_ = nullptr;                // of rules_
};

/// What a caller is told who lacks `need` for `queue` ("": for any).
Error forbidden(Need need, std::string_view queue);

}  // namespace detent::server
