// The connections that have not sent a byte yet, by age. If connections run short, the server
// closes these first, because they have no request.
//
// Internal to this folder, and included by its .cc files only.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "net/address/address_counts.h"

namespace detent::net {

/// Each operation costs O(log n). Thread-compatible.
template <class Connection>
class SilentConnections {
 public:
  using Address = AddressCounts::Ticket::Key;
  /// The key of a connection in this container. It is unique.
  using Place = std::pair<Address, std::uint64_t>;

  Place add(Connection* connection, const Address& address) {
    const Place place(address, ++last_);
    by_age_.emplace(place.second, connection);
    by_address_.emplace(place, connection);
    return place;
  }
  /// Does nothing if the connection has already been removed.
  void remove(const Place& place) {
    by_age_.erase(place.second);
    by_address_.erase(place);
  }
  /// Returns null if there is no silent connection.
  Connection* oldest() const { return by_age_.empty() ? nullptr : by_age_.begin()->second; }
  Connection* oldest_of(const Address& address) const {
    const auto first = by_address_.lower_bound({address, 0});
    const bool is_of_address = first != by_address_.end() && first->first.first == address;
    return is_of_address ? first->second : nullptr;
  }

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Connection*> by_age_;
  std::map<Place, Connection*> by_address_;
};

}  // namespace detent::net
