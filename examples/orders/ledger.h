// Records what happened to each order. The loader and the workers write it, and the end of the run
// adds it up.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"

namespace orders {

/// One order. Its number is its position in the file.
struct Entry {
  std::uint64_t task = 0;  // 0 until the server has acknowledged it
  detent::WallTime due_at{};
  int deliveries = 0;
  bool completed = false;  // completed, and the server has acknowledged it
  // The server died during the completion. Either the order is completed, or it will be delivered
  // again.
  bool outcome_unknown = false;
};

/// Thread-safe.
class Ledger {
 public:
  explicit Ledger(std::size_t orders) : entries_(orders) {}

  /// The order will be loaded next. A worker may get it before the loader gets the answer.
  void offered(std::size_t order, detent::WallTime due_at) DETENT_EXCLUDES(mutex_);
  void loaded(std::size_t order, std::uint64_t task) DETENT_EXCLUDES(mutex_);
  void delivered(std::size_t order, detent::WallTime now) DETENT_EXCLUDES(mutex_);
  void completed(std::size_t order) DETENT_EXCLUDES(mutex_);
  /// The server died before it answered the completion of a lease.
  void answer_lost(std::size_t order) DETENT_EXCLUDES(mutex_);
  /// A lease ended without its worker: the server was killed before the worker sent the completion.
  void lease_lost() DETENT_EXCLUDES(mutex_);

  /// The number of orders due by `until` that wait for a worker or are leased.
  std::size_t open_count(detent::WallTime until) const DETENT_EXCLUDES(mutex_);
  std::vector<Entry> entries() const DETENT_EXCLUDES(mutex_);

  struct Sums {
    std::size_t loaded = 0;
    std::size_t fired = 0;  // delivered at least once
    std::size_t completed = 0;
    std::size_t early = 0;       // deliveries before the due time
    std::size_t duplicates = 0;  // deliveries after the first delivery of an order
    std::size_t open_leases = 0;
    std::chrono::milliseconds lateness_p50{0};
    std::chrono::milliseconds lateness_p99{0};
  };
  Sums sums() const DETENT_EXCLUDES(mutex_);

 private:
  mutable detent::Mutex mutex_;
  std::vector<Entry> entries_ DETENT_GUARDED_BY(mutex_);
  std::vector<std::chrono::milliseconds> lateness_ DETENT_GUARDED_BY(mutex_);  // first deliveries
  std::size_t early_ DETENT_GUARDED_BY(mutex_) = 0;
  std::size_t open_leases_ DETENT_GUARDED_BY(mutex_) = 0;
};

}  // namespace orders
