#include "detent/worker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "client/client_impl.h"
#include "detent/check.h"
#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::array<milliseconds, 6> kPauses{milliseconds{100},   milliseconds{200},
                                              milliseconds{500},   milliseconds{1'000},
                                              milliseconds{2'000}, milliseconds{5'000}};

std::string name_of_process() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  // If the host has no name, the process id must be enough.
  (void)::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + ":" + std::to_string(::getpid());
}

/// The pause after `failures` failed calls in a row. Requires: failures > 0.
milliseconds pause_after(std::size_t failures) {
  return kPauses[std::min(failures, kPauses.size()) - 1];
}

ClientError lost_lease(std::uint64_t id, const char* rest = "") {
  return {.code = ClientError::Code::conflict,
          .message = "the lease of task " + std::to_string(id) + " was lost" + rest};
}

bool is_conflict(const ClientResult<client::LeaseStatus>& outcome) {
  return outcome && *outcome == client::LeaseStatus::conflict;
}

/// True if the client does not know whether the call took effect.
bool is_unknown(const ClientResult<client::LeaseStatus>& outcome) {
  return !outcome && outcome.error().code == ClientError::Code::unavailable;
}

/// A task that this worker has leased.
struct Held {
  WorkTask task;
  std::stop_source abandon;
  Doorbell report_bell;  // ends the pause between failed reports
  // Guarded by the worker's mu_.
  bool is_waiting = true;     // no handler has begun the task
  bool is_abandoned = false;  // the result of its handler is not reported
  bool is_reported = false;   // its handler has ended, and its result is or was reported
  MonotonicTime lease_end{};
};

/// Clamps a delay to the limits of the server. The server would refuse a longer delay, and the task
/// would then wait until its lease expires.
std::optional<milliseconds> within_limits(std::optional<milliseconds> delay) {
  if (delay) delay = std::clamp<milliseconds>(*delay, milliseconds{0}, kMaxDelay);
  return delay;
}

}  // namespace

/// Locks: mu_ is held only briefly. stop() holds stopping_mu_ for all of its time, so a second
/// stop() waits for the first.
class Worker::Impl {
 public:
  Impl(ClientInternals::Impl& client, std::string queue, Handler handler, WorkerOptions options)
      : client_(client),
        queue_(std::move(queue)),
        handler_(std::move(handler)),
        options_(std::move(options)),
        capacity_(options_.concurrency + options_.prefetch),
        name_(options_.name.empty() ? name_of_process() : options_.name) {
    DETENT_CHECK(options_.concurrency > 0);
    DETENT_CHECK(options_.visibility_timeout > milliseconds{0});
  }

  bool was_left() const noexcept { return home_.was_left(); }
  void start() DETENT_EXCLUDES(mu_, stopping_mu_);
  void stop(milliseconds grace) DETENT_EXCLUDES(mu_, stopping_mu_);

 private:
  using Leases = std::vector<std::string>;
  using Outcomes = Results<client::LeaseStatus>;
  using Verb = ClientInternals::Impl::LeaseVerb;

  // The functions of the threads.
  void lease_on() DETENT_EXCLUDES(mu_);
  void extend_on() DETENT_EXCLUDES(mu_);
  void work_on() DETENT_EXCLUDES(mu_);

  /// Waits for room, and returns the number of tasks to lease. Returns 0 if the worker must stop.
  std::size_t await_room() DETENT_EXCLUDES(mu_);
  ClientResult<std::vector<client::LeasedTask>> lease(std::size_t max) DETENT_EXCLUDES(mu_);
  void take(std::vector<client::LeasedTask> tasks) DETENT_EXCLUDES(mu_);
  /// Waits for a task. Returns null if the worker must stop and no task is left.
  std::shared_ptr<Held> next_task() DETENT_EXCLUDES(mu_);
  WorkResult handle(const WorkTask& task) const;
  /// Called when the handler has ended. True if the result must be reported; the task can then no
  /// longer be abandoned.
  bool is_to_be_reported(Held& held) DETENT_EXCLUDES(mu_);
  void report(Held& held, const WorkResult& result) DETENT_EXCLUDES(mu_);
  /// Waits before the next report. Returns false if the lease has expired, or if a stop no longer
  /// waits.
  bool rest(Held& held, milliseconds pause) DETENT_EXCLUDES(mu_);
  /// Sends a report. Returns one outcome for each lease. Calls on_error once if there are errors.
  Outcomes tell(const Leases& leases, const Verb& verb, std::optional<milliseconds> retry_for = {});
  void keep(const Leases& leases) DETENT_EXCLUDES(mu_);
  void lose(const Leases& leases) DETENT_EXCLUDES(mu_);
  void release(const Leases& leases) DETENT_EXCLUDES(mu_);
  void forget(const Leases& leases) DETENT_EXCLUDES(mu_);
  Leases drop_waiting() DETENT_REQUIRES(mu_);
  Leases abandon_running() DETENT_EXCLUDES(mu_);
  Leases held_leases() DETENT_EXCLUDES(mu_);
  bool is_stopping() DETENT_EXCLUDES(mu_);
  MonotonicTime lease_end_from_now() const;

