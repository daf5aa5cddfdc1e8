// Brings due tasks from the engine to their handlers, and what became of them back.
//
// Each name has at most one wait at the engine (Engine::lease_or_wait), for as many tasks as its
// handler may take on. What it brings goes through a thread of the dispatcher's own, the hand-over
// thread, to the executor, because an executor may run a job inside execute() and the engine's
// thread must not run it. What the handler made of a task is *settled* on the engine's thread; all
// that ended since the last turn is settled in one command, so it shares one commit.
//
// A lease here is taken for the longest time there is and never extended. Leases run out so that a
// worker that died does not keep its task; these are memory of the process that the handler runs
// in, and end with it. So a process that was suspended, or a handler that takes a day, does not
// find its task running a second time.
//
// The end. stop() counts waits and leases, and returns when there are none: running handlers are
// waited for; a task whose handler has not begun is given back, and its job, wherever the executor
// has it, will find it taken back and do nothing, touching nothing of the dispatcher.
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
#include "engine/engine_thread.h"

namespace detent::durable {

/// Thread-safe but for what says on which thread it runs.
class Dispatcher {
 public:
  using Handler = DurableScheduler::Handler;

  /// Starts the hand-over thread. All must outlive this. Requires: nobody but stop() stops
  /// `engine`.
  Dispatcher(EngineThread& engine, Clock& clock, Executor& executor);
  /// Stops, if stop() has not been called.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// As DurableScheduler has them; nothing happens after stop().
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
  /// What is to be tried again after a while: endings to be settled, or a wait for a name.
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
  /// Hands a task to its handler, or adds to `endings` what becomes of it without.
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
  /// Wants what has paused long enough to be settled; returns when the next will have.
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
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;    // nothing pauses any more
  bool ended_ DETENT_GUARDED_BY(mutex_) = false;       // the hand-over thread ends

  // Touched only by the engine's thread.
  std::unordered_map<std::string, Name> names_;
  bool all_handlers_there_ = false;
  bool waits_ended_ = false;

  Thread hand_over_thread_;
};

}  // namespace detent::durable
