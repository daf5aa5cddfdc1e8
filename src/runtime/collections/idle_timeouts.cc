// The connections of an IdleTimeouts in a slab and their timers in one wheel, behind one mutex. A
// refresh does not take the mutex.
//
// When a timer fires, the table compares it with the last refresh of its connection. If there was a
// refresh after the timer was set, the timer is set again: for the last refresh plus the time-out
// (lazy postponement). Otherwise the connection becomes *due*. The due connections are reported to
// on_idle one after the other. A connection that is removed before its turn is not reported. A
// refresh of a due connection has no effect.
#include "detent/idle_timeouts.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/slab.h"
#include "detent/check.h"
#include "detent/scheduler.h"
#include "runtime/collections/deadline_wheel.h"
#include "runtime/collections/wakeup_timer.h"

namespace detent::internal {

namespace {

/// The most timers that one wake-up fires or moves. The limit keeps the lock short and lets other
/// timers of the scheduler run.
constexpr std::size_t kStepsPerWakeup = 1024;

/// The connections, without threads or clocks. Thread-compatible, except for the atomic members of
/// IdleConnection.
///
/// Invariants:
///  1. A connection is pending in the wheel if and only if it is `waiting`.
///  2. A connection that is `due` has its index in due_ exactly once. due_ may also contain the
///     index of a removed connection. The index may then be free, or belong to a newer connection.
class IdleTable {
 public:
  IdleTable(MonotonicTime start, std::chrono::nanoseconds resolution) : wheel_(start, resolution) {}

  IdleConnection& add(std::uint64_t id, std::chrono::nanoseconds timeout, MonotonicTime now) {
    IdleConnection& added = connections_.emplace();
    added.id = id;
    added.timeout = timeout;
    added.last_activity.store(now, std::memory_order_relaxed);
    wheel_.set(added.index, saturating_add(now, timeout));
    return added;
  }

  /// Returns whether its call of on_idle had not begun yet.
  bool remove(IdleConnection& connection) noexcept {
    const bool is_early = connection.state != IdleConnection::State::over;
    wheel_.cancel(connection.index);
    connections_.erase(connection.index);
    return is_early;
  }

  /// Finds the connections that are idle. Requires: no connection is due. Returns whether work may
  /// be left.
  bool advance(MonotonicTime now) noexcept {
    due_.clear();
    const auto on_fire = [&](std::uint32_t index) {
      IdleConnection& fired = connections_[index];
      const MonotonicTime active = fired.last_activity.load(std::memory_order_relaxed);
      const MonotonicTime idle_at = saturating_add(active, fired.timeout);
      if (now < idle_at) return wheel_.set(index, idle_at);
      fired.state = IdleConnection::State::due;
      due_.push_back(index);
    };
    const bool more = wheel_.advance(now, on_fire, kStepsPerWakeup);
    std::ranges::reverse(due_);  // take_due takes from the end
    return more;
  }

  /// Takes the next connection to report and sets its state to `over`. Null if there is none.
  IdleConnection* take_due() noexcept {
    while (!due_.empty()) {
      IdleConnection* const next = connections_.find(due_.back());
      due_.pop_back();
      // A new connection may have this index, but it is not due: connections become due only in
      // `advance`.
      if (next == nullptr || next->state != IdleConnection::State::due) continue;
      next->state = IdleConnection::State::over;
      return next;
    }
    return nullptr;
  }

  std::optional<MonotonicTime> next_wakeup() const noexcept { return wheel_.next_wakeup(); }
  std::size_t size() const noexcept { return connections_.size(); }

  void check_invariants() const noexcept {
    wheel_.check_invariants();
    connections_.check_invariants();
    std::size_t waiting = 0;
    connections_.for_each([&](const IdleConnection& connection) {
      const bool is_waiting = connection.state == IdleConnection::State::waiting;
      waiting += is_waiting ? 1 : 0;
      DETENT_CHECK(wheel_.is_pending(connection.index) == is_waiting);
      if (connection.state != IdleConnection::State::due) return;
      DETENT_CHECK(std::ranges::count(due_, connection.index) == 1);
    });
    DETENT_CHECK(wheel_.size() == waiting);
  }

