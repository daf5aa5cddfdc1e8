// Keeps messages that end a wait, if they arrive before the wait. This happens because the two
// messages use different connections, and a paused node reads its connections in any order. A
// message for a wait that is already over looks the same, so only the latest messages are kept. The
// limit is the number of waits that can be on their way at one time: each of them has a connection.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>
#include <utility>

#include "server/access/exposure.h"

namespace detent::server {

/// Thread-compatible.
template <class Name>
class LatestEnds {
 public:
  void add(Name name) {
    if (!names_.insert(name).second) return;
    order_.push_back(std::move(name));
    if (order_.size() <= kMostConnections) return;
    names_.erase(order_.front());
    order_.pop_front();
  }
  /// Returns true if the name is in the set, and removes it.
  bool take(const Name& name) { return names_.erase(name) > 0; }

 private:
  std::unordered_set<Name> names_;
  std::deque<Name> order_;  // since when; with some that were taken
};

}  // namespace detent::server
