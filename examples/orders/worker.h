// Takes what is due from one queue and completes it, on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "client/api_client.h"
#include "detent/clock.h"
#include "examples/orders/ledger.h"

namespace orders {

class Worker {
 public:
  /// Starts. `clock` and `ledger` must outlive it.
  Worker(std::string url, std::string queue, detent::Clock& clock, Ledger& ledger);
  /// Stops after the call that is under way.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  void run();
  /// Completes what was leased and notes what came of it.
  void finish(detent::ApiClient& client, const std::vector<detent::ApiClient::LeasedTask>& tasks);
  /// The server is away: waits a moment for it to come back.
  void rest();

  // Constant after construction.
  const std::string url_;
  const std::string queue_;

  // Synchronise themselves.
  detent::Clock& clock_;
  Ledger& ledger_;
  detent::Doorbell stop_bell_;
  std::atomic<bool> stopping_ = false;  // written by the destructor, read by the thread; a flag

  std::thread thread_;
};

}  // namespace orders
