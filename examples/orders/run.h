// One run of the example: load, work, kill, account.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "examples/orders/order.h"

namespace orders {

struct RunOptions {
  std::filesystem::path server;  // the detent binary
  int kills = 2;                 // spread evenly over the run
  int seconds = 30;              // the run lasts so long, or until all orders are loaded
};

/// Prints what happens and the account. Returns whether every order was accounted for: none lost,
/// none early, no more duplicates than leases were open at the kills. Errors: the run could not be
/// carried through.
detent::Result<bool> run(const std::vector<Order>& orders, const RunOptions& options);

}  // namespace orders
