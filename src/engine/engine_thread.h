// The thread an Engine lives on, and the queue through which others reach it.
//
// Commands are run in the order posted; all that gathered while the last turn wrote to the store
// form the next batch, so the number of syncs falls as the load rises and an idle engine answers
// after one.
//
// When they are more than a **slice** of time holds, the rest waits for the turns after it, and is
// run by queues: one command of each in turn (command_turns.h). So whoever floods one queue delays
// the others by a slice and one command, not by the flood. Commands that name no queue are one more
// among them, in their order. After each command what has become due goes to workers that wait;
// leases that ran out, webhooks and the store have their turn between slices.
//
// When the store fails nothing more is acknowledged: what the failed write was for is answered
// `unavailable`, as everything after it. The thread then closes the store and opens it again, once
// a second until it can; the new engine starts from what is on disk, under a new epoch, and takes
// over the leases of the failed one (Engine::take_over_leases).
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
#include "engine/command_turns.h"
#include "engine/engine.h"

namespace detent {

/// An engine and the store it works on, which may also live elsewhere (null).
struct OpenEngine {
  std::unique_ptr<Store> store;
  std::unique_ptr<Engine> engine;
};

/// What happens to the engine, told on its thread, and how it is opened again.
struct EngineEvents {
  /// The store failed; nothing is acknowledged until on_reopened. At a stop: open leases are lost.
  UniqueFunction<void(const Error&)> on_stopped = {};
  /// An attempt to open it again failed.
  UniqueFunction<void(const Error&)> on_reopen_failed = {};
  UniqueFunction<void()> on_reopened = {};
  /// Opens the store and an engine on it; the old store is closed by then. Without it a failed
  /// engine stays as it is.
  UniqueFunction<Result<OpenEngine>()> reopen = {};
};

class EngineThread {
 public:
  using Command = CommandTurns::Command;
  /// The queue that a command is for; asked at most once, before the command runs, on the engine's
  /// thread, and only when it is not run in the slice in which it came.
  using QueueOf = UniqueFunction<std::string(const Engine&)>;
  /// Stands for a queue that no task is in: its name has a control byte. For the few commands that
  /// must come in time, whatever the queues, and those that name none, are flooded with.
  static QueueOf own_line() {
    return [](const Engine& /*engine*/) { return std::string("\1own"); };
  }
  /// Most commands that may wait; further ones are refused.
  static constexpr std::size_t kMaxCommands = 100'000;
  /// An idle engine wakes so often to look whether the wall clock was stepped, and a failed one to
  /// open its store again.
  static constexpr std::chrono::seconds kLongestSleep{1};
  /// How long commands are run before the turn that commits them, give or take the last of them:
  /// while workers wait, or commands for several queues do; and in any case. No less than the turn
  /// before took for all else, of which its sync may be most: so commands get half of the time, up
  /// to the longest.
  static constexpr std::chrono::microseconds kSharedSlice{500};
  static constexpr std::chrono::milliseconds kSlice{5};
  static constexpr std::chrono::milliseconds kLongestSlice{20};
  /// No further command is run in a slice once those before it have changed so many tasks, while
  /// others wait: some tenths of a millisecond of writing. As many times that as the turn before
  /// took this long, up to four: where syncs are slow, small commits would be few tasks a second.
  static constexpr std::size_t kSharedChanges = 250;
  static constexpr std::chrono::milliseconds kSlowTurn{4};

  /// Starts the thread. `clock` is the engine's and must outlive this.
  EngineThread(OpenEngine opened, Clock& clock, EngineEvents events = {});
  /// Stops, if stop() has not been called.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Has `command` run on the engine's thread, soon, with the engine there is then. Never blocks.
  /// Returns false, and drops the command, when too many wait or the thread is stopping.
  /// It runs after all commands of the same queue that were posted before it, and before those
  /// posted after it; without `queue` likewise among those without one. Commands of different
  /// queues may change places.
  [[nodiscard]] bool post(Command command, QueueOf queue = {}) DETENT_EXCLUDES(mutex_);
  /// The same for what ends something that was posted before, which must not be lost: never refused
  /// for the number of those that wait, only dropped when the thread is stopping.
  void post_end(Command command, QueueOf queue = {}) DETENT_EXCLUDES(mutex_);

  /// The same for what ends a lease. While the store has failed it waits, and it runs as soon as
  /// the store is open again: leases outlive a failure, and nobody asks for this a second time.
  void post_end_of_lease(Command command, QueueOf queue = {}) DETENT_EXCLUDES(mutex_);

  /// Answers every wait, runs what was posted before, commits, closes the store, and joins.
  /// Idempotent; not from the engine's own thread.
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
  /// Gives what was posted; returns false when the thread is to stop.
  bool take_commands(std::vector<Posted>& posted) DETENT_EXCLUDES(mutex_);
  void note_run() DETENT_EXCLUDES(mutex_);

  // Constant after construction.
  Clock& clock_;

  // Synchronises itself.
  Doorbell bell_;

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  Mutex mutex_;
  std::vector<Posted> commands_ DETENT_GUARDED_BY(mutex_);
  std::size_t taken_ DETENT_GUARDED_BY(mutex_) = 0;  // and not run before the slice under way
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched only by the engine's thread.
  OpenEngine opened_;
  EngineEvents events_;
  CommandTurns turns_;             // taken, and not run yet
  std::vector<Command> kept_;      // until the store is open again
  std::vector<Command> run_;       // in this turn; kept until it is over, with what they hold
  std::size_t staged_before_ = 0;  // changes at hand when the slice began
  MonotonicTime::duration turn_took_{0};  // the last one, without the commands before it
  bool has_failed_ = false;
  MonotonicTime next_reopen_{};

  Thread thread_;  // last: it uses all of the above
};

}  // namespace detent
