// The orders of the example: made by a seeded generator, or read from a file of one order a line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"

namespace orders {

/// An order that is cancelled unless it is paid in time. Times count from the first order.
struct Order {
  std::string id;
  std::string queue;
  std::chrono::milliseconds created{0};
  std::chrono::milliseconds pay_by{0};
};

/// `count` orders created at the same moment, to be paid within 1 second to 30 days, log-uniform:
/// as many between 10 and 20 seconds as between 10 and 20 days. The same seed, the same orders.
std::vector<Order> generate(std::size_t count, std::uint64_t seed);

/// One line an order: {"id":"o-17","queue":"orders","created":0,"pay_by":4711} (milliseconds).
void write_orders(const std::vector<Order>& orders, std::ostream& out);
/// Plain or gzipped.
detent::Result<std::vector<Order>> read_orders(const std::filesystem::path& file);

/// A trace, plain or gzipped: {"n":0,"queue":"a/b","created":1190439592,"due":1190440100} a line
/// (seconds since 1970, in the order of `created`); time runs `speed` times faster than it did.
detent::Result<std::vector<Order>> read_trace(const std::filesystem::path& file, double speed);

}  // namespace orders
