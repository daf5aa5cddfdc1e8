// Watches the free space on the disk of the data folder, and makes the engine refuse new tasks
// while too little space is left.
//
// A full disk is worse than a nearly full disk. If a write fails, the store stops, and then workers
// cannot complete the tasks that they hold. A refused task costs nothing: its producer still has
// it. Hand-outs, completions and cancellations therefore continue with the space that is left, and
// they free space.
//
// The watch refuses tasks below the limit, and accepts them again when there is a quarter more than
// the limit. The gap (hysteresis) prevents that each written file changes the state.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/log/log_pace.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "engine/values/task_intake.h"
#include "server/operate/process_figures.h"

namespace detent::server {

struct DiskWatchOptions {
  std::string folder;                // the data folder, for messages
  std::uint64_t min_free_bytes = 0;  // --min-free-disk; 0: tasks are never refused
  /// Reads the free bytes of the disk. No value: unknown; the state then stays as it is.
  std::function<std::optional<std::uint64_t>()> read;
};

/// Thread-safe.
class DiskWatch {
 public:
  static constexpr std::chrono::seconds kLookPeriod{1};

  /// Looks once, and then starts the thread. `intake` and `clock` must outlive it.
  DiskWatch(DiskWatchOptions options, TaskIntake& intake, Clock& clock);
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  /// The figures of the previous look. No value if the free space is unknown.
  std::optional<DiskFigures> figures() const noexcept;

 private:
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  void run();
  void look();
  void refuse(std::uint64_t free);

  // Constant after construction.
  const DiskWatchOptions options_;
  TaskIntake& intake_;
  Clock& clock_;

  // These members synchronize themselves.
  Doorbell bell_;
  /// Set by the destructor before it rings, read by the thread after it wakes up.
  std::atomic<bool> is_stopping_ = false;
  /// Written by the thread, read by requests. No other data depends on it.
  std::atomic<std::uint64_t> free_bytes_ = kUnknown;

  // Used only by the thread, and by the constructor before the thread starts.
  std::optional<MonotonicTime> low_since_;
  LogPace pace_;

  Thread thread_;
};

}  // namespace detent::server
