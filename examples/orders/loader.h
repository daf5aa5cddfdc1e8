// Sends the orders to the server, in batches over HTTP.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detent/client.h"
#include "detent/clock.h"
#include "examples/orders/ledger.h"
#include "examples/orders/order.h"

namespace orders {

/// Thread-compatible.
class Loader {
 public:
  /// Orders are created from `start` on, and each is due at start + pay_by. The arguments must
  /// outlive the loader.
  Loader(const std::vector<Order>& orders, Ledger& ledger, detent::WallTime start)
      : orders_(orders), ledger_(ledger), start_(start) {}

  bool is_done() const noexcept { return next_ == orders_.size(); }
  std::size_t loaded() const noexcept { return next_; }
  /// The creation time of the next order.
  detent::WallTime next_created() const { return start_ + orders_[next_].created; }

  /// Loads one batch of the orders created by `now`, and records them in the ledger. The server
  /// must be running: if the answer of a batch is lost, the batch would be loaded twice.
  detent::ClientResult<void> load_batch(detent::Client& client, detent::WallTime now);

 private:
  const std::vector<Order>& orders_;
  Ledger& ledger_;
  const detent::WallTime start_;
  std::size_t next_ = 0;
};

/// Prints "loaded 120000 of 200000 [######....]". On a terminal it redraws the line, elsewhere it
/// prints a line for every tenth. Thread-compatible.
class Progress {
 public:
  Progress(const char* what, std::size_t total);
  void show(std::size_t done);

 private:
  const char* what_;
  std::size_t total_;
  bool is_terminal_;
  std::size_t shown_tenths_ = 0;
};

}  // namespace orders
