// The thread that runs an Engine, and the queue through which other threads reach the engine.
//
// The thread runs commands in the order of posting. All commands that arrive while one turn writes
// to the store form the next batch. So the number of syncs falls as the load rises, and an idle
// engine answers after one sync.
//
// If the waiting commands exceed one **slice** of time, the rest waits for later turns. It is
// sorted by queue, and the thread takes one command of each queue in rotation (command_turns.h).
// Commands without a queue form one more group, in their order. So a flood of one queue delays the
// other queues by a slice and one command. After each command, waiting workers get the tasks that
// became due. Expired leases, webhooks and the store are handled between two slices.
//
// If the store fails, no more requests are acknowledged. The requests of the failed write, and all
// later requests, are answered with `unavailable`. The thread closes the store, then tries to open
// it once a second until this succeeds. The new engine starts from the data on disk, with a new
// epoch. It takes over the leases of the failed engine (Engine::take_over_leases).
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/engine.h"
#include "engine/thread/command_turns.h"

namespace detent {

/// An engine and its store. `store` is null if another object owns the store.
struct OpenEngine {
  std::unique_ptr<Store> store;
  std::unique_ptr<Engine> engine;
};

/// Callbacks about the state of the engine, called on its thread, and the function that opens it
/// again.
struct EngineEvents {
  /// The store failed, with this cause. No request is acknowledged until on_reopened. If this
  /// happens during a stop, the open leases are lost.
  UniqueFunction<void(const Error&)> on_stopped = {};
  /// An attempt to open the store again failed.
  UniqueFunction<void(const Error&)> on_reopen_failed = {};
  UniqueFunction<void()> on_reopened = {};
  /// Opens the store and an engine on it. The old store is already closed. If this is empty, a
  /// failed engine stays failed.
  UniqueFunction<Result<OpenEngine>()> reopen = {};
};

class EngineThread {
 public:
  using Command = CommandTurns::Command;
  /// The queue of a command. It is called at most once, before the command runs, on the engine's
  /// thread, and only if the command does not run in its first slice.
  using QueueOf = UniqueFunction<std::string(const Engine&)>;
  /// A group of its own for the few commands that must run in time even if the queues, or the
  /// commands without a queue, are flooded. The name has a control byte, so no real queue has it.
  static QueueOf own_line() {
    return [](const Engine& /*engine*/) { return std::string("\1own"); };
  }
  /// The most commands that may wait. Further commands are refused.
  static constexpr std::size_t kMaxCommands = 100'000;
  /// How often an idle engine wakes up to check whether the wall clock was stepped, and how often
  /// the thread tries to open the store of a failed engine.
  static constexpr std::chrono::seconds kLongestSleep{1};
  /// How long commands run before the turn that commits them. The last command may exceed the time.
  /// kSharedSlice applies while workers wait or commands of several queues wait, and kSlice
  /// otherwise. A slice lasts at least as long as the rest of the previous turn, but at most
  /// kLongestSlice. Most of that rest may be a sync. So commands get half of the time, up to this
  /// limit.
  static constexpr std::chrono::microseconds kSharedSlice{500};
  static constexpr std::chrono::milliseconds kSlice{5};
  static constexpr std::chrono::milliseconds kLongestSlice{20};
  /// While workers or other queues wait, a slice ends after commands have changed this many tasks,
  /// which take some tenths of a millisecond to write. If the previous turn took longer than
  /// kSlowTurn, the limit is multiplied by the ratio, up to four. Where syncs are slow, small
  /// commits would limit the tasks per second.
  static constexpr std::size_t kSharedChanges = 250;
  static constexpr std::chrono::milliseconds kSlowTurn{4};

  /// Starts the thread. `clock` is the clock of the engine and must outlive this object.
  EngineThread(OpenEngine opened, Clock& clock, EngineEvents events = {});
  /// Calls stop() if it was not called.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Runs `command` on the engine's thread soon, with the engine of that moment. Never blocks.
  /// Returns false, and drops the command, if too many commands wait or the thread is stopping.
  /// Commands of one queue run in the order of posting. The same holds for commands without a
  /// queue. Commands of different queues may change places.
  [[nodiscard]] bool post(Command command, QueueOf queue = {}) DETENT_EXCLUDES(mutex_);
  /// As post(), for a command that ends something that was posted before and must not be lost. The
  /// limit of waiting commands does not apply. The command is dropped only if the thread is
  /// stopping.
  void post_end(Command command, QueueOf queue = {}) DETENT_EXCLUDES(mutex_);

  /// As post_end(), for a command that ends a lease. After a failure of the store it waits until
  /// the store is open again. Leases outlive a failure, and the client does not send the request a
  /// second time.
  void post_end_of_lease(Command command, QueueOf queue = {}) DETENT_EXCLUDES(mutex_);

  /// Answers every wait, runs the posted commands, commits, closes the store, and joins the thread.
  /// Idempotent. Must not be called from the engine's thread.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  enum class Room : std::uint8_t { limited, always };
  struct Posted {
    Command command;
    QueueOf queue;
  };
  bool post(Posted posted, Room room) DETENT_EXCLUDES(mutex_);
  void run();
  void run_slice(std::vector<Posted>& posted);
  bool is_over(MonotonicTime slice_start) const;
  void sleep();
  void note_failure(const Error& error);
  void try_reopen();
  /// Takes the posted commands. Returns false if the thread must stop.
  bool take_commands(std::vector<Posted>& posted) DETENT_EXCLUDES(mutex_);
  void note_run() DETENT_EXCLUDES(mutex_);

  // Constant after construction.
  Clock& clock_;

  // Synchronizes itself.
  Doorbell bell_;

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  Mutex mutex_;
  std::vector<Posted> commands_ DETENT_GUARDED_BY(mutex_);
  std::size_t taken_ DETENT_GUARDED_BY(mutex_) =
      0;  // commands taken from commands_ that had not run before the present slice
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched only by the engine's thread.
  OpenEngine opened_;
  EngineEvents events_;
  CommandTurns turns_;             // commands that were taken and have not run yet
  std::vector<Command> kept_;      // commands that wait until the store is open again
  std::vector<Command> run_;       // commands of this turn; their captures stay alive until its end
  std::size_t staged_before_ = 0;  // staged changes when the slice began
  MonotonicTime::duration turn_took_{0};  // the previous turn, without the commands before it
  bool has_failed_ = false;
  MonotonicTime next_reopen_{};

  Thread thread_;  // last: it uses all of the above
};

}  // namespace detent
