#include "durable/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

#include "detent/check.h"
#include "durable/task_values.h"
#include "task/limits.h"

namespace detent::durable {
namespace {

/// How long a name waits for tasks before it asks again.
constexpr std::chrono::hours kWait{24};
/// The pause before a failed action is tried again.
constexpr std::chrono::seconds kPause{1};
/// Tasks of a name without a handler that are made dead in one commit.
constexpr std::size_t kUnclaimedBatch = 100;

/// A job that two threads may run, and that runs on the first of them. Thread-safe.
class OnceJob {
 public:
  explicit OnceJob(Job job) noexcept : job_(std::move(job)) {}

  // A job that throws ends the process: the executor's contract.
  void run() noexcept {
    if (begun_.exchange(true)) return;
    job_();
    job_ = Job();
  }

 private:
  Job job_;  // touched only by the thread that begins it
  std::atomic<bool> begun_ = false;
};

}  // namespace

/// A task in the hands of its handler, or on the way there.
struct Dispatcher::Attempt {
  enum class State : std::uint8_t { waiting, running, taken_back };

  Attempt(Name& of_name, LeaseToken by_lease, TaskInfo of_task, std::shared_ptr<Handler> by_handler)
      : name(of_name), lease(by_lease), task(std::move(of_task)), handler(std::move(by_handler)) {}

  /// The caller that gets true decides about the task: the thread that runs it, or stop().
  bool leave_waiting(State to) noexcept {
    State waiting = State::waiting;
    return state.compare_exchange_strong(waiting, to, std::memory_order_relaxed);
  }

  Name& name;
  LeaseToken lease;  // touched only by the engine's thread
  const TaskInfo task;
  // Shared with the name, which may get another handler while this handler runs. Null: the name has
  // no handler.
  const std::shared_ptr<Handler> handler;
  // Written once, by the running thread or by the engine's thread. Relaxed: it guards only itself.
  // A mutex is not possible, because a job that comes too late must not touch the dispatcher, which
  // may be gone.
  std::atomic<State> state{State::waiting};
};

/// Touched only by the engine's thread.
struct Dispatcher::Name {
  std::string name = {};
  std::shared_ptr<Handler> handler = nullptr;
  std::size_t concurrency = kUnclaimedBatch;
  std::optional<Engine::WaitId> wait = std::nullopt;
  // By the task's id. Shared with the jobs at the executor, which may outlive this.
  std::unordered_map<std::uint64_t, std::shared_ptr<Attempt>> attempts = {};
};

Dispatcher::Dispatcher(EngineThread& engine, Clock& clock, Executor& executor)
    : engine_(engine), clock_(clock), executor_(executor) {
  hand_over_thread_ = Thread([this] { run_hand_over(); });
}

Dispatcher::~Dispatcher() { stop(); }

// ---- names ----

void Dispatcher::on(std::string name, Handler handler, std::size_t concurrency) {
  auto shared = std::make_shared<Handler>(std::move(handler));
  // Refused only during a stop, when the handler is no longer needed.
  (void)engine_.post([this, name = std::move(name), shared = std::move(shared),
                      concurrency](Engine& engine) mutable {
    Name& entry = name_of(name);
    entry.handler = std::move(shared);
    entry.concurrency = concurrency;
    if (entry.wait) {
      engine.abandon_wait(*entry.wait);  // it is for another number of tasks; take() waits again
    } else {
      wait_for_tasks(engine, entry);
    }
  });
}

void Dispatcher::start() {
  // Refused only during a stop, when the command is no longer needed.
  (void)engine_.post([this](Engine& engine) {
    all_handlers_there_ = true;
    for (const QueueStats& queue : engine.stats().queues) name_of(queue.queue);
    for (auto& [name, entry] : names_) wait_for_tasks(engine, entry);
  });
}

void Dispatcher::note_task(Engine& engine, const std::string& name) {
  if (all_handlers_there_) wait_for_tasks(engine, name_of(name));
}

Dispatcher::Name& Dispatcher::name_of(const std::string& name) {
  const auto [it, is_new] = names_.try_emplace(name);
  if (is_new) it->second.name = name;
  return it->second;
}

// ---- from the engine to the handler ----

void Dispatcher::wait_for_tasks(Engine& engine, Name& name) {
  if (waits_ended_ || name.wait || name.attempts.size() >= name.concurrency) return;
  count(+1);
  name.wait = engine.lease_or_wait(
      {.queue = name.name,
       .max = std::min(name.concurrency - name.attempts.size(), kMaxLeaseTasks),
       .visibility_timeout = kMaxVisibilityTimeout,
       .worker = {}},
      kWait, [this, &name, handler = name.handler](Result<std::vector<LeasedTask>> leased) {
        take(name, handler, std::move(leased));
      });
}

void Dispatcher::take(Name& name, const std::shared_ptr<Handler>& handler,
                      Result<std::vector<LeasedTask>> leased) {
  name.wait.reset();
  std::vector<Ending> endings;
  if (leased) {
    count(static_cast<std::int64_t>(leased->size()));
    for (LeasedTask& task : *leased) {
      const auto [it, is_new] = name.attempts.try_emplace(task.task.id.value);
      if (!is_new) {
        // The store failed and was opened again while its handler ran: its end will hold here, too.
        it->second->lease = task.lease;
        count(-1);
        continue;
      }
      it->second = std::make_shared<Attempt>(
          name, task.lease, to_public(std::move(task.task), TaskState::leased), handler);
      begin(it->second, endings);
    }
    want_settling(std::move(endings), &name);
  } else {
    pause({.until = clock_.now() + kPause, .name = &name});
  }
  count(-1);  // the wait is over, and all that came of it counted
}

void Dispatcher::begin(const std::shared_ptr<Attempt>& attempt, std::vector<Ending>& endings) {
  if (waits_ended_) {
    endings.push_back({.attempt = attempt, .kind = Ending::Kind::given_back});
  } else if (attempt->handler == nullptr) {
    endings.push_back({.attempt = attempt,
                       .kind = Ending::Kind::buried,
                       .error = "there is no handler for '" + attempt->name.name + "'"});
  } else {
    hand_over([this, attempt] { run(attempt); });
  }
}

void Dispatcher::hand_over(Job job) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  bell_.ring();
}

