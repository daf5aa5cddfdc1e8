// Takes due orders from one queue and completes them, on its own thread.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "detent/client.h"
#include "detent/clock.h"
#include "examples/orders/ledger.h"

namespace orders {

class Worker {
 public:
  /// Starts. `clock` and `ledger` must outlive it.
  Worker(std::string url, std::string queue, detent::Clock& clock, Ledger& ledger);
  /// Stops after the present call has returned.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  void run();
  /// Completes the leased orders and records the results.
  void finish(detent::Client& client, const std::vector<detent::client::LeasedTask>& tasks);
  /// Waits a moment, because the server does not answer.
  void rest();

  // Constant after construction.
  const std::string url_;
  const std::string queue_;

  // With their own synchronisation.
  detent::Clock& clock_;
  Ledger& ledger_;
  detent::Doorbell stop_bell_;
  std::atomic<bool> stopping_ = false;  // a flag, written by the destructor, read by the thread

  std::thread thread_;
};

}  // namespace orders
