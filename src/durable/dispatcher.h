// Brings due tasks from the engine to their handlers, and the results back to the engine.
//
// Each name has at most one wait at the engine (Engine::lease_or_wait), for as many tasks as its
// handler may take. The tasks go through the hand-over thread of the dispatcher to the executor. An
// executor may run a job inside execute(), and the engine's thread must not run jobs. The result of
// a task is *settled* on the engine's thread. One command settles all tasks that ended since the
// last turn, so they share one commit.
//
// A lease lasts for the longest possible time and is never extended. In a server, a lease expires
// so that a dead worker does not keep its task. Here the handler runs in the same process as the
// engine, so the leases end with the process. So if a process was suspended, or a handler runs for
// a day, the task does not run a second time.
//
// stop() returns when there are no waits and no leases. It waits for running handlers. If the
// handler of a task has not begun, the task is given back. Its job may still be in the executor; it
// then sees that the task was taken back, and does not touch the dispatcher.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "detent/durable_scheduler.h"
#include "detent/executor.h"
#include "engine/thread/engine_thread.h"

namespace detent::durable {

/// Thread-safe, except functions that name the thread on which they run.
class Dispatcher {
 public:
  using Handler = DurableScheduler::Handler;

  /// Starts the hand-over thread. All arguments must outlive this object. Requires: `engine` is
  /// stopped only by stop().
  Dispatcher(EngineThread& engine, Clock& clock, Executor& executor);
  /// Stops, if stop() has not been called.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// As in DurableScheduler. They have no effect after stop().
  void on(std::string name, Handler handler, std::size_t concurrency);
  void start();
  /// Tells of a task that was scheduled under this name. On the engine's thread.
  void note_task(Engine& engine, const std::string& name);
  /// Has the executor run `job`, soon, even when it is about to stop. When the executor throws, the
  /// hand-over thread runs it.
  void hand_over(Job job) DETENT_EXCLUDES(mutex_);

  /// See above. Stops the engine's thread, too. Idempotent; not from a handler.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  struct Attempt;
  struct Name;
  /// How an attempt ended.
  struct Ending {
    enum class Kind : std::uint8_t { completed, failed, buried, given_back };
    std::shared_ptr<Attempt> attempt;
    Kind kind = Kind::given_back;
    std::string error = {};
  };
  /// An action to repeat after a pause: settling results, or a wait for a name.
  struct Pause {
    MonotonicTime until;
    std::vector<Ending> endings = {};
    Name* name = nullptr;
  };

  // On the engine's thread.
  Name& name_of(const std::string& name);
  /// Has the name wait for tasks if its handler may take on more.
  void wait_for_tasks(Engine& engine, Name& name);
  void take(Name& name, const std::shared_ptr<Handler>& handler,
            Result<std::vector<LeasedTask>> leased);
  /// Hands a task to its handler. If that is not possible, adds its result to `endings`.
  void begin(const std::shared_ptr<Attempt>& attempt, std::vector<Ending>& endings);
  void settle(Engine& engine);
  void settle(Engine& engine, const Ending& ending);
  void end_waiting(Engine& engine);

  // On a thread of the executor.
  void run(const std::shared_ptr<Attempt>& attempt);

  // On any thread.
  /// Has endings settled, and a name that has no wait (may be null) wait again.
  void want_settling(std::vector<Ending> endings, Name* name) DETENT_EXCLUDES(mutex_);
  void pause(Pause pause) DETENT_EXCLUDES(mutex_);
  void count(std::int64_t waits_and_leases) DETENT_EXCLUDES(mutex_);

  // The hand-over thread.
  void run_hand_over();
  void execute(Job job);
  /// Requests the settling of all results whose pause is over. Returns when the next pause ends.
  std::optional<MonotonicTime> end_pauses() DETENT_EXCLUDES(mutex_);

  // Constant after construction.
  EngineThread& engine_;
  Clock& clock_;
  Executor& executor_;

  // Synchronises itself.
  Doorbell bell_;  // the hand-over thread's

  // Guarded by mutex_.
  Mutex stopping_once_;  // only one of several callers of stop() does it
  Mutex mutex_;
  CondVar at_rest_;
  std::vector<Job> jobs_ DETENT_GUARDED_BY(mutex_);
  std::vector<Pause> pauses_ DETENT_GUARDED_BY(mutex_);
  std::vector<Ending> endings_ DETENT_GUARDED_BY(mutex_);
  std::vector<Name*> unserved_ DETENT_GUARDED_BY(mutex_);  // names that have no wait
  bool settling_wanted_ DETENT_GUARDED_BY(mutex_) = false;
  std::int64_t waits_and_leases_ DETENT_GUARDED_BY(mutex_) = 0;
  std::size_t running_ DETENT_GUARDED_BY(mutex_) = 0;  // threads of the executor inside run()
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;    // no new pauses
  bool ended_ DETENT_GUARDED_BY(mutex_) = false;       // the hand-over thread ends

  // Touched only by the engine's thread.
  std::unordered_map<std::string, Name> names_;
  bool all_handlers_there_ = false;
  bool waits_ended_ = false;

  Thread hand_over_thread_;
};

}  // namespace detent::durable
