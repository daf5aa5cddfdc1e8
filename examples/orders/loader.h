// Hands the orders to the server, in batches over HTTP.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/api_client.h"
#include "detent/clock.h"
#include "examples/orders/ledger.h"
#include "examples/orders/order.h"

namespace orders {

/// Thread-compatible.
class Loader {
 public:
  /// Orders are created from `start` on: each is due at start + pay_by. All must outlive it.
  Loader(const std::vector<Order>& orders, Ledger& ledger, detent::WallTime start)
      : orders_(orders), ledger_(ledger), start_(start) {}

  bool is_done() const noexcept { return next_ == orders_.size(); }
  std::size_t loaded() const noexcept { return next_; }
  /// When the next order is created.
  detent::WallTime next_created() const { return start_ + orders_[next_].created; }

  /// Loads one batch of the orders created by `now`, which enters them in the ledger. The server
  /// must be there: a batch whose answer is lost would be loaded twice.
  detent::Result<void> load_batch(detent::ApiClient& client, detent::WallTime now);

 private:
  const std::vector<Order>& orders_;
  Ledger& ledger_;
  const detent::WallTime start_;
  std::size_t next_ = 0;
};

/// "loaded 120 000 of 200 000 [######....]": redrawn in place on a terminal, a line every tenth
/// elsewhere. Thread-compatible.
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
