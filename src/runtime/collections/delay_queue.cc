// The threads of a DelayQueue: elements in one heap and waiting threads in two lines, behind one
// mutex that is held only for short steps.
//
// A consumer that finds no due element gets in line, and keeps its place until it leaves. A
// producer that finds no room does the same. The first consumer in line is the leader: it sleeps
// until the first element of the heap is due. The other waiting threads sleep until another thread
// rings their bell or their time limit passes. Before a thread sleeps, it writes into `wakes_at`,
// under the lock, when it will look at the queue again.
//
// No wake-up is lost, because of invariants 3 and 4 below: a thread that can be served looks in
// time. Every critical section with a change ends with `settle`, which restores the invariants and
// rings at most one thread of each line. `settle` works for every kind of change: an element that
// is due earlier, a leader that left, or an element that another thread took. If a ring comes
// between the decision to sleep and the sleep, the Doorbell keeps the ring.
#include "detent/delay_queue.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "detent/check.h"
#include "detent/internal/indexed_heap.h"
#include "detent/internal/link_list.h"

namespace detent::internal {

namespace {

/// A waiting thread. The object lies on the stack of this thread.
struct Waiter : Link {
  Doorbell bell;  // with its own synchronisation

  // How long the thread sleeps; max: until the bell rings. Only this thread uses it.
  MonotonicTime alarm;

  // Guarded by the queue's lock. `wakes_at` is the latest time of the thread's next look at the
  // queue. It is min while the thread is awake, and after a ring.
  MonotonicTime wakes_at = MonotonicTime::min();
  bool is_in_line = false;

  bool is_awake() const noexcept { return wakes_at == MonotonicTime::min(); }

  /// Makes the thread look at the queue by `time`. Called under the lock. The thread cannot leave
  /// without the lock, so the bell exists until the ring is over.
  void wake_by(MonotonicTime time) noexcept {
    if (wakes_at <= time) return;
    wakes_at = MonotonicTime::min();
    bell.ring();
  }
};

/// The threads that wait for the same thing, in the order of their arrival. Does not own them.
/// Thread-compatible.
class WaitingLine {
 public:
  /// Gets in line. A waiter that is already in line keeps its place.
  void enter(Waiter& waiter) noexcept {
    if (!waiter.is_in_line) waiters_.push_back(waiter);
    waiter.is_in_line = true;
  }
  void leave(Waiter& waiter) noexcept {
    if (waiter.is_in_line) unlink(waiter);
    waiter.is_in_line = false;
  }
  /// Null if no thread waits.
  Waiter* first() const noexcept {
    return waiters_.empty() ? nullptr : static_cast<Waiter*>(waiters_.sentinel().next);
  }
  bool are_all_awake() const noexcept {
    bool all = true;
    for_each_link(waiters_, [&](Link& link) { all &= static_cast<Waiter&>(link).is_awake(); });
    return all;
  }
  void wake_first_by(MonotonicTime time) const noexcept {
    if (Waiter* const waiter = first()) waiter->wake_by(time);
  }
  void wake_all() const noexcept {
    for_each_link(waiters_,
                  [](Link& link) { static_cast<Waiter&>(link).wake_by(MonotonicTime::min()); });
  }

 private:
  LinkList waiters_;
};

/// An element in the heap. The earliest deadline is first. Elements with equal deadlines stay in
/// the order of their pushes.
struct Entry {
  MonotonicTime deadline;
  std::uint64_t sequence;
  std::unique_ptr<DelayNode> node;

