// The verbs, as commands to the engine's thread. Each is answered after the next commit.
// dispatcher.h runs the handlers.
#include "detent/durable_scheduler.h"

#include <future>
#include <system_error>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "durable/dispatcher.h"
#include "durable/task_values.h"
#include "engine/thread/engine_thread.h"
#include "store/rocksdb/rocksdb_store.h"
#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// The most schedule_async() calls without an answer. This is half of the engine thread's limit, so
/// that the commands of the dispatcher are never refused.
constexpr std::size_t kMaxUnanswered = EngineThread::kMaxCommands / 2;

/// In a child process of fork(), where no thread answers.
Error left() {
  return {ErrorCode::unavailable,
          "this DurableScheduler was opened before fork(), and its threads are in the parent "
          "process; open it after fork()",
          ""};
}

Error refused() {
  return {ErrorCode::unavailable, "the scheduler has stopped, or too many calls wait", ""};
}

Result<ScheduledTask> schedule_on(Engine& engine, durable::Dispatcher& dispatcher,
                                  milliseconds key_retention, ScheduleRequest request) {
  const std::string name = request.queue;
  const bool is_new = !engine.queue(name);
  ASSIGN_OR_RETURN(const auto scheduled, engine.schedule(std::move(request)));
  // A name that has been there, perhaps as a server's queue, keeps its settings.
  if (is_new) TRY(engine.set_queue(name, {.key_retention = key_retention}));
  dispatcher.note_task(engine, name);
  return ScheduledTask{.id = scheduled.task.id.value,
                       .due_at = scheduled.task.due_at,
                       .was_there = scheduled.was_there};
}

/// Opens the folder; or opens it again when its disk has failed.
Result<OpenEngine> open_engine(const DurableOptions& options, Clock& clock, DataFolderIs folder,
                               const std::shared_ptr<DataFolderMark>& mark) {
  OpenEngine opened;
  ASSIGN_OR_RETURN(opened.store,
                   RocksDbStore::open({.path = options.path, .folder = folder, .mark = mark}));
  ASSIGN_OR_RETURN(opened.engine, Engine::open(*opened.store, clock,
                                               {.window = options.window,
                                                .max_loaded = options.max_loaded,
                                                .seed = random_seed()}));
  return opened;
}

}  // namespace

/// All that an open folder needs. Thread-safe.
class DurableScheduler::Impl {
 public:
  static Result<std::unique_ptr<Impl>> open(const DurableOptions& options) {
    std::unique_ptr<Impl> impl(new Impl(options));
    Clock& clock = options.clock != nullptr ? *options.clock : impl->own_clock_;
    const auto mark = std::make_shared<DataFolderMark>();
    ASSIGN_OR_RETURN(OpenEngine opened,
                     open_engine(options, clock, DataFolderIs::made_if_missing, mark));
    try {
      if (options.executor == nullptr) {
        impl->own_pool_ = std::make_unique<ThreadPool>(
            ThreadPoolOptions{.threads = options.threads, .when_full = WhenPoolFull::block});
      }
      Executor& executor = options.executor != nullptr ? *options.executor : *impl->own_pool_;
      const auto reopen = [options, &clock, mark] {
        return open_engine(options, clock, DataFolderIs::there, mark);
      };
      impl->engine_ =
          std::make_unique<EngineThread>(std::move(opened), clock, EngineEvents{.reopen = reopen});
      impl->dispatcher_ = std::make_unique<durable::Dispatcher>(*impl->engine_, clock, executor);
    } catch (const std::system_error& thrown) {
      return Error{ErrorCode::resource_exhausted,
                   std::string("cannot start threads: ") + thrown.what(), ""};
    }
    return impl;
  }

  bool was_left() const noexcept { return home_.was_left(); }
  durable::Dispatcher& dispatcher() noexcept { return *dispatcher_; }

  /// Runs `verb`, which answers a Result<T>, on the engine's thread; the answer once it is durable.
  template <class T, class Verb>
  DurableResult<T> call(Verb verb) {
    if (was_left()) return durable::to_public(left());
    std::promise<DurableResult<T>> promise;
    std::future<DurableResult<T>> answer = promise.get_future();
    const bool posted =
        post<T>(std::move(verb), [promise = std::move(promise)](DurableResult<T> result) mutable {
          promise.set_value(std::move(result));
        });
    return posted ? answer.get() : DurableResult<T>(durable::to_public(refused()));
  }

  auto schedule_verb(ScheduleRequest request) {
    return [this, request = std::move(request)](Engine& engine) mutable {
      return schedule_on(engine, *dispatcher_, key_retention_, std::move(request));
    };
  }

  void schedule_async(ScheduleRequest request, OnScheduled done) {
    if (was_left()) {
      done(durable::to_public(left()));
      return;
    }
    if (!count_unanswered()) {
      done(durable::to_public(refused()));
      return;
    }
    // Shared by the command, which is lost when it is refused, and this call.
    auto shared = std::make_shared<OnScheduled>(std::move(done));
    const bool posted = post<ScheduledTask>(
        schedule_verb(std::move(request)),
        [this, shared](DurableResult<ScheduledTask> result) mutable {
          dispatcher_->hand_over(
              [shared = std::move(shared), result = std::move(result)] { (*shared)(result); });
          forget_unanswered();
        });
    if (posted) return;
    forget_unanswered();
    (*shared)(durable::to_public(refused()));
  }

