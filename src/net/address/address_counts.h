// Counts the connections of each address, so that one client cannot take all connections.
//
// An IPv6 client usually has 2^64 addresses, so addresses with the same first 64 bits are counted
// as one address.
//
// Internal to this folder, and included by its .cc files only: it shows Boost.Asio.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace detent::net {

/// Confined to one thread. Must outlive its tickets.
class AddressCounts {
 public:
  /// One connection. It is counted until the ticket is destroyed.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : counts_(std::exchange(other.counts_, nullptr)), at_(other.at_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(counts_, other.counts_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Ticket() {
      if (counts_ != nullptr && --at_->second == 0) counts_->counts_.erase(at_);
    }
    /// The number of connections of this address, including this connection. Requires: the ticket
    /// was not moved from.
    std::size_t count() const noexcept { return at_->second; }
    /// The part of an address that is counted.
    using Key = std::array<std::uint8_t, 8>;
    /// Requires: the ticket was not moved from.
    const Key& address() const noexcept { return at_->first; }

   private:
    friend class AddressCounts;
    Ticket(AddressCounts& counts, std::map<Key, std::size_t>::iterator at)
        : counts_(&counts), at_(at) {
      ++at_->second;
    }

    AddressCounts* counts_ = nullptr;
    std::map<Key, std::size_t>::iterator at_ = {};
  };

  AddressCounts() = default;
  AddressCounts(const AddressCounts&) = delete;
  AddressCounts& operator=(const AddressCounts&) = delete;

  Ticket take(boost::asio::ip::address address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
      address = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
    }
    Ticket::Key key{};
    if (address.is_v4()) {  // cannot equal an IPv6 prefix: the network 0::/8 is reserved
      const auto bytes = address.to_v4().to_bytes();
      std::copy(bytes.begin(), bytes.end(), key.begin() + 4);
    } else {
      const auto bytes = address.to_v6().to_bytes();
      std::copy_n(bytes.begin(), key.size(), key.begin());
    }
    return Ticket(*this, counts_.try_emplace(key, 0).first);
  }

 private:
  std::map<Ticket::Key, std::size_t> counts_;
};

}  // namespace detent::net