  // Constant after construction.
  ClientInternals::Impl& client_;
  const std::string queue_;
  const Handler handler_;
  const WorkerOptions options_;
  const std::size_t capacity_;
  const std::string name_;
  const internal::HomeProcess home_;

  // These synchronise themselves.
  Doorbell lease_bell_;   // ends the pause between failed leases
  Doorbell extend_bell_;  // ends the wait for the next extension
  Doorbell empty_bell_;   // rings when a task is forgotten, for stop()

  Mutex stopping_mu_;

  Mutex mu_;
  CondVar changed_;  // notified when data under mu_ changes
  // By lease. Each task is shared with the thread whose handler runs it.
  std::map<std::string, std::shared_ptr<Held>> held_ DETENT_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Held>> waiting_ DETENT_GUARDED_BY(mu_);  // no handler has begun these
  // Created once, and used only by lease_on().
  std::unique_ptr<ClientConnection> poll_ DETENT_GUARDED_BY(mu_);
  bool is_stopping_ DETENT_GUARDED_BY(mu_) = false;
  bool is_grace_over_ DETENT_GUARDED_BY(mu_) = false;
  bool is_over_ DETENT_GUARDED_BY(mu_) = false;  // no task is held, and no task will be held

  std::vector<Thread> threads_ DETENT_GUARDED_BY(stopping_mu_);
};

// ---- life ---------------------------------------------------------------------------------------

void Worker::Impl::start() {
  const MutexLock lock(stopping_mu_);
  DETENT_CHECK(threads_.empty());
  threads_.emplace_back([this] { lease_on(); });
  threads_.emplace_back([this] { extend_on(); });
  for (std::size_t i = 0; i < options_.concurrency; ++i) {
    threads_.emplace_back([this] { work_on(); });
  }
}

void Worker::Impl::stop(milliseconds grace) {
  const MutexLock lock(stopping_mu_);
  Leases unbegun;
  {
    const MutexLock inner(mu_);
    is_stopping_ = true;
    unbegun = drop_waiting();
    if (poll_) poll_->interrupt();
    changed_.notify_all();
  }
  lease_bell_.ring();
  release(unbegun);
  Clock& clock = client_.clock();
  const MonotonicTime until = give_up_after(grace, clock);
  // Whatever ended the wait, the loop checks its condition again.
  while (!held_leases().empty() && clock.now() < until) (void)clock.wait(empty_bell_, until);
  release(abandon_running());
  // Each of these tasks has at most one report left.
  while (!held_leases().empty()) (void)clock.wait(empty_bell_, std::nullopt);
  {
    const MutexLock inner(mu_);
    is_over_ = true;
  }
  extend_bell_.ring();
  for (Thread& thread : threads_) thread.join();
}

bool Worker::Impl::is_stopping() {
  const MutexLock lock(mu_);
  return is_stopping_;
}

// ---- leasing ------------------------------------------------------------------------------------

void Worker::Impl::lease_on() {
  std::size_t failures = 0;
  while (const std::size_t room = await_room()) {
    auto tasks = lease(room);
    if (tasks) {
      failures = 0;
      take(std::move(tasks).value());
      continue;
    }
    if (is_stopping()) return;
    options_.on_error(tasks.error());
    // A stop also rings this doorbell; the next await_room() notices the stop.
    (void)client_.clock().wait(lease_bell_, client_.clock().now() + pause_after(++failures));
  }
}

std::size_t Worker::Impl::await_room() {
  const MutexLock lock(mu_);
  while (!is_stopping_ && held_.size() >= capacity_) changed_.wait(mu_);
  return is_stopping_ ? 0 : capacity_ - held_.size();
}

ClientResult<std::vector<client::LeasedTask>> Worker::Impl::lease(std::size_t max) {
  ClientConnection* poll = nullptr;
  {
    const MutexLock lock(mu_);
    if (!poll_) {
      auto made = client_.connect_once();
      if (!made) return to_client(made.error());
      poll_ = *std::move(made);
      if (is_stopping_) poll_->interrupt();
    }
    poll = poll_.get();
  }
  const client::LeaseOptions options{.max = std::min(max, kMaxLeaseTasks),
                                     .wait = options_.wait,
                                     .visibility_timeout = options_.visibility_timeout,
                                     .worker = name_};
  return poll->call(lease_call(queue_, options), json::parse_leased_tasks);
}