  bool is_before(const Entry& other) const noexcept {
    if (deadline != other.deadline) return deadline < other.deadline;
    return sequence < other.sequence;
  }
  void moved_to(std::size_t /*index*/) const noexcept {}  // only the first element is ever removed
};

}  // namespace

/// Thread-safe.
///
/// Invariants, whenever the lock is free:
///  1. There are at most `capacity_` elements, and none is added after closed_ is set.
///  2. Every entry has its node.
///  3. If there is an element, the first consumer in line looks at the queue by its deadline. If
///     the queue is empty and closed, every consumer looks immediately.
///  4. If there is room, the first producer in line looks immediately. If the queue is closed,
///     every producer does.
class DelayQueueCore::Impl {
 public:
  explicit Impl(const DelayQueueOptions& options)
      : clock_(options.clock != nullptr ? *options.clock : machine_), capacity_(options.capacity) {
    DETENT_CHECK(capacity_ >= 1);
  }
  ~Impl() {
    DETENT_CHECK(consumers_.first() == nullptr);
    DETENT_CHECK(producers_.first() == nullptr);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const Clock& clock() const noexcept { return clock_; }

  PushResult push(std::unique_ptr<DelayNode>& node, MonotonicTime deadline, MonotonicTime give_up) {
    std::optional<Waiter> self;  // made only if the call has to wait
    for (;;) {
      if (const auto result = look_for_room(node, deadline, give_up, self)) return *result;
      sleep(self);
    }
  }

  std::unique_ptr<DelayNode> pop(MonotonicTime give_up) {
    std::optional<Waiter> self;
    std::unique_ptr<DelayNode> node;
    while (look_for_due(node, give_up, self) == Next::wait) sleep(self);
    return node;
  }

  IndexedHeap<Entry> take_all() noexcept {
    MutexLock lock(mu_);
    IndexedHeap<Entry> taken = std::exchange(heap_, {});
    settle();
    return taken;
  }

  void close() noexcept {
    MutexLock lock(mu_);
    closed_ = true;
    settle();
  }

  bool is_closed() const noexcept {
    MutexLock lock(mu_);
    return closed_;
  }

  std::size_t size() const noexcept {
    MutexLock lock(mu_);
    return heap_.size();
  }

  std::size_t allocated() const noexcept {
    MutexLock lock(mu_);
    return heap_.capacity();
  }

  void check_invariants() const noexcept {
    MutexLock lock(mu_);
    heap_.check_invariants();
    DETENT_CHECK(heap_.size() <= capacity_);
    for (const Entry& entry : heap_.elements()) DETENT_CHECK(entry.node != nullptr);
    if (Waiter* const leader = consumers_.first(); leader != nullptr && !heap_.empty()) {
      DETENT_CHECK(leader->wakes_at <= heap_.top().deadline);
    }
    if (Waiter* const next = producers_.first(); next != nullptr && heap_.size() < capacity_) {
      DETENT_CHECK(next->is_awake());
    }
    if (!closed_) return;
    if (heap_.empty()) DETENT_CHECK(consumers_.are_all_awake());
    DETENT_CHECK(producers_.are_all_awake());
  }

 private:
  enum class Next : std::uint8_t { wait, done };

  // One look of a consumer at the queue. If `self` is empty, a consumer that must wait does not get
  // in line: the caller first makes a `self`. Returns `done` with the element in `node`, or `done`
  // without an element if the wait is over.
  Next look_for_due(std::unique_ptr<DelayNode>& node, MonotonicTime give_up,
                    std::optional<Waiter>& self) noexcept {
    MutexLock lock(mu_);
    const MonotonicTime now = clock_.now();
    const bool is_due = !heap_.empty() && heap_.top().deadline <= now;
    const bool is_over = give_up <= now || (closed_ && heap_.empty());
    const Next next = is_due || is_over ? Next::done : Next::wait;
    if (is_due) node = heap_.pop().node;
    if (self) stay_or_leave(consumers_, *self, next, give_up);
    settle();
    return next;
  }

  // One look of a producer at the queue. Empty if the producer has to wait.
  std::optional<PushResult> look_for_room(std::unique_ptr<DelayNode>& node, MonotonicTime deadline,
                                          MonotonicTime give_up,
                                          std::optional<Waiter>& self) noexcept {
    MutexLock lock(mu_);
    std::optional<PushResult> result;
    if (closed_) {
      result = PushResult::closed;
    } else if (heap_.size() < capacity_) {
      heap_.push({deadline, next_sequence_++, std::move(node)});
      result = PushResult::pushed;
    } else if (give_up <= clock_.now()) {
      result = PushResult::full;
    }
    if (self) stay_or_leave(producers_, *self, result ? Next::done : Next::wait, give_up);
    settle();
    return result;
  }

  // Ends a look: the thread stays in line until its next look, or leaves the line.
  void stay_or_leave(WaitingLine& line, Waiter& self, Next next, MonotonicTime give_up) noexcept
      DETENT_REQUIRES(mu_) {
    if (next == Next::done) return line.leave(self);
    line.enter(self);
    const bool is_leader = &line == &consumers_ && line.first() == &self && !heap_.empty();
    self.alarm = is_leader ? std::min(give_up, heap_.top().deadline) : give_up;
    self.wakes_at = self.alarm;
  }

  // Called between two looks. The first call only makes the Waiter, because a thread cannot sleep
  // without a bell.
  void sleep(std::optional<Waiter>& self) {
    if (!self) {
      self.emplace();
    } else if (self->alarm == MonotonicTime::max()) {
      clock_.wait(self->bell, std::nullopt);
    } else {
      clock_.wait(self->bell, self->alarm);
    }
  }

  // Restores invariants 3 and 4.
  void settle() noexcept DETENT_REQUIRES(mu_) {
    if (!heap_.empty()) {
      consumers_.wake_first_by(heap_.top().deadline);
    } else if (closed_) {
      consumers_.wake_all();
    }
    if (closed_) {
      producers_.wake_all();
    } else if (heap_.size() < capacity_) {
      producers_.wake_first_by(MonotonicTime::min());
    }
  }

  // Constant after construction.
  SystemClock machine_;
  Clock& clock_;
  const std::size_t capacity_;

  mutable Mutex mu_;
  IndexedHeap<Entry> heap_ DETENT_GUARDED_BY(mu_);
  std::uint64_t next_sequence_ DETENT_GUARDED_BY(mu_) = 0;
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
  WaitingLine consumers_ DETENT_GUARDED_BY(mu_);
  WaitingLine producers_ DETENT_GUARDED_BY(mu_);
};

// ---- the public class ---------------------------------------------------------------------------

DelayQueueCore::DelayQueueCore(const DelayQueueOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
DelayQueueCore::~DelayQueueCore() = default;

MonotonicTime DelayQueueCore::now() const noexcept { return impl_->clock().now(); }

PushResult DelayQueueCore::push(std::unique_ptr<DelayNode>& node, MonotonicTime deadline,
                                MonotonicTime give_up) {
  return impl_->push(node, deadline, give_up);
}

std::unique_ptr<DelayNode> DelayQueueCore::pop(MonotonicTime give_up) {
  return impl_->pop(give_up);
}

std::vector<Delayed<std::unique_ptr<DelayNode>>> DelayQueueCore::take_all() {
  IndexedHeap<Entry> entries = impl_->take_all();
  std::vector<Delayed<std::unique_ptr<DelayNode>>> taken;
  taken.reserve(entries.size());
  while (!entries.empty()) {
    Entry entry = entries.pop();
    taken.push_back({entry.deadline, std::move(entry.node)});
  }
  return taken;
}

void DelayQueueCore::close() noexcept { impl_->close(); }
bool DelayQueueCore::is_closed() const noexcept { return impl_->is_closed(); }
std::size_t DelayQueueCore::size() const noexcept { return impl_->size(); }
std::size_t DelayQueueCore::allocated() const noexcept { return impl_->allocated(); }
void DelayQueueCore::check_invariants() const noexcept { impl_->check_invariants(); }

}  // namespace detent::internal
