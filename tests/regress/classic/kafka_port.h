// A port of the Kafka-style wheel (Kafka's TimingWheel, RussellLuo/timingwheel in Go) with its
// faults: what the regression cases KW_* are shown on. Tests only.
//
// Levels of `size` buckets; the overflow level is made on demand and each of its buckets is as wide
// as the level below. A delay queue holds the buckets that are not empty, by their deadline; a
// poller sleeps until the first one is due, moves the clock of all levels there and puts the
// bucket's timers in again: into a lower level, or into a task of their own when they are due.
//
// One thread and a World that moves when told stand for the real threads. An operation that is racy
// in the original is open at the racy point, so that a test can put the other thread's step there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace detent::classic {

/// As the design counts time: signed, and it wraps as it does in Go and Java.
using Millis = std::int64_t;

inline constexpr Millis kNever = std::numeric_limits<Millis>::max();

inline Millis wrapping_product(Millis a, Millis b) {
  return static_cast<Millis>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// The time a port lives in: real time, and a wall clock that people step.
struct World {
  Millis real = 0;
  Millis wall_offset = 0;

  Millis wall() const { return real + wall_offset; }
};

/// A call that calls itself for ever: in the original the process ends.
class EndlessRecursion : public std::runtime_error {
 public:
  EndlessRecursion() : std::runtime_error("add calls itself for ever") {}
};

class KafkaBucket;

struct KafkaTimer {
  std::function<void()> task;
  Millis deadline = 0;
  KafkaBucket* bucket = nullptr;
  std::list<KafkaTimer*>::iterator element;
};

/// A list of timers and the time at which it is due, -1 when it is in no queue.
class KafkaBucket {
 public:
  Millis deadline() const { return deadline_; }

  /// Returns: whether that is another deadline, so that the bucket must be offered.
  bool set_deadline(Millis deadline) { return std::exchange(deadline_, deadline) != deadline; }

  void add(KafkaTimer& timer) {
    timer.element = timers_.insert(timers_.end(), &timer);
    timer.bucket = this;
  }

  /// Returns: whether the timer was here.
  bool remove(KafkaTimer& timer) {
    if (timer.bucket != this) return false;
    timers_.erase(timer.element);
    timer.bucket = nullptr;
    return true;
  }

  /// The first half of a flush, under the bucket's lock. Another thread may ask for a timer's
  /// bucket while `reinsert` has the timer, which then has none.
  void empty_into(const std::function<void(KafkaTimer&)>& reinsert) {
    while (!timers_.empty()) {
      KafkaTimer& timer = *timers_.front();
      remove(timer);
      reinsert(timer);
    }
  }

  /// The second half, after the lock is released.
  void reset_deadline() { deadline_ = -1; }

 private:
  std::list<KafkaTimer*> timers_;
  Millis deadline_ = -1;
};

class KafkaPort {
 public:
  KafkaPort(World& world, Millis tick, Millis size)
      : world_(&world), base_(tick, size, world.wall()) {}

  /// Starts `timer` with a task that is due `delay` from now by the wall clock. Nobody asks whether
  /// the wheel was stopped.
  void start_after(KafkaTimer& timer, Millis delay, std::function<void()> task) {
    timer.task = std::move(task);
    timer.deadline = world_->wall() + delay;
    add(timer);
  }

  /// Lets time pass up to `real`. Tasks run at the instants at which they are started.
  void run_until(Millis real) {
    run_tasks();
    while (!stopped_ && wake_at_ <= real) {
      world_->real = std::max(world_->real, wake_at_);
      poll();
    }
    world_->real = real;
  }

  /// Stops one timer. Returns: whether it was found; when it was not, it may still be to fire.
  static bool stop(KafkaTimer& timer) {
    bool stopped = false;
    while (timer.bucket != nullptr) stopped = timer.bucket->remove(timer);
    return stopped;
  }

  /// Stops the wheel: closes the channel its threads listen to, and no more.
  void stop_wheel() {
    if (stopped_) throw std::logic_error("close of closed channel");
    stopped_ = true;
  }

  /// The most tasks that were started and not over, at any time.
  std::size_t most_tasks_at_once() const { return most_tasks_; }
  /// The span of a level, 0 being the lowest. Requires: the level was made.
  Millis interval(int level) const {
    const Level* found = &base_;
    for (; level > 0; --level) found = found->overflow.get();
    return found->interval;
  }

  // The steps of an add and of the poller's turn, for interleaving them.

  void add(KafkaTimer& timer) {
    if (const Place place = choose(timer); place.bucket != nullptr) {
      insert(timer, place);
    } else {
      tasks_.push_back(timer.task);
      most_tasks_ = std::max(most_tasks_, tasks_.size());
    }
  }

  /// A bucket and when it is due; null for a timer that is due already.
  struct Place {
    KafkaBucket* bucket;
    Millis deadline;
  };
  Place choose(const KafkaTimer& timer) { return choose(base_, timer.deadline, 0); }

  void insert(KafkaTimer& timer, const Place& place) {
    place.bucket->add(timer);
    if (!place.bucket->set_deadline(place.deadline)) return;
    queue_.emplace(place.deadline, place.bucket);
    if (queue_.begin()->second == place.bucket) wake_at_ = world_->real;
  }

  /// Takes the first bucket if it is due, and moves the clocks. Returns: null when none is due.
  KafkaBucket* take_due_bucket() {
    if (queue_.empty() || queue_.begin()->first > world_->wall()) return nullptr;
    KafkaBucket* bucket = queue_.begin()->second;
    queue_.erase(queue_.begin());
    for (Level* level = &base_; level != nullptr; level = level->overflow.get()) {
      if (bucket->deadline() < level->current + level->tick) break;
      level->current = bucket->deadline() - bucket->deadline() % level->tick;
    }
    return bucket;
  }

 private:
  struct Level {
    Level(Millis tick_width, Millis bucket_count, Millis start)
        : tick(tick_width),
          size(bucket_count),
          interval(wrapping_product(tick_width, bucket_count)),
          current(tick_width == 0 ? start : start - start % tick_width) {}

    Millis tick;
    Millis size;
    Millis interval;
    Millis current;
    std::map<Millis, KafkaBucket> buckets;
    std::unique_ptr<Level> overflow;
  };

  // The original's stack is longer, but it ends too.
  static constexpr int kStackEnd = 1000;

  static Place choose(Level& level, Millis deadline, int depth) {
    if (depth == kStackEnd) throw EndlessRecursion();
    if (deadline < level.current + level.tick) return {nullptr, 0};
    if (deadline < level.current + level.interval) {
      const Millis index = deadline / level.tick;
      return {&level.buckets[index % level.size], index * level.tick};
    }
    if (level.overflow == nullptr) {
      level.overflow = std::make_unique<Level>(level.interval, level.size, level.current);
    }
    return choose(*level.overflow, deadline, depth + 1);
  }

  void poll() {
    while (KafkaBucket* bucket = take_due_bucket()) {
      bucket->empty_into([this](KafkaTimer& timer) { add(timer); });
      bucket->reset_deadline();
    }
    run_tasks();
    // It sleeps for a time, not until one: a step of the wall clock meanwhile is seen afterwards.
    wake_at_ = queue_.empty() ? kNever : world_->real + (queue_.begin()->first - world_->wall());
  }

  // Every task has been given a thread of its own; here they get to run.
  void run_tasks() {
    const std::vector<std::function<void()>> tasks = std::exchange(tasks_, {});
    for (const auto& task : tasks) task();
  }

  World* world_;
  Level base_;
  std::multimap<Millis, KafkaBucket*> queue_;
  Millis wake_at_ = kNever;
  bool stopped_ = false;
  std::vector<std::function<void()>> tasks_;
  std::size_t most_tasks_ = 0;
};

/// How the poller of the delay queue and those who offer to it meet, and what goes wrong when the
/// poller leaves. The wake-up is sent over a channel without a buffer: the sender waits for a
/// receiver.
class KafkaPollerPort {
 public:
  void sleep() { sleeping_ = receiving_ = true; }
  /// The poller leaves, in the two steps it takes.
  void stop_receiving() { receiving_ = false; }
  void reset_state() { sleeping_ = false; }

  /// Offers what is due first. Returns: false when that call never returns.
  bool offer_earliest() {
    if (!std::exchange(sleeping_, false)) return true;
    return receiving_;
  }

 private:
  bool sleeping_ = false;
  bool receiving_ = false;
};

/// The heap under the delay queue: an array that doubles, and that forgets to clear what it pops.
template <class T>
class KafkaHeapPort {
 public:
  explicit KafkaHeapPort(std::size_t capacity) : items_(capacity) {}

  /// Throws std::out_of_range where the original panics.
  void push(Millis priority, T value) {
    if (count_ == items_.size()) items_.resize(2 * items_.size());
    items_.at(count_) = {priority, std::move(value)};
    for (std::size_t at = count_++; at > 0 && items_[at].priority < items_[parent(at)].priority;
         at = parent(at)) {
      std::swap(items_[at], items_[parent(at)]);
    }
  }

  /// Requires: it holds something.
  T pop() {
    std::swap(items_[0], items_[--count_]);
    for (std::size_t at = 0;;) {
      const std::size_t least = least_of_family(at);
      if (least == at) break;
      std::swap(items_[at], items_[least]);
      at = least;
    }
    return items_[count_].value;  // a copy: the array keeps its own
  }

 private:
  struct Item {
    Millis priority = 0;
    T value{};
  };

  static std::size_t parent(std::size_t at) { return (at - 1) / 2; }
  std::size_t least_of_family(std::size_t at) const {
    std::size_t least = at;
    for (std::size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count_; ++child) {
      if (items_[child].priority < items_[least].priority) least = child;
    }
    return least;
  }

  std::vector<Item> items_;
  std::size_t count_ = 0;
};

}  // namespace detent::classic