void Dispatcher::run_hand_over() {
  for (bool going_on = true; going_on;) {
    const std::optional<MonotonicTime> next_pause_end = end_pauses();
    std::vector<Job> jobs;
    {
      const MutexLock lock(mutex_);
      jobs.swap(jobs_);
      going_on = !ended_;
    }
    for (Job& job : jobs) execute(std::move(job));
    if (going_on) clock_.wait(bell_, next_pause_end);
  }
}

// An executor that throws may have taken the job all the same, so the job runs where it is first.
void Dispatcher::execute(Job job) {
  const auto once = std::make_shared<OnceJob>(std::move(job));
  try {
    executor_.execute([once] { once->run(); });
  } catch (...) {  // user code may throw any type
    once->run();
  }
}

std::optional<MonotonicTime> Dispatcher::end_pauses() {
  std::vector<Pause> over;
  std::optional<MonotonicTime> next;
  {
    const MutexLock lock(mutex_);
    const MonotonicTime end = stopping_ ? MonotonicTime::max() : clock_.now();
    for (Pause& pause : std::exchange(pauses_, {})) {
      if (pause.until > end) next = std::min(pause.until, next.value_or(pause.until));
      (pause.until > end ? pauses_ : over).push_back(std::move(pause));
    }
  }
  for (Pause& pause : over) want_settling(std::move(pause.endings), pause.name);
  return next;
}

// ---- the handler, and back to the engine ----

