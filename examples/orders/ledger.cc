#include "examples/orders/ledger.h"

#include <algorithm>

namespace orders {

using detent::MutexLock;
using std::chrono::milliseconds;

void Ledger::offered(std::size_t order, detent::WallTime due_at) {
  const MutexLock lock(mutex_);
  entries_.at(order).due_at = due_at;
}

void Ledger::loaded(std::size_t order, std::uint64_t task) {
  const MutexLock lock(mutex_);
  entries_.at(order).task = task;
}

void Ledger::delivered(std::size_t order, detent::WallTime now) {
  const MutexLock lock(mutex_);
  Entry& entry = entries_.at(order);
  if (now < entry.due_at) ++early_;
  if (entry.deliveries++ == 0) lateness_.push_back(now - entry.due_at);
}

void Ledger::completed(std::size_t order) {
  const MutexLock lock(mutex_);
  entries_.at(order).completed = true;
}

void Ledger::answer_lost(std::size_t order) {
  const MutexLock lock(mutex_);
  entries_.at(order).outcome_unknown = true;
  ++open_leases_;
}

void Ledger::lease_lost() {
  const MutexLock lock(mutex_);
  ++open_leases_;
}

std::size_t Ledger::open_count(detent::WallTime until) const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(entries_, [until](const Entry& entry) {
    return entry.task != 0 && entry.due_at <= until && !entry.completed && !entry.outcome_unknown;
  }));
}

std::vector<Entry> Ledger::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

Ledger::Sums Ledger::sums() const {
  const MutexLock lock(mutex_);
  Sums sums{.early = early_, .open_leases = open_leases_};
  for (const Entry& entry : entries_) {
    if (entry.task != 0) ++sums.loaded;
    if (entry.completed) ++sums.completed;
    if (entry.deliveries == 0) continue;
    ++sums.fired;
    sums.duplicates += static_cast<std::size_t>(entry.deliveries - 1);
  }
  if (!lateness_.empty()) {
    std::vector<milliseconds> sorted = lateness_;
    std::ranges::sort(sorted);
    sums.lateness_p50 = sorted[sorted.size() / 2];
    sums.lateness_p99 = sorted[sorted.size() * 99 / 100];
  }
  return sums;
}

}  // namespace orders
