// The verbs of the holder of a lease. A lease is open until one of these verbs ends it, or until it
// expires. Every verb answers `conflict` if the lease is no longer open.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"
#include "task/request.h"

namespace detent {

class LeaseVerbs : public VerbGroup {
 public:
  using VerbGroup::VerbGroup;

  /// The queue of the leased task; "" if the lease is no longer open.
  std::string_view queue_of(LeaseToken lease) const noexcept;
  /// The work is done. Removes the task.
  Result<LeaseOutcome> complete(LeaseToken lease);
  /// The attempt failed: the task comes back after a delay, or is dead after its last attempt.
  Result<LeaseOutcome> fail(const FailRequest& request);
  /// Extends a lease: it expires `by` from now, or at its present deadline if that is later. Leases
  /// are in memory, so this call writes no record. Errors: invalid_argument unless `by` is 1 ms …
  /// 30 days.
  Result<LeaseOutcome> extend(LeaseToken lease, std::chrono::milliseconds by);
  /// Gives the task back. The attempt does not count. The task is ready again at its old place in
  /// the order of its queue, or scheduled if `delay` is greater than 0. `priority` replaces its
  /// priority. Durable: delay, priority and count. If none of these is given, the record on disk
  /// stays unchanged. Errors: invalid_argument for `delay`.
  Result<LeaseOutcome> release(LeaseToken lease,
                               std::optional<std::chrono::milliseconds> delay = {},
                               std::optional<std::uint32_t> priority = {},
                               ReleaseCount count = ReleaseCount::none);
  /// The attempt failed and a retry would not help: the task is dead immediately. `priority`
  /// replaces its priority, for the case that the task becomes live again. Durable: the dead task
  /// with this attempt counted. Answers `dead`.
  Result<LeaseOutcome> bury(LeaseToken lease, std::string error,
                            std::optional<std::uint32_t> priority = {});

 private:
  const Lease* holder_of(LeaseToken lease) noexcept;
};

}  // namespace detent
