// A beanstalk command about a tube whose queue has partitions. The partitions are asked one after
// the other, and their replies are combined. A `peek-…` ends at the first partition that has such a
// job. A `kick` continues until its bound is used up. `stats-tube` adds the numbers of jobs.
// `pause-tube` applies to all partitions. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/beanstalk/beanstalk_jobs.h"

namespace detent::server {

/// Thread-compatible.
class TubeReplies {
 public:
  /// Requires: the command is one of these, not `put`.
  explicit TubeReplies(JobCall call) : call_(std::move(call)) {}

  /// The call for the next partition.
  const JobCall& call() const noexcept { return call_; }
  /// Takes the reply of a partition. Returns false if no further partition need be asked.
  bool add(std::string_view reply);
  /// The reply to the client. Requires: at least one reply was added.
  const std::string& whole() const noexcept { return whole_; }

 private:
  bool add_kicked(std::string_view reply);

  JobCall call_;
  std::string whole_;
  std::uint64_t kicked_ = 0;
};

}  // namespace detent::server
