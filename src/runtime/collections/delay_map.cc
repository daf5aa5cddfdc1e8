// The threads of a DelayMap: the table behind one mutex, and the part of each call that runs
// without the mutex.
//
// Every call is a *turn*. Under the lock it works on the table, and notes the work for later in an
// Aftermath: entries for on_expire, and a wake-up to request. Without a scheduler, a turn begins
// with a few steps of expiry. These are more steps than an insertion can cause later, so expired
// entries do not pile up. With a scheduler, wake-ups do the expiry.
#include "detent/delay_map.h"

#include <atomic>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/check.h"
#include "detent/scheduler.h"
#include "runtime/collections/delay_table.h"
#include "runtime/collections/wakeup_timer.h"

namespace detent::internal {

namespace {

/// Steps of expiry in a call. Each step moves or fires one entry. An entry moves at most once per
/// level of the wheel before it fires.
constexpr std::size_t kStepsPerCall = 16;
/// Steps of expiry in a wake-up. The limit keeps the lock short and lets other timers run.
constexpr std::size_t kStepsPerWakeup = 1024;

}  // namespace

/// Thread-safe.
class DelayMapCore::Impl final : private WakeupTimer::Owner {
 public:
  explicit Impl(Options options)
      : on_expire_(std::move(options.on_expire)),
        capacity_(options.capacity),
        clock_(choose_clock(options)),
        table_(clock_.now(), options.resolution) {
    DETENT_CHECK(capacity_ >= 1);
    if (options.scheduler != nullptr)
      timer_.emplace(*options.scheduler, static_cast<WakeupTimer::Owner&>(*this));
  }
  ~Impl() override {
    if (timer_) timer_->close();  // a running callback still uses the timer
    DETENT_CHECK(handing_out_ == 0);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool was_left() const noexcept { return timer_ && timer_->was_left(); }

  InsertResult put(std::unique_ptr<DelayMapNode>& node, const DelayMapProbe& probe,
                   std::chrono::nanoseconds ttl, Existing existing) {
    return take_turn([&](DelayTable& table, MonotonicTime now) {
      const MonotonicTime deadline = saturating_add(now, ttl);
      if (DelayMapNode* const old = table.find(probe, now)) {
        if (existing == Existing::keep) return InsertResult::present;
        node = table.replace(*old, std::move(node), deadline);
        return InsertResult::assigned;
      }
      if (table.listed() >= capacity_) table.expire(now, kNoLimit);
      if (table.listed() >= capacity_) return InsertResult::full;
      table.add(std::move(node), probe.hash, deadline);
      return InsertResult::inserted;
    });
  }

  bool touch(const DelayMapProbe& probe, std::chrono::nanoseconds ttl) {
    return take_turn([&](DelayTable& table, MonotonicTime now) {
      DelayMapNode* const node = table.find(probe, now);
      if (node != nullptr) table.move(*node, saturating_add(now, ttl));
      return node != nullptr;
    });
  }

  bool visit(const DelayMapProbe& probe, FunctionRef<void(DelayMapNode&)> visitor) {
    return take_turn([&](DelayTable& table, MonotonicTime now) {
      DelayMapNode* const node = table.find(probe, now);
      if (node != nullptr) visitor(*node);
      return node != nullptr;
    });
  }

  std::unique_ptr<DelayMapNode> take(const DelayMapProbe& probe) {
    return take_turn([&](DelayTable& table, MonotonicTime now) {
      DelayMapNode* const node = table.find(probe, now);
      return node != nullptr ? table.remove(*node) : nullptr;
    });
  }

  std::size_t size() {
    return take_turn([](DelayTable& table, MonotonicTime now) {
      table.expire(now, kNoLimit);
      return table.listed();
    });
  }

  std::size_t expire() {
    DETENT_CHECK(!is_inside_its_own_call());
    Aftermath aftermath(*this);
    {
      MutexLock lock(mu_);
      table_.expire(clock_.now(), kNoLimit);
      aftermath.hand_out(table_);
    }
    return aftermath.finish();
  }

  DelayMapChain remove_live() {
    return take_turn([](DelayTable& table, MonotonicTime now) { return table.remove_live(now); });
  }

  void check_invariants() noexcept {
    DETENT_CHECK(!is_inside_its_own_call());
    MutexLock lock(mu_);
    table_.check_invariants(clock_.now());
  }

 private:
  /// The work to do after the lock is free. The destructor does the work that `finish` has not
  /// done.
  class Aftermath {
   public:
    explicit Aftermath(Impl& map) : map_(map) {}
    ~Aftermath() { finish(); }
    Aftermath(const Aftermath&) = delete;
    Aftermath& operator=(const Aftermath&) = delete;

    /// Takes the expired entries. This function and the next are called under the lock.
    void hand_out(DelayTable& table) noexcept {
      if (!table.has_expired()) return;
      expired_.emplace(table.take_expired());
      map_.handing_out_.fetch_add(1, std::memory_order_relaxed);
    }
    void wake_by(MonotonicTime time) noexcept { wake_by_ = time; }

    /// Returns how many entries expired.
    std::size_t finish() noexcept {
      if (wake_by_) map_.timer_->wake_by(*std::exchange(wake_by_, {}));
      if (!expired_) return 0;
      std::size_t count = 0;
      while (const std::unique_ptr<DelayMapNode> node = expired_->pop()) {
        if (map_.on_expire_) map_.on_expire_(*node);
        ++count;
      }
      expired_.reset();
      map_.handing_out_.fetch_sub(1, std::memory_order_relaxed);
      return count;
    }

   private:
    Impl& map_;
    std::optional<DelayMapChain> expired_;
    std::optional<MonotonicTime> wake_by_;
  };

  const Clock& choose_clock(const Options& options) const noexcept {
    if (options.scheduler == nullptr) return options.clock != nullptr ? *options.clock : machine_;
    const Clock& schedulers = options.scheduler->clock();
    DETENT_CHECK(options.clock == nullptr || options.clock == &schedulers);
    return schedulers;
  }

  /// Marks the calls of user code under the lock. User code must not call the map there: the call
  /// would wait for its own lock forever.
  class Inside {
   public:
    explicit Inside(Impl& map) noexcept : map_(map) {
      map_.inside_.store(thread_number(), std::memory_order_relaxed);
    }
    ~Inside() { map_.inside_.store(kNoThread, std::memory_order_relaxed); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Impl& map_;
  };
  bool is_inside_its_own_call() const noexcept {
    return inside_.load(std::memory_order_relaxed) == thread_number();
  }

  /// Calls `step(table, now)` under the lock, and returns its result.
  template <class Step>
  std::invoke_result_t<const Step&, DelayTable&, MonotonicTime> take_turn(const Step& step) {
    DETENT_CHECK(!is_inside_its_own_call());
    Aftermath aftermath(*this);  // destroyed after the lock
    MutexLock lock(mu_);
    const Inside inside(*this);
    const MonotonicTime now = clock_.now();
    if (!timer_) table_.expire(now, kStepsPerCall);
    auto result = step(table_, now);
    if (!timer_) {
      aftermath.hand_out(table_);
    } else if (const auto wakeup = next_wakeup(); wakeup && !timer_->is_set_by(*wakeup)) {
      aftermath.wake_by(*wakeup);
    }
    return result;
  }

  std::optional<MonotonicTime> next_wakeup() const noexcept DETENT_REQUIRES(mu_) {
    return table_.has_expired() ? clock_.now() : table_.next_wakeup();
  }

  std::optional<MonotonicTime> on_wakeup() noexcept override {
    bool more = false;
    {
      Aftermath aftermath(*this);
      MutexLock lock(mu_);
      more = table_.expire(clock_.now(), kStepsPerWakeup);
      aftermath.hand_out(table_);
    }
    MutexLock lock(mu_);
    return more ? clock_.now() : next_wakeup();
  }

  // Constant after construction, or with its own synchronisation.
  const std::function<void(DelayMapNode&)> on_expire_;
  const std::size_t capacity_;
  SystemClock machine_;
  const Clock& clock_;
  std::optional<WakeupTimer> timer_;

  // The number of threads that are handing out entries. Relaxed is enough: the destructor only
  // reads it to detect that on_expire destroys its own map.
  std::atomic<int> handing_out_ = 0;

  // The thread whose call runs user code under the lock, or kNoThread. Written under the lock, but
  // read without it. Relaxed is enough: only the thread itself writes its own number.
  static constexpr std::size_t kNoThread = std::numeric_limits<std::size_t>::max();
  std::atomic<std::size_t> inside_ = kNoThread;

  mutable Mutex mu_;
  DelayTable table_ DETENT_GUARDED_BY(mu_);
};

// ---- the public class ---------------------------------------------------------------------------

DelayMapCore::DelayMapCore(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
DelayMapCore::~DelayMapCore() {
  if (impl_->was_left()) static_cast<void>(impl_.release());
}

InsertResult DelayMapCore::put(std::unique_ptr<DelayMapNode>& node, const DelayMapProbe& probe,
                               std::chrono::nanoseconds ttl, Existing existing) {
  return impl_->put(node, probe, ttl, existing);
}

bool DelayMapCore::touch(const DelayMapProbe& probe, std::chrono::nanoseconds ttl) {
  return impl_->touch(probe, ttl);
}

bool DelayMapCore::visit(const DelayMapProbe& probe,
                         FunctionRef<void(DelayMapNode&)> visitor) const {
  return impl_->visit(probe, visitor);
}

std::unique_ptr<DelayMapNode> DelayMapCore::take(const DelayMapProbe& probe) {
  return impl_->take(probe);
}

std::size_t DelayMapCore::size() const { return impl_->size(); }
std::size_t DelayMapCore::expire() { return impl_->expire(); }
void DelayMapCore::clear() { impl_->remove_live(); }
void DelayMapCore::check_invariants() const noexcept { impl_->check_invariants(); }

}  // namespace detent::internal
