// The server in its own process, which can be killed and started again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace orders {

/// Thread-compatible. The destructor kills a running server.
class ServerProcess {
 public:
  /// `program` is the detent program. It keeps its data in the folder `data`.
  ServerProcess(std::filesystem::path program, std::filesystem::path data)
      : program_(std::move(program)), data_(std::move(data)) {}
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Starts the server and waits until it reports that it is ready. The first start takes a free
  /// port, later starts use the same port.
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
