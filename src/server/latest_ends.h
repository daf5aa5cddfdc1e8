// Ends of waits that came before the waits they end: they come by other connections, and a node
// that stood still reads what waited for it in any order. One that is for a wait that is over looks
// the same, so only the latest are kept, as many as there can be waits on their way: each has a
// connection.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>
#include <utility>

#include "server/exposure.h"

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
  /// Whether it is among them; it is not any more.
  bool take(const Name& name) { return names_.erase(name) > 0; }

 private:
  std::unordered_set<Name> names_;
  std::deque<Name> order_;  // since when; with some that were taken
};

}  // namespace detent::server
