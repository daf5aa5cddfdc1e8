// From the name of a host to its addresses, without keeping anybody waiting.
//
// The system's resolver blocks for as long as a name server that does not answer lets it. So each
// look-up has a thread of its own, up to a number of them, and one name has at most one look-up
// under way: a domain whose name servers are dead holds one thread, however often it is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "detent/unique_function.h"
#include "net/ip_address.h"

namespace detent::net {

/// Thread-safe.
class HostResolver {
 public:
  /// At least one address; or `not_found` (there is no such name), `unavailable` (nobody knows).
  using Resolved = UniqueFunction<void(Result<std::vector<IpAddress>>)>;

  virtual ~HostResolver() = default;
  /// Answers once, on any thread, also this one. When the resolver is destroyed before, it may not
  /// answer any more, or answer later; so what `done` needs it must own. It must not throw.
  virtual void resolve(const std::string& host, Resolved done) = 0;
};

/// Asks the system (getaddrinfo): /etc/hosts, then the name servers. Keeps nothing for later.
class SystemResolver final : public HostResolver {
 public:
  /// Look-ups at the same time; further names wait.
  static constexpr std::size_t kMaxLookUps = 32;

  SystemResolver();
  /// Drops what is under way; does not wait for it.
  ~SystemResolver() override;
  void resolve(const std::string& host, Resolved done) override;

 private:
  class LookUps;
  const std::shared_ptr<LookUps> look_ups_;  // owned by this and by its threads
};

}  // namespace detent::net