 private:
  explicit Impl(const DurableOptions& options) : key_retention_(options.key_retention) {}

  template <class T, class Verb, class Done>
  bool post(Verb verb, Done done) {
    return engine_->post([verb = std::move(verb), done = std::move(done)](Engine& engine) mutable {
      engine.after_commit(
          [result = verb(engine), done = std::move(done)](const Result<void>& committed) mutable {
            if (!committed) return done(durable::to_public(committed.error()));
            if (!result) return done(durable::to_public(result.error()));
            if constexpr (std::is_void_v<T>) {
              done(DurableResult<void>());
            } else {
              done(DurableResult<T>(*std::move(result)));
            }
          });
    });
  }

  bool count_unanswered() DETENT_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (unanswered_ == kMaxUnanswered) return false;
    ++unanswered_;
    return true;
  }
  void forget_unanswered() DETENT_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    --unanswered_;
  }

  Mutex mutex_;
  std::size_t unanswered_ DETENT_GUARDED_BY(mutex_) = 0;

  // Constant once it is open. The later ones use the earlier ones, and mutex_, on their threads.
  const internal::HomeProcess home_;
  const milliseconds key_retention_;
  SystemClock own_clock_;
  std::unique_ptr<ThreadPool> own_pool_;
  std::unique_ptr<EngineThread> engine_;
  std::unique_ptr<durable::Dispatcher> dispatcher_;  // stops the engine's thread
};

namespace {

/// The id of a task that was named by id, or by name and key.
template <class Target>
Result<TaskId> id_of(Engine& engine, const Target& target) {
  if (target.id != 0) return TaskId{target.id};
  return engine.id_of_key(target.name, target.key);
}

}  // namespace

DurableResult<DurableScheduler> DurableScheduler::open(DurableOptions options) {
  DETENT_CHECK(options.window > milliseconds{0});
  DETENT_CHECK(options.max_loaded > 0);
  DETENT_CHECK(options.key_retention >= milliseconds{0});
  DETENT_CHECK(options.key_retention <= kMaxRetention);
  Result<std::unique_ptr<Impl>> impl = Impl::open(options);
  if (!impl) return durable::to_public(impl.error());
  return DurableScheduler(*std::move(impl));
}

DurableScheduler::DurableScheduler(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
DurableScheduler::~DurableScheduler() {
  if (impl_ && impl_->was_left()) static_cast<void>(impl_.release());
}
DurableScheduler::DurableScheduler(DurableScheduler&& other) noexcept = default;
DurableScheduler& DurableScheduler::operator=(DurableScheduler&& other) noexcept {
  if (this == &other) return *this;
  const DurableScheduler old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

void DurableScheduler::on(std::string name, Handler handler, HandlerOptions options) {
  DETENT_CHECK(is_queue_name(name));
  DETENT_CHECK(static_cast<bool>(handler));
  DETENT_CHECK(options.concurrency >= 1);
  DETENT_CHECK(options.concurrency <= kMaxLeaseTasks);
  if (impl_->was_left()) return;
  impl_->dispatcher().on(std::move(name), std::move(handler), options.concurrency);
}

void DurableScheduler::start() {
  if (!impl_->was_left()) impl_->dispatcher().start();
}

void DurableScheduler::stop() {
  if (!impl_->was_left()) impl_->dispatcher().stop();
}

DurableResult<ScheduledTask> DurableScheduler::schedule_due(TaskRequest request, Due due) {
  return impl_->call<ScheduledTask>(
      impl_->schedule_verb(durable::to_internal(std::move(request), due)));
}

void DurableScheduler::schedule_due_async(TaskRequest request, Due due, OnScheduled done) {
  impl_->schedule_async(durable::to_internal(std::move(request), due), std::move(done));
}

DurableResult<void> DurableScheduler::cancel_task(Target target) {
  return impl_->call<void>([target = std::move(target)](Engine& engine) -> Result<void> {
    ASSIGN_OR_RETURN(const TaskId id, id_of(engine, target));
    return engine.cancel(id);
  });
}

DurableResult<TaskInfo> DurableScheduler::move_task(Target target, Due due) {
  return impl_->call<TaskInfo>([target = std::move(target), due](Engine& e) -> Result<TaskInfo> {
    ASSIGN_OR_RETURN(const TaskId id, id_of(e, target));
    ASSIGN_OR_RETURN(auto moved, e.move(id, due));
    return durable::to_public(std::move(moved.task), moved.state);
  });
}

DurableResult<TaskInfo> DurableScheduler::find_task(Target target) {
  return impl_->call<TaskInfo>([target = std::move(target)](Engine& e) -> Result<TaskInfo> {
    ASSIGN_OR_RETURN(const TaskId id, id_of(e, target));
    ASSIGN_OR_RETURN(auto found, e.get(id));
    return durable::to_public(std::move(found.task), found.state);
  });
}

}  // namespace detent
