// Resolves host names to addresses without blocking the caller.
//
// The system's resolver blocks while a name server does not answer. Each look-up therefore has its
// own thread, up to a limit, and a name has at most one look-up at a time. A domain with dead name
// servers occupies one thread, however often it is requested.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "detent/unique_function.h"
#include "net/address/ip_address.h"

namespace detent::net {

/// Thread-safe.
class HostResolver {
 public:
  /// Receives at least one address, or an error: `not_found` (the name does not exist), or
  /// `unavailable` (no answer).
  using Resolved = UniqueFunction<void(Result<std::vector<IpAddress>>)>;

  virtual ~HostResolver() = default;
  /// Answers once, on any thread, perhaps in this call. If the resolver is destroyed first, the
  /// answer may come later or never. `done` must therefore own its data. It must not throw.
  virtual void resolve(const std::string& host, Resolved done) = 0;
};

/// Asks the system (getaddrinfo): /etc/hosts, then the name servers. Does not cache.
class SystemResolver final : public HostResolver {
 public:
  /// Look-ups at the same time; further names wait.
  static constexpr std::size_t kMaxLookUps = 32;

  SystemResolver();
  /// Drops running look-ups without waiting for them.
  ~SystemResolver() override;
  void resolve(const std::string& host, Resolved done) override;

 private:
  class LookUps;
  const std::shared_ptr<LookUps> look_ups_;  // shared with the threads
};

}  // namespace detent::net
