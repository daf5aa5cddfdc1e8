// One run of the example: load, work, kill, check.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "examples/orders/order.h"

namespace orders {

struct RunOptions {
  std::filesystem::path server;  // the detent program
  int kills = 2;                 // spread evenly over the run
  int seconds = 30;              // the run lasts at least so long, and until all orders are loaded
};

/// Prints the progress and the result. Returns whether every order was accounted for: no order lost
/// or early, and no more duplicates than leases were open at the kills. Errors: the run could not
/// be finished.
detent::Result<bool> run(const std::vector<Order>& orders, const RunOptions& options);

}  // namespace orders