 private:
  Slab<IdleConnection> connections_;
  DeadlineWheel wheel_;
  std::vector<std::uint32_t> due_;
};

}  // namespace

/// Thread-safe. After `close`, connections can only be removed.
class IdleTimeoutsCore final : public std::enable_shared_from_this<IdleTimeoutsCore>,
                               private WakeupTimer::Owner {
 public:
  IdleTimeoutsCore(Scheduler& scheduler, IdleTimeoutsOptions options)
      : on_idle_(std::move(options.on_idle)),
        clock_(scheduler.clock()),
        table_(clock_.now(), options.resolution),
        timer_(scheduler, static_cast<WakeupTimer::Owner&>(*this)) {
    DETENT_CHECK(static_cast<bool>(on_idle_));
  }
  IdleTimeoutsCore(const IdleTimeoutsCore&) = delete;
  IdleTimeoutsCore& operator=(const IdleTimeoutsCore&) = delete;

  /// The present time; empty after `close`, because the clock may no longer exist.
  std::optional<MonotonicTime> now() const noexcept {
    if (told_all_.load(std::memory_order_relaxed)) return std::nullopt;
    return clock_.now();
  }

  IdleTimeouts::Connection add(std::uint64_t id, std::chrono::nanoseconds timeout) {
    std::optional<MonotonicTime> wake_by;
    IdleConnection* added = nullptr;
    {
      MutexLock lock(mu_);
      added = &table_.add(id, timeout, clock_.now());
      wake_by = table_.next_wakeup();
      if (wake_by && timer_.is_set_by(*wake_by)) wake_by.reset();
    }
    IdleTimeouts::Connection connection(shared_from_this(), *added);
    if (wake_by) timer_.wake_by(*wake_by);
    return connection;
  }

  CancelResult remove(IdleConnection& connection) noexcept {
    MutexLock lock(mu_);
    return take_out(connection);
  }

  CancelResult remove_and_wait(IdleConnection& connection) noexcept {
    MutexLock lock(mu_);
    const bool may_wait = !is_closed_ && running_on_ != std::this_thread::get_id();
    if (running_ != &connection || !may_wait) return take_out(connection);
    while (running_ == &connection) ended_.wait(mu_);
    table_.remove(connection);
    return CancelResult::running;
  }

  bool was_left() const noexcept { return timer_.was_left(); }

  /// Waits until on_idle does not run. No connection is reported after this call.
  void close() noexcept {
    timer_.close();
    told_all_.store(true, std::memory_order_relaxed);
    MutexLock lock(mu_);
    is_closed_ = true;
  }

  std::size_t size() const noexcept {
    MutexLock lock(mu_);
    return table_.size();
  }

  void check_invariants() const noexcept {
    MutexLock lock(mu_);
    table_.check_invariants();
  }

 private:
  std::optional<MonotonicTime> on_wakeup() noexcept override {
    bool more = false;
    {
      MutexLock lock(mu_);
      more = table_.advance(clock_.now());
    }
    while (const std::optional<std::uint64_t> id = next_idle()) on_idle_(*id);
    MutexLock lock(mu_);
    return more ? clock_.now() : table_.next_wakeup();
  }

  CancelResult take_out(IdleConnection& connection) noexcept DETENT_REQUIRES(mu_) {
    if (is_closed_) {
      table_.remove(connection);
      return CancelResult::not_pending;
    }
    const bool is_running = running_ == &connection;
    if (is_running) running_ = nullptr;  // a new connection may get its memory
    if (table_.remove(connection)) return CancelResult::cancelled;
    return is_running ? CancelResult::running : CancelResult::not_pending;
  }

  /// Ends the previous call of on_idle, and returns the id for the next call. Empty if no
  /// connection is due.
  std::optional<std::uint64_t> next_idle() noexcept {
    MutexLock lock(mu_);
    if (running_ != nullptr) ended_.notify_all();
    running_ = table_.take_due();
    if (running_ == nullptr) return std::nullopt;
    running_on_ = std::this_thread::get_id();
    return running_->id;
  }

  // Constant after construction. The clock may no longer exist after `close`.
  const std::function<void(std::uint64_t)> on_idle_;
  const Clock& clock_;

  mutable Mutex mu_;
  CondVar ended_;  // signalled when a call of on_idle ends
  IdleTable table_ DETENT_GUARDED_BY(mu_);
  // running_: the connection whose on_idle runs, unless the connection was removed during the run.
  // running_on_: the thread of the latest call of on_idle.
  const IdleConnection* running_ DETENT_GUARDED_BY(mu_) = nullptr;
  std::thread::id running_on_ DETENT_GUARDED_BY(mu_);
  bool is_closed_ DETENT_GUARDED_BY(mu_) = false;

  // Like is_closed_, for `now` and `refresh`, which take no lock. Written by `close`. Relaxed is
  // enough: no thread may be inside a call while the IdleTimeouts is destroyed.
  std::atomic<bool> told_all_ = false;

  // With its own synchronisation.
  WakeupTimer timer_;
};

}  // namespace detent::internal

