// A beanstalk command about a tube whose queue has partitions: each is asked, one after the other,
// and their replies become one. A `peek-…` ends with the first that has such a job; a `kick` goes
// on while there is something left of its bound; `stats-tube` adds the numbers of jobs up;
// `pause-tube` holds for all. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/beanstalk_jobs.h"

namespace detent::server {

/// Thread-compatible.
class TubeReplies {
 public:
  /// Requires: the command is one of those, no `put`.
  explicit TubeReplies(JobCall call) : call_(std::move(call)) {}

  /// What the next partition is to be asked.
  const JobCall& call() const noexcept { return call_; }
  /// Takes its reply; false: no other need be asked.
  bool add(std::string_view reply);
  /// The reply to the client. Requires: at least one was added.
  const std::string& whole() const noexcept { return whole_; }

 private:
  bool add_kicked(std::string_view reply);

  JobCall call_;
  std::string whole_;
  std::uint64_t kicked_ = 0;
};

}  // namespace detent::server