void Dispatcher::run(const std::shared_ptr<Attempt>& attempt) {
  if (!attempt->leave_waiting(Attempt::State::running)) return;
  {
    const MutexLock lock(mutex_);
    ++running_;
  }
  Ending ending{.attempt = attempt, .kind = Ending::Kind::failed};
  try {
    switch ((*attempt->handler)(TaskView(attempt->task))) {
      case Outcome::done:
        ending.kind = Ending::Kind::completed;
        break;
      case Outcome::retry:
        ending.error = "the handler asked for another attempt";
        break;
      case Outcome::dead:
        ending.kind = Ending::Kind::buried;
        ending.error = "the handler gave the task up";
        break;
    }
  } catch (const std::exception& thrown) {
    ending.error = thrown.what();
  } catch (...) {
    // The attempt has failed. The type of the exception is unknown.
    ending.error = "the handler threw an object that is not a std::exception";
  }
  std::vector<Ending> endings;
  endings.push_back(std::move(ending));
  want_settling(std::move(endings), nullptr);
  const MutexLock lock(mutex_);
  --running_;
  at_rest_.notify_all();  // under the lock: after it this may be gone
}

void Dispatcher::want_settling(std::vector<Ending> endings, Name* name) {
  {
    const MutexLock lock(mutex_);
    for (Ending& ending : endings) endings_.push_back(std::move(ending));
    if (name != nullptr) unserved_.push_back(name);
    if (std::exchange(settling_wanted_, true)) return;
  }
  // Refused only when all stops: the leases then run out.
  (void)engine_.post([this](Engine& engine) { settle(engine); });
}

void Dispatcher::settle(Engine& engine) {
  std::vector<Ending> endings;
  std::vector<Name*> names;
  {
    const MutexLock lock(mutex_);
    endings.swap(endings_);
    names.swap(unserved_);
    settling_wanted_ = false;
  }
  for (const Ending& ending : endings) {
    names.push_back(&ending.attempt->name);
    settle(engine, ending);
  }
  for (Name* const name : names) wait_for_tasks(engine, *name);
}

void Dispatcher::settle(Engine& engine, const Ending& ending) {
  const auto call = [&]() -> Result<LeaseOutcome> {
    const LeaseToken lease = ending.attempt->lease;
    switch (ending.kind) {
      case Ending::Kind::completed:
        return engine.complete(lease);
      case Ending::Kind::failed:
        return engine.fail({.lease = lease, .delay = std::nullopt, .error = ending.error});
      case Ending::Kind::buried:
        return engine.bury(lease, ending.error);
      case Ending::Kind::given_back:
        return engine.release(lease);
    }
    return LeaseOutcome::conflict;
  };
  // A conflict: the engine that gave the lease is gone, and another will hand the task out again.
  const Result<LeaseOutcome> outcome = call();
  if (!outcome && !waits_ended_) {
    pause({.until = clock_.now() + kPause, .endings = {ending}});
    return;
  }
  ending.attempt->name.attempts.erase(ending.attempt->task.id);
  count(-1);
}

void Dispatcher::pause(Pause pause) {
  {
    const MutexLock lock(mutex_);
    pauses_.push_back(std::move(pause));
  }
  bell_.ring();
}

void Dispatcher::count(std::int64_t waits_and_leases) {
  const MutexLock lock(mutex_);
  waits_and_leases_ += waits_and_leases;
  DETENT_CHECK(waits_and_leases_ >= 0);
  at_rest_.notify_all();
}

// ---- the end ----

void Dispatcher::stop() {
  const MutexLock only_one(stopping_once_);
  {
    const MutexLock lock(mutex_);
    if (ended_) return;
    stopping_ = true;
  }
  bell_.ring();  // the pauses are over
  // Refused only where too many commands wait, which those who post are kept from.
  // It counts until it has run: a name's first wait may be queued before it.
  count(+1);
  DETENT_CHECK(engine_.post([this](Engine& engine) {
    end_waiting(engine);
    count(-1);
  }));
  {
    const MutexLock lock(mutex_);
    while (waits_and_leases_ != 0 || running_ != 0) at_rest_.wait(mutex_);
  }
  engine_.stop();
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  bell_.ring();
  hand_over_thread_.join();
}

void Dispatcher::end_waiting(Engine& engine) {
  waits_ended_ = true;
  engine.end_waits();
  std::vector<Ending> endings;
  for (auto& [name, entry] : names_) {
    for (const auto& [id, attempt] : entry.attempts) {
      if (attempt->leave_waiting(Attempt::State::taken_back))
        endings.push_back({.attempt = attempt});
    }
  }
  for (const Ending& ending : endings) settle(engine, ending);
}

}  // namespace detent::durable