void Worker::Impl::take(std::vector<client::LeasedTask> tasks) {
  Leases late;
  {
    const MutexLock lock(mu_);
    const MonotonicTime lease_end = lease_end_from_now();
    for (client::LeasedTask& task : tasks) {
      auto held = std::make_shared<Held>();
      held->lease_end = lease_end;
      held->task.task = std::move(task);
      held->task.abandoned = held->abandon.get_token();
      const std::string& lease = held->task.task.lease;
      held_.emplace(lease, held);
      if (is_stopping_) {
        late.push_back(lease);
      } else {
        waiting_.push_back(std::move(held));
      }
    }
    changed_.notify_all();
  }
  release(late);
}

Worker::Impl::Leases Worker::Impl::drop_waiting() {
  Leases leases;
  for (const auto& held : waiting_) leases.push_back(held->task.task.lease);
  waiting_.clear();
  return leases;
}

void Worker::Impl::release(const Leases& leases) {
  if (leases.empty()) return;
  // If a lease cannot be released, it expires later. So the results are ignored.
  (void)tell(leases, [](auto some) { return release_call(some, {}); });
  forget(leases);
}

void Worker::Impl::forget(const Leases& leases) {
  {
    const MutexLock lock(mu_);
    for (const std::string& lease : leases) held_.erase(lease);
    changed_.notify_all();
  }
  empty_bell_.ring();
}

// ---- keeping ------------------------------------------------------------------------------------

void Worker::Impl::extend_on() {
  Clock& clock = client_.clock();
  const auto is_over = [this] {
    const MutexLock lock(mu_);
    return is_over_;
  };
  const auto extend = [this](auto some) { return extend_call(some, options_.visibility_timeout); };
  const milliseconds third = options_.visibility_timeout / 3;
  for (std::size_t failures = 0; !is_over();) {
    const milliseconds pause = failures == 0 ? third : std::min(third, pause_after(failures));
    // A stop also rings this doorbell; the loop condition notices the stop.
    (void)clock.wait(extend_bell_, give_up_after(pause, clock));
    const Leases leases = held_leases();
    // Each call is made once. Repeats of a call would delay the extension of leases on other
    // shards.
    const Outcomes outcomes = leases.empty() ? Outcomes{} : tell(leases, extend, milliseconds{0});
    Leases extended;
    Leases lost;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i]) (is_conflict(outcomes[i]) ? lost : extended).push_back(leases[i]);
    }
    keep(extended);
    lose(lost);
    failures = std::any_of(outcomes.begin(), outcomes.end(), is_unknown) ? failures + 1 : 0;
  }
}

MonotonicTime Worker::Impl::lease_end_from_now() const {
  return give_up_after(options_.visibility_timeout, client_.clock());
}

void Worker::Impl::keep(const Leases& leases) {
  const MutexLock lock(mu_);
  for (const std::string& lease : leases) {
    if (const auto found = held_.find(lease); found != held_.end()) {
      found->second->lease_end = lease_end_from_now();
    }
  }
}

Worker::Impl::Leases Worker::Impl::held_leases() {
  const MutexLock lock(mu_);
  Leases leases;
  for (const auto& [lease, held] : held_) leases.push_back(lease);
  return leases;
}

/// Handles lost leases: other workers may have these tasks. Tells the handlers to abandon their
/// tasks, and forgets the tasks that no handler has begun.
void Worker::Impl::lose(const Leases& leases) {
  std::vector<std::shared_ptr<Held>> lost;
  Leases unbegun;
  {
    const MutexLock lock(mu_);
    for (const std::string& lease : leases) {
      const auto found = held_.find(lease);
      if (found == held_.end()) continue;
      if (found->second->is_reported || found->second->is_abandoned) continue;
      found->second->is_abandoned = true;
      lost.push_back(found->second);
      if (found->second->is_waiting) unbegun.push_back(lease);
    }
    std::erase_if(waiting_, [&](const auto& held) {
      return std::find(lost.begin(), lost.end(), held) != lost.end();
    });
  }
  for (const auto& held : lost) {
    held->abandon.request_stop();
    options_.on_error(lost_lease(held->task.task.id));
  }
  forget(unbegun);
}

