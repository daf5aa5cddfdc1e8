// The source of the task changes that watching clients receive: the log of the latest changes, and
// when changes are collected into it. On a single server the changes are those of its engine
// (change_collector.h). On a node of a cluster they are those of all its shards and of the other
// nodes (cluster/node_changes.h).
#pragma once

#include "detent/clock.h"
#include "server/watch/change_log.h"

namespace detent::server {

/// Confined to the thread of its reader, except bell().
class ChangeSource {
 public:
  virtual ~ChangeSource() = default;

  /// The latest changes. It stays the same object.
  virtual ChangeLog& log() noexcept = 0;
  /// A client wants the changes from now on.
  virtual void watch() = 0;
  /// No client wants changes any more. They are collected for a while longer, so that a client that
  /// reconnects misses none.
  virtual void unwatch(MonotonicTime now) = 0;
  /// Adds new changes to the log. Returns when it must be called again, even if the bell does not
  /// ring; MonotonicTime::max() for never.
  virtual MonotonicTime collect(MonotonicTime now) = 0;
  /// Collects no more changes. The last call.
  virtual void stop() = 0;
  /// The bell that the reader waits on. It rings when there is something to collect. Others may
  /// ring it too.
  virtual Doorbell& bell() noexcept = 0;
};

}  // namespace detent::server
