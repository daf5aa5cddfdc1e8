// The settings that a running server reads again after SIGHUP: the log level, and the files that
// its parts have read. Other settings need a restart, and the log says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings/settings.h"

namespace detent::server {

/// Confined to the thread that makes it.
class Reloads {
 public:
  /// Reads a file again and applies it. On an error the old settings stay in force.
  using Reload = std::function<Result<void>()>;

  /// `call` has the arguments with which the server was started.
  Reloads(cli::ServeCall call, cli::ReadAgain read_again);

  /// `what` names the file for people: "the tokens in /etc/detent/tokens".
  void add(std::string what, Reload reload);

  /// Reads all files again. Unreadable files leave their settings unchanged. Each outcome is
  /// logged.
  void run();

 private:
  void compare(const cli::ServeCall& now);

  cli::ServeCall call_;
  cli::ReadAgain read_again_;
  struct Part {
    std::string what;
    Reload reload;
  };
  std::vector<Part> parts_;
};

}  // namespace detent::server