Worker::Impl::Leases Worker::Impl::abandon_running() {
  std::vector<std::shared_ptr<Held>> late;
  {
    const MutexLock lock(mu_);
    is_grace_over_ = true;
    for (const auto& [lease, held] : held_) {
      held->report_bell.ring();
      if (held->is_reported) continue;
      held->is_abandoned = true;
      late.push_back(held);
    }
  }
  Leases leases;
  for (const auto& held : late) {
    held->abandon.request_stop();
    leases.push_back(held->task.task.lease);
  }
  return leases;
}

// ---- working ------------------------------------------------------------------------------------

void Worker::Impl::work_on() {
  while (const std::shared_ptr<Held> held = next_task()) {
    const WorkResult result = handle(held->task);
    if (is_to_be_reported(*held)) report(*held, result);
    forget({held->task.task.lease});
  }
}

bool Worker::Impl::is_to_be_reported(Held& held) {
  const MutexLock lock(mu_);
  held.is_reported = !held.is_abandoned;
  return held.is_reported;
}

std::shared_ptr<Held> Worker::Impl::next_task() {
  const MutexLock lock(mu_);
  while (waiting_.empty() && !is_stopping_) changed_.wait(mu_);
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<Held> held = std::move(waiting_.front());
  waiting_.pop_front();
  held->is_waiting = false;
  return held;
}

WorkResult Worker::Impl::handle(const WorkTask& task) const {
  try {
    return handler_(task);
  } catch (const std::exception& thrown) {
    return Retry{.error = thrown.what()};
  } catch (...) {
    // A thrown value that is not a std::exception has no text.
    return Retry{.error = "the handler threw something that is not a std::exception"};
  }
}

/// Repeats the report until the server gives a result for the lease, or the lease has expired.
void Worker::Impl::report(Held& held, const WorkResult& result) {
  const Leases leases{held.task.task.lease};
  const auto verb = [&result](auto some) {
    const auto* retry = std::get_if<Retry>(&result);
    if (const auto* dead = std::get_if<Dead>(&result)) {
      return fail_call(some, {.error = dead->error, .final = true});
    }
    if (retry == nullptr) return complete_call(some);
    return fail_call(some, {.error = retry->error, .delay = within_limits(retry->delay)});
  };
  std::size_t failures = 0;
  do {
    const ClientResult<client::LeaseStatus> outcome = tell(leases, verb).front();
    if (is_conflict(outcome)) {
      // A report that was answered with `unavailable` may have taken effect.
      const char* const or_done = failures > 0 ? ", or an earlier report was carried out" : "";
      options_.on_error(lost_lease(held.task.task.id, or_done));
    }
    if (!is_unknown(outcome)) return;
  } while (rest(held, pause_after(++failures)));
}

bool Worker::Impl::rest(Held& held, milliseconds pause) {
  Clock& clock = client_.clock();
  MonotonicTime until = clock.now() + pause;
  {
    const MutexLock lock(mu_);
    if (is_grace_over_ || clock.now() >= held.lease_end) return false;
    until = std::min(until, held.lease_end);
  }
  return !clock.wait(held.report_bell, until);
}

Worker::Impl::Outcomes Worker::Impl::tell(const Leases& leases, const Verb& verb,
                                          std::optional<milliseconds> retry_for) {
  auto results = client_.call_leases(leases, verb, retry_for);
  ClientError failure =
      results ? ClientError{.message = "the server's answer has results for other leases"}
              : results.error();
  if (!results || results.value().size() != leases.size()) {
    results = Outcomes(leases.size(), failure);
  }
  const Outcomes& outcomes = results.value();
  const auto told = std::find_if_not(outcomes.begin(), outcomes.end(),
                                     [](const auto& outcome) { return outcome.has_value(); });
  if (told != outcomes.end()) options_.on_error(told->error());
  return outcomes;
}

// ---- the public class
// -------------------------------------------------------------------------------

Worker::Worker(Client& client, std::string queue, Handler handler, WorkerOptions options)
    : impl_(std::make_unique<Impl>(ClientInternals::of(client), std::move(queue),
                                   std::move(handler), std::move(options))) {}

Worker::~Worker() {
  stop();
  if (impl_->was_left()) static_cast<void>(impl_.release());  // a child cannot join its threads
}

void Worker::start() {
  const bool is_in_its_process = !impl_->was_left();
  DETENT_CHECK(is_in_its_process);
  impl_->start();
}

void Worker::stop(milliseconds grace) {
  if (!impl_->was_left()) impl_->stop(grace);
}

void Worker::run(milliseconds grace) {
  sigset_t wanted;
  sigset_t before;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGINT);
  pthread_sigmask(SIG_BLOCK, &wanted, &before);  // the worker's threads inherit it
  start();
  int taken = 0;
  sigwait(&wanted, &taken);
  stop(grace);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace detent
