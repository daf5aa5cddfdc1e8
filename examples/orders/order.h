// The orders of the example: made by a seeded generator, or read from a file with one order per
// line.
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

/// Makes `count` orders that are created at the same moment. Each must be paid within 1 second to
/// 30 days, with a log-uniform distribution: as many between 10 and 20 seconds as between 10 and 20
/// days. The same seed gives the same orders.
std::vector<Order> generate(std::size_t count, std::uint64_t seed);

/// One order per line: {"id":"o-17","queue":"orders","created":0,"pay_by":4711} (milliseconds).
void write_orders(const std::vector<Order>& orders, std::ostream& out);
/// The file may be plain or gzipped.
detent::Result<std::vector<Order>> read_orders(const std::filesystem::path& file);

/// Reads a trace, plain or gzipped, with one task per line:
/// {"n":0,"queue":"a/b","created":1190439592,"due":1190440100}. Times are seconds since 1970, in
/// the order of `created`. The orders are `speed` times closer together than the tasks of the
/// trace.
detent::Result<std::vector<Order>> read_trace(const std::filesystem::path& file, double speed);

}  // namespace orders
