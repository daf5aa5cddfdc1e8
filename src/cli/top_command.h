// `detent top`: looks at a server again and again, and shows what it sees.
//
// On a terminal that is a screen which keys sort; elsewhere a line a look. What looks like a
// terminal is behind an interface, so the loop runs in tests without one; top_terminal.h has the
// real ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "client/api_client.h"

namespace detent::cli {

/// What ended a wait.
struct TopEvent {
  enum class Kind : std::uint8_t { time, key, resize, quit };
  Kind kind = Kind::time;
  char key = '\0';
};

/// Where it is shown. Thread-compatible.
class TopDisplay {
 public:
  virtual ~TopDisplay() = default;
  /// False: it shows lines, one after the other.
  virtual bool is_screen() const = 0;
  virtual std::size_t width() const = 0;
  virtual std::size_t height() const = 0;
  /// Shows these instead of what there was, or below it where it is no screen.
  virtual void show(const std::vector<std::string>& lines) = 0;
  /// Waits for something to happen, at most so long.
  virtual TopEvent wait(std::chrono::milliseconds most) = 0;
};

/// Until somebody quits. Fails when the first look does, before `open` is called; after that a
/// screen goes on and says what is wrong, lines end. With `once` it looks once and opens nothing.
using OpenTopDisplay = std::function<std::unique_ptr<TopDisplay>(const Streams&)>;
ExitCode run_top(const TopCommand& command, const ClientCall& call, ApiClient& client,
                 const Streams& streams, const OpenTopDisplay& open);

}  // namespace detent::cli
