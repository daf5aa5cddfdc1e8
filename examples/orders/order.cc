#include "examples/orders/order.h"

#include <zlib.h>

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "base/rng.h"
#include "protocol/json/json_fields.h"

namespace orders {
namespace {

using detent::Error;
using detent::ErrorCode;
using detent::Result;
using detent::json::JsonDocument;
using detent::json::JsonField;
using std::chrono::milliseconds;

constexpr double kShortestMs = 1e3;
constexpr double kLongestMs = 30.0 * 24 * 3600 * 1e3;

using ReadLine = std::function<Result<Order>(const std::string& line)>;

/// Reads a file, plain or gzipped. zlib detects the format. Lines are at most 64 KiB.
Result<std::vector<Order>> read_lines(const std::filesystem::path& file, const ReadLine& read) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(file.c_str(), "rb"), gzclose);
  if (in == nullptr) return Error{ErrorCode::not_found, "cannot read " + file.string()};
  std::vector<Order> orders;
  std::vector<char> buffer(64 * 1024);
  while (gzgets(in.get(), buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    const std::string line(buffer.data());
    Result<Order> order = read(line);
    if (!order) {
      return detent::with_context(file.string() + " line " + std::to_string(orders.size() + 1),
                                  std::move(order).error());
    }
    orders.push_back(*std::move(order));
  }
  return orders;
}

Result<Order> parse_order(const std::string& line) {
  JsonDocument document;
  JsonField id{"id"};
  JsonField queue{"queue"};
  JsonField created{"created"};
  JsonField pay_by{"pay_by"};
  const std::array fields{&id, &queue, &created, &pay_by};
  TRY(detent::json::take_fields(document, line, fields, detent::json::UnknownFields::refuse));
  Order order;
  ASSIGN_OR_RETURN(order.id, read_string(id));
  ASSIGN_OR_RETURN(order.queue, read_string(queue));
  ASSIGN_OR_RETURN(const std::uint64_t created_ms, read_integer(created, {}));
  ASSIGN_OR_RETURN(const std::uint64_t pay_by_ms, read_integer(pay_by, {}));
  order.created = milliseconds{static_cast<std::int64_t>(created_ms)};
  order.pay_by = milliseconds{static_cast<std::int64_t>(pay_by_ms)};
  return order;
}

struct TraceLine {
  std::string queue;
  double created_s = 0;
  double due_s = 0;
};

Result<TraceLine> parse_trace(const std::string& line) {
  JsonDocument document;
  JsonField queue{"queue"};
  JsonField created{"created"};
  JsonField due{"due"};
  const std::array fields{&queue, &created, &due};
  TRY(detent::json::take_fields(document, line, fields, detent::json::UnknownFields::skip));
  TraceLine read;
  ASSIGN_OR_RETURN(read.queue, read_string(queue));
  ASSIGN_OR_RETURN(const std::uint64_t created_s, read_integer(created, {}));
  ASSIGN_OR_RETURN(const std::uint64_t due_s, read_integer(due, {}));
  read.created_s = static_cast<double>(created_s);
  read.due_s = static_cast<double>(due_s);
  return read;
}

}  // namespace

std::vector<Order> generate(std::size_t count, std::uint64_t seed) {
  detent::Rng rng(seed);
  std::vector<Order> orders(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double delay = kShortestMs * std::pow(kLongestMs / kShortestMs, rng.unit());
    orders[i] = {.id = "o-" + std::to_string(i),
                 .queue = "orders",
                 .pay_by = milliseconds{static_cast<std::int64_t>(delay)}};
  }
  return orders;
}

void write_orders(const std::vector<Order>& orders, std::ostream& out) {
  for (const Order& order : orders) {
    out << R"({"id":")" << order.id << R"(","queue":")" << order.queue << R"(","created":)"
        << order.created.count() << R"(,"pay_by":)" << order.pay_by.count() << "}\n";
  }
}

Result<std::vector<Order>> read_orders(const std::filesystem::path& file) {
  return read_lines(file, parse_order);
}

Result<std::vector<Order>> read_trace(const std::filesystem::path& file, double speed) {
  std::optional<double> first_s;
  std::size_t count = 0;
  return read_lines(file, [&](const std::string& line) -> Result<Order> {
    ASSIGN_OR_RETURN(TraceLine read, parse_trace(line));
    if (!first_s) first_s = read.created_s;
    const auto compressed = [&](double at_s) {
      return milliseconds{static_cast<std::int64_t>((at_s - *first_s) * 1e3 / speed)};
    };
    // Names like "owner/repository" are valid queue names without a change.
    return Order{.id = "t-" + std::to_string(count++),
                 .queue = std::move(read.queue),
                 .created = compressed(read.created_s),
                 .pay_by = compressed(read.due_s)};
  });
}

}  // namespace orders
