// `detent top` requests the stats of a server again and again and shows them.
//
// On a terminal it fills the screen, and keys choose the order of the queues. In a pipe it prints
// one line per update. TopDisplay is the interface of the output, so tests run without a terminal.
// top_terminal.h has the real displays.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/commands/commands.h"
#include "detent/client.h"

namespace detent::cli {

/// The reason why a wait ended.
struct TopEvent {
  enum class Kind : std::uint8_t { time, key, resize, quit };
  Kind kind = Kind::time;
  char key = '\0';
};

/// The output of `detent top`. Thread-compatible.
class TopDisplay {
 public:
  virtual ~TopDisplay() = default;
  /// Whether it is a screen. If not, it prints one line after the other.
  virtual bool is_screen() const = 0;
  virtual std::size_t width() const = 0;
  virtual std::size_t height() const = 0;
  /// Replaces the screen with these lines. Without a screen, appends them.
  virtual void show(const std::vector<std::string>& lines) = 0;
  /// Waits for an event. After `most` it returns the event `time`.
  virtual TopEvent wait(std::chrono::milliseconds most) = 0;
};

using OpenTopDisplay = std::function<std::unique_ptr<TopDisplay>(const Streams&)>;

/// Runs until the user quits. If the first request fails, the command fails before it calls `open`.
/// If a later request fails, a screen shows the error and continues; without a screen the command
/// fails. With `once` it prints one update and does not call `open`.
ExitCode run_top(const TopCommand& command, const ClientCall& call, Client& client,
                 const Streams& streams, const OpenTopDisplay& open);

}  // namespace detent::cli