namespace detent {

using internal::IdleTimeoutsCore;

// ---- IdleTimeouts -------------------------------------------------------------------------------

IdleTimeouts::IdleTimeouts(Scheduler& scheduler, IdleTimeoutsOptions options)
    : timeout_(options.timeout),
      core_(std::make_shared<IdleTimeoutsCore>(scheduler, std::move(options))) {}

IdleTimeouts::~IdleTimeouts() {
  if (core_->was_left()) {
    static_cast<void>(new std::shared_ptr<IdleTimeoutsCore>(core_));  // it is never destroyed
  } else {
    core_->close();
  }
}

IdleTimeouts::Connection IdleTimeouts::add(std::uint64_t id) { return add(id, timeout_); }

IdleTimeouts::Connection IdleTimeouts::add_ns(std::uint64_t id, std::chrono::nanoseconds timeout) {
  return core_->add(id, timeout);
}

std::size_t IdleTimeouts::size() const noexcept { return core_->size(); }
void IdleTimeouts::check_invariants() const noexcept { core_->check_invariants(); }

// ---- Connection ---------------------------------------------------------------------------------

IdleTimeouts::Connection::Connection(std::shared_ptr<IdleTimeoutsCore> core,
                                     internal::IdleConnection& connection) noexcept
    : core_(std::move(core)), connection_(&connection) {}

IdleTimeouts::Connection::~Connection() { remove(); }

IdleTimeouts::Connection::Connection(Connection&& other) noexcept
    : core_(std::move(other.core_)), connection_(std::exchange(other.connection_, nullptr)) {}

IdleTimeouts::Connection& IdleTimeouts::Connection::operator=(Connection&& other) noexcept {
  if (this == &other) return *this;
  remove();
  core_ = std::move(other.core_);
  connection_ = std::exchange(other.connection_, nullptr);
  return *this;
}

void IdleTimeouts::Connection::refresh() noexcept {
  if (connection_ == nullptr) return;
  if (const std::optional<MonotonicTime> now = core_->now()) refresh(*now);
}

CancelResult IdleTimeouts::Connection::remove() noexcept {
  if (connection_ == nullptr) return CancelResult::not_pending;
  const auto core = std::move(core_);
  return core->remove(*std::exchange(connection_, nullptr));
}

CancelResult IdleTimeouts::Connection::remove_and_wait() noexcept {
  if (connection_ == nullptr) return CancelResult::not_pending;
  const auto core = std::move(core_);
  return core->remove_and_wait(*std::exchange(connection_, nullptr));
}

}  // namespace detent
