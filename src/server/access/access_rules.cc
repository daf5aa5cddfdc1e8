#include "server/access/access_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "cli/settings/toml_parser.h"
#include "task/task.h"

namespace detent::server {
namespace {

constexpr std::size_t kMaxNameBytes = 100;
constexpr std::array kScopes{Scope::read, Scope::produce, Scope::consume, Scope::admin};

bool gives(Scope scope, Need need) noexcept {
  switch (need) {
    case Need::nothing:
    case Need::any_token:
    case Need::look:
    case Need::look_all:
      return true;
    case Need::produce:
      return scope == Scope::produce || scope == Scope::admin;
    case Need::consume:
      return scope == Scope::consume || scope == Scope::admin;
    case Need::admin:
    case Need::admin_all:
      return scope == Scope::admin;
  }
  return false;  // only for a value that is no enumerator
}

bool is_of_all(Need need) noexcept { return need == Need::look_all || need == Need::admin_all; }

/// Reads the tables of one file.
class RulesReader {
 public:
  explicit RulesReader(const std::string& file) : file_(file) {}

  Result<std::vector<Role>> read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (key.str() != "token" || !node.is_array_of_tables()) {
        return wrong(node, "'" + std::string(key.str()) +
                               "' is not allowed here: tokens are [[token]] tables");
      }
      for (const toml::node& token : *node.as_array()) TRY(read_token(*token.as_table()));
    }
    if (roles_.empty())
      return wrong(root, "the file has no [[token]], so every request would be refused");
    return std::move(roles_);
  }

 private:
  Error wrong(const toml::node& node, const std::string& what) const {
    const std::string place = file_ + ":" + std::to_string(node.source().begin.line);
    return Error{ErrorCode::invalid_argument, place + ": " + what, "auth"};
  }

  Result<void> read_token(const toml::table& table) {
    Role role;
    for (const auto& [key, node] : table) {
      if (key.str() == "name") {
        TRY(read_name(node, role));
      } else if (key.str() == "sha256") {
        TRY(read_hash(node, role));
      } else if (key.str() == "scopes") {
        TRY(read_scopes(node, role));
      } else {
        return wrong(node, "'" + std::string(key.str()) +
                               "' is not allowed here: a token has name, sha256 and scopes");
      }
    }
    for (const char* const key : {"name", "sha256", "scopes"}) {
      if (!table.contains(key)) return wrong(table, std::string("the token has no ") + key);
    }
    roles_.push_back(std::move(role));
    return ok();
  }

  Result<void> read_name(const toml::node& node, Role& role) const {
    role.name = node.value<std::string>().value_or("");
    if (role.name.empty() || role.name.size() > kMaxNameBytes) {
      return wrong(node, "name must be a text of 1 to " + std::to_string(kMaxNameBytes) + " bytes");
    }
    if (std::ranges::find(roles_, role.name, &Role::name) != roles_.end()) {
      return wrong(node, "another token already has the name '" + role.name + "'");
    }
    return ok();
  }

  Result<void> read_hash(const toml::node& node, Role& role) const {
    const auto hash = parse_token_hash(node.value<std::string>().value_or(""));
    if (!hash) {
      return wrong(node,
                   "sha256 must be the SHA-256 of the token: 64 hexadecimal digits in quotes");
    }
    role.hash = *hash;
    if (std::ranges::find(roles_, role.hash, &Role::hash) != roles_.end()) {
      return wrong(node, "another token already has this sha256");
    }
    return ok();
  }

  Result<void> read_scopes(const toml::node& node, Role& role) const {
    const toml::array* const scopes = node.as_array();
    if (scopes == nullptr || scopes->empty()) {
      return wrong(node, "scopes must be a list, for example [\"produce:orders.\", \"read\"]");
    }
    for (const toml::node& scope : *scopes) {
      const Result<Grant> grant = parse_grant(scope.value<std::string>().value_or(""));
      if (!grant) return wrong(scope, grant.error().message);
      role.grants.push_back(*grant);
    }
    return ok();
  }

  const std::string& file_;
  std::vector<Role> roles_;
};

}  // namespace

std::string_view to_string(Scope scope) noexcept {
  switch (scope) {
    case Scope::read:
      return "read";
    case Scope::produce:
      return "produce";
    case Scope::consume:
      return "consume";
    case Scope::admin:
      return "admin";
  }
  return "unknown";  // only for a value that is no enumerator
}

std::string_view to_string(Need need) noexcept {
  switch (need) {
    case Need::nothing:
      return "none";
    case Need::any_token:
      return "any";
    case Need::look:
      return "read";
    case Need::look_all:
      return "read for all queues";
    case Need::produce:
      return "produce";
    case Need::consume:
      return "consume";
    case Need::admin:
      return "admin";
    case Need::admin_all:
      return "admin for all queues";
  }
  return "unknown";  // only for a value that is no enumerator
}

Result<Grant> parse_grant(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto scope =
      std::ranges::find_if(kScopes, [name](Scope known) { return to_string(known) == name; });
  const bool has_prefix = colon != std::string_view::npos;
  const std::string_view prefix = has_prefix ? text.substr(colon + 1) : std::string_view();
  if (scope == kScopes.end() || (has_prefix && !is_queue_name(prefix))) {
    return Error{ErrorCode::invalid_argument,
                 "'" + std::string(text) +
                     "' is not a scope: use read, produce, consume or admin for all queues, or "
                     "for example produce:PREFIX for the queues whose names begin with PREFIX",
                 "scope"};
  }
  return Grant{.scope = *scope, .prefix = std::string(prefix)};
}

bool Role::may(Need need, std::string_view queue) const noexcept {
  return std::ranges::any_of(grants, [&](const Grant& grant) {
    const bool is_of_queue =
        is_of_all(need) ? grant.prefix.empty() : queue.starts_with(grant.prefix);
    return is_of_queue && gives(grant.scope, need);
  });
}

bool Role::may_somewhere(Need need) const noexcept {
  return std::ranges::any_of(grants, [&](const Grant& grant) {
    return gives(grant.scope, need) && (!is_of_all(need) || grant.prefix.empty());
  });
}

Result<AccessRules> AccessRules::parse(std::string_view text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return Error{ErrorCode::invalid_argument,
                 file + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
                     std::string(parsed.error().description()),
                 "auth"};
  }
  AccessRules rules;
  ASSIGN_OR_RETURN(rules.roles_, RulesReader(file).read(parsed.table()));
  return rules;
}

const Role* AccessRules::find(std::string_view token) const {
  const TokenHash hash = hash_token(token);
  const Role* found = nullptr;
  for (const Role& role : roles_) {
    if (is_equal(role.hash, hash)) found = &role;
  }
  return found;
}

Result<void> Caller::require(Need need, std::string_view queue) const {
  if (may(need, queue)) return ok();
  return forbidden(need, queue);
}

Error forbidden(Need need, std::string_view queue) {
  std::string message = "this needs a token with the scope " + std::string(to_string(need));
  if (!queue.empty()) message += " for queue " + std::string(queue);
  return {ErrorCode::forbidden, std::move(message), ""};
}

}  // namespace detent::server
