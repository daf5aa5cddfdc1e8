// The server as a process of its own, to be killed and started again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace orders {

/// Thread-compatible. Destruction kills what still runs.
class ServerProcess {
 public:
  /// `program` is the detent binary; it will keep its data in `data`.
  ServerProcess(std::filesystem::path program, std::filesystem::path data)
      : program_(std::move(program)), data_(std::move(data)) {}
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Starts it and waits until it says that it is ready. The first start takes a free port, the
  /// later ones the same again.
  detent::Result<void> start();
  /// kill -9; returns when the process is gone.
  void kill();
  /// SIGTERM; returns the exit status.
  int stop();

  /// "http://127.0.0.1:PORT"
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  std::filesystem::path program_;
  std::filesystem::path data_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace orders
