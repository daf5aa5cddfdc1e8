// A port of the Kafka-style wheel (Kafka's TimingWheel, RussellLuo/timingwheel in Go), with its
// bugs. The regression cases KW_* use it. Tests only.
//
// The wheel has levels of `size` buckets. The overflow level is made on demand, and each of its
// buckets is as wide as the whole level below. A delay queue holds the non-empty buckets by their
// deadline. A poller sleeps until the first bucket is due, and moves the clocks of all levels to
// this time. Then it adds the timers of the bucket again: a due timer becomes a task on its own
// thread, any other timer goes to a lower level.
//
// One thread and a World that the test moves take the place of the real threads. An operation with
// a race in the original is split at the race, so that a test can insert the other thread's step.
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

/// The design's type for time: signed, and it wraps as in Go and Java.
using Millis = std::int64_t;

inline constexpr Millis kNever = std::numeric_limits<Millis>::max();

inline Millis wrapping_product(Millis a, Millis b) {
  return static_cast<Millis>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// The time of a port: real time, and a wall clock that the test can step.
struct World {
  Millis real = 0;
  Millis wall_offset = 0;

  Millis wall() const { return real + wall_offset; }
};

/// A call that calls itself forever. In the original, the process ends.
class EndlessRecursion : public std::runtime_error {
 public:
  EndlessRecursion() : std::runtime_error("add calls itself forever") {}
};

class KafkaBucket;

struct KafkaTimer {
  std::function<void()> task;
  Millis deadline = 0;
  KafkaBucket* bucket = nullptr;
  std::list<KafkaTimer*>::iterator element;
};

/// A list of timers and the due time of the bucket. The time is -1 while the bucket is in no queue.
class KafkaBucket {
 public:
  Millis deadline() const { return deadline_; }

  /// Returns whether the deadline has changed, so that the bucket must be offered to the queue.
  bool set_deadline(Millis deadline) { return std::exchange(deadline_, deadline) != deadline; }

  void add(KafkaTimer& timer) {
    timer.element = timers_.insert(timers_.end(), &timer);
    timer.bucket = this;
  }

  /// Returns whether the timer was in this bucket.
  bool remove(KafkaTimer& timer) {
    if (timer.bucket != this) return false;
    timers_.erase(timer.element);
    timer.bucket = nullptr;
    return true;
  }

  /// The first half of a flush, under the bucket's lock. During `reinsert`, the timer has no
  /// bucket, and another thread may ask for its bucket.
  void empty_into(const std::function<void(KafkaTimer&)>& reinsert) {
    while (!timers_.empty()) {
      KafkaTimer& timer = *timers_.front();
      remove(timer);
      reinsert(timer);
    }
  }

  /// The second half of a flush, after the lock is released.
  void reset_deadline() { deadline_ = -1; }

  /// For drawings.
  const std::list<KafkaTimer*>& timers() const { return timers_; }

 private:
  std::list<KafkaTimer*> timers_;
  Millis deadline_ = -1;
};

class KafkaPort {
 public:
  KafkaPort(World& world, Millis tick, Millis size)
      : world_(&world), base_(tick, size, world.wall()) {}

  /// Starts `timer` with a task that is due after `delay` by the wall clock. Does not check whether
  /// the wheel was stopped.
  void start_after(KafkaTimer& timer, Millis delay, std::function<void()> task) {
    timer.task = std::move(task);
    timer.deadline = world_->wall() + delay;
    add(timer);
  }

  /// Lets time pass until `real`. Each task runs at its start time.
  void run_until(Millis real) {
    run_tasks();
    while (!stopped_ && wake_at_ <= real) {
      world_->real = std::max(world_->real, wake_at_);
      poll();
    }
    world_->real = real;
  }

  /// Stops one timer. Returns whether the timer was found. A timer that was not found may still
  /// fire.
  static bool stop(KafkaTimer& timer) {
    bool stopped = false;
    while (timer.bucket != nullptr) stopped = timer.bucket->remove(timer);
    return stopped;
  }

  /// Stops the wheel: closes the channel of its threads, and does nothing else.
  void stop_wheel() {
    if (stopped_) throw std::logic_error("close of closed channel");
    stopped_ = true;
  }

  /// The largest number of tasks that existed at one time.
  std::size_t most_tasks_at_once() const { return most_tasks_; }
  /// The span of a level. Level 0 is the lowest. Requires: the level was made.
  Millis interval(int level) const { return level_at(static_cast<std::size_t>(level)).interval; }

  // The steps of an add and of the poller's turn. Tests use them to interleave two threads.

  void add(KafkaTimer& timer) {
    if (const Place place = choose(timer); place.bucket != nullptr) {
      insert(timer, place);
    } else {
      tasks_.push_back(timer.task);
      most_tasks_ = std::max(most_tasks_, tasks_.size());
    }
  }

  /// A bucket and its due time. The bucket is null for a timer that is already due.
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

  /// Takes the first bucket if it is due, and moves the clocks. Null if no bucket is due.
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

  // For drawings: the levels, and visit(level, slot, rounds, job) for each waiting job.

  std::size_t level_count() const {
    std::size_t count = 0;
    for (const Level* level = &base_; level != nullptr; level = level->overflow.get()) ++count;
    return count;
  }
  std::size_t slot_count(std::size_t /*level*/) const {
    return static_cast<std::size_t>(base_.size);
  }
  std::size_t hand(std::size_t level) const {
    const Level& found = level_at(level);
    return static_cast<std::size_t>(found.current / found.tick % found.size);
  }
  template <class Visit>
  void for_each_job(const Visit& visit) const {
    for (std::size_t level = 0; level < level_count(); ++level) {
      for (const auto& [slot, bucket] : level_at(level).buckets) {
        for (const KafkaTimer* timer : bucket.timers()) {
          visit(level, static_cast<std::size_t>(slot), 0, timer->task);
        }
      }
    }
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

  const Level& level_at(std::size_t level) const {
    const Level* found = &base_;
    for (; level > 0; --level) found = found->overflow.get();
    return *found;
  }

  // The original's stack is longer, but also has an end.
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
    // The poller sleeps for a duration, not until a time. So it sees a step of the wall clock only
    // after the sleep.
    wake_at_ = queue_.empty() ? kNever : world_->real + (queue_.begin()->first - world_->wall());
  }

  // In the original, each task has its own thread. Here the tasks run when this function is called.
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

/// How the poller of the delay queue and the callers of `offer` meet, and the bug when the poller
/// leaves. The wake-up goes over a channel without a buffer, so the sender waits for a receiver.
class KafkaPollerPort {
 public:
  void sleep() { sleeping_ = receiving_ = true; }
  /// The next two functions are the two steps of the end of the poller.
  void stop_receiving() { receiving_ = false; }
  void reset_state() { sleeping_ = false; }

  /// Offers a bucket that is due first. Returns false if the original call never returns.
  bool offer_earliest() {
    if (!std::exchange(sleeping_, false)) return true;
    return receiving_;
  }

 private:
  bool sleeping_ = false;
  bool receiving_ = false;
};

/// The heap of the delay queue: an array that doubles, and that does not clear popped elements.
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

  /// Requires: the heap is not empty.
  T pop() {
    std::swap(items_[0], items_[--count_]);
    for (std::size_t at = 0;;) {
      const std::size_t least = least_of_family(at);
      if (least == at) break;
      std::swap(items_[at], items_[least]);
      at = least;
    }
    return items_[count_].value;  // a copy: the array keeps its element
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
