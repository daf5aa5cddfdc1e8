// What a running server reads again when it gets SIGHUP: the level of its log, and the files that
// parts of it have read. All else needs a restart, and the log says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace detent::server {

/// Confined to the thread that makes it.
class Reloads {
 public:
  /// Reads a file again and puts what it holds in force; on an error all stays as it was.
  using Reload = std::function<Result<void>()>;

  /// `call` is what the server was started with.
  Reloads(cli::ServeCall call, cli::ReadAgain read_again);

  /// `what` is for people: "the tokens in /etc/detent/tokens".
  void add(std::string what, Reload reload);

  /// Reads all again. What cannot be read stays as it was; each outcome is logged.
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
