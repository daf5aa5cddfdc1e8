// The unanswered messages of a broker, by number. The library of the broker gets only the number,
// and after a lost connection all pending messages can be failed together.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "sinks/sink.h"

namespace detent {

/// Thread-safe. A Done never runs with a lock held.
class PendingSends {
 public:
  /// Returns the number of the message, from 1 on. Numbers are never reused.
  std::uint64_t add(Sink::Done done) DETENT_EXCLUDES(mutex_);
  /// Answers it; one that is not known (any more) is no matter.
  void finish(std::uint64_t number, Result<void> result) DETENT_EXCLUDES(mutex_);
  /// Answers all.
  void fail_all(const Error& error) DETENT_EXCLUDES(mutex_);
  /// Forgets all.
  void clear() DETENT_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::uint64_t, Sink::Done> sends_ DETENT_GUARDED_BY(mutex_);
  std::uint64_t last_ DETENT_GUARDED_BY(mutex_) = 0;
};

}  // namespace detent
