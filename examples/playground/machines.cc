// The queues of Detent for the playground.
#include <algorithm>
#include <functional>
#include <numeric>

#include "detent/dense_wheel.h"
#include "detent/fifo_timer_wheel.h"
#include "detent/queues/hashed_wheel.h"
#include "detent/queues/heap_queue.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/list_queue.h"
#include "detent/queues/simple_wheel.h"
#include "detent/queues/tree_queue.h"
#include "detent/timer_wheel.h"
#include "machine.h"

namespace playground {
namespace {

using detent::DenseWheel;
using detent::HashedWheel;
using detent::HeapQueue;
using detent::HierarchicalWheel;
using detent::ListQueue;
using detent::SimpleWheel;
using detent::TimerWheel;
using detent::TreeQueue;

// Calls `advance` of a queue up to its next wake-up, or up to `end`.
template <class Queue, class OnFire>
std::uint64_t advance_once(Queue& queue, Tick end, const OnFire& on_fire) {
  const std::optional<Tick> wakeup = queue.next_wakeup();
  const bool wakes = wakeup && *wakeup <= end;
  queue.advance(wakes ? std::max(*wakeup, queue.now()) : end, on_fire);
  return wakes ? 1 : 0;
}

// A queue whose timers are objects.
template <class Queue>
class QueueMachine final : public Machine {
 public:
  using View = std::function<Picture(const Queue&, const std::vector<Tick>& pending)>;

  template <class Make>
  QueueMachine(const Make& make, View view)
      : before_(heap_in_use()), queue_(make()), view_(std::move(view)) {
    add_heap_bytes(made_ - before_);
  }

  bool is_made() const { return queue_.has_value(); }

  bool schedule(TimerNumber timer, Tick deadline) override {
    std::unique_ptr<Numbered>& entry = timers_[timer];
    if (entry == nullptr) entry = std::make_unique<Numbered>();
    entry->number = timer;
    return counted([&] { return queue_->schedule(*entry, deadline); });
  }
  bool cancel(TimerNumber timer) override {
    return counted([&] { return queue_->cancel(*timers_.at(timer)); });
  }
  std::uint64_t step(Tick end, std::vector<FiredTimer>& fired) override {
    fired.reserve(fired.size() + timers_.size());  // so that the callback takes no memory
    return counted([&] {
      return advance_once(*queue_, end, [&](typename Queue::Timer& timer) noexcept {
        fired.push_back({static_cast<Numbered&>(timer).number, queue_->now()});
      });
    });
  }
  Tick now() const override { return queue_->now(); }
  std::optional<Tick> next_wakeup() const override { return queue_->next_wakeup(); }
  Picture picture(const std::vector<Tick>& pending) const override {
    queue_->check_invariants();
    return view_(*queue_, pending);
  }
  std::size_t queue_bytes() const override { return sizeof(Queue); }
  std::size_t timer_bytes() const override { return sizeof(typename Queue::Timer); }

 private:
  struct Numbered : Queue::Timer {
    TimerNumber number = 0;
  };

  std::size_t before_;
  std::optional<Queue> queue_;
  std::size_t made_ = heap_in_use();
  View view_;
  std::map<TimerNumber, std::unique_ptr<Numbered>> timers_;  // cancel themselves before the queue
};

// A DenseWheel, whose timers are numbers.
class DenseMachine final : public Machine {
 public:
  explicit DenseMachine(Tick now) : before_(heap_in_use()), wheel_(now) {
    add_heap_bytes(made_ - before_);
  }

  bool schedule(TimerNumber timer, Tick deadline) override {
    if (deadlines_.size() <= timer) deadlines_.resize(timer + std::size_t{1});
    deadlines_[timer] = deadline;
    return counted([&] { return wheel_.schedule(timer, deadline); });
  }
  bool cancel(TimerNumber timer) override {
    return counted([&] { return wheel_.cancel(timer); });
  }
  std::uint64_t step(Tick end, std::vector<FiredTimer>& fired) override {
    fired.reserve(fired.size() + deadlines_.size());
    return counted([&] {
      return advance_once(wheel_, end, [&](std::uint32_t timer) noexcept {
        fired.push_back({timer, wheel_.now()});
      });
    });
  }
  Tick now() const override { return wheel_.now(); }
  std::optional<Tick> next_wakeup() const override { return wheel_.next_wakeup(); }
  Picture picture(const std::vector<Tick>& /*pending*/) const override {
    wheel_.check_invariants();
    return {.levels = design::detent_levels(wheel_, deadlines_, 8)};
  }
  std::size_t queue_bytes() const override { return sizeof(DenseWheel); }
  std::size_t timer_bytes() const override { return 0; }

 private:
  std::size_t before_;
  DenseWheel wheel_;
  std::size_t made_ = heap_in_use();
  std::vector<Tick> deadlines_;  // by number
};

// ---- Pictures.

// The hand comes to a slot once in a round. A timer that is due in k + 1 rounds has k rounds left.
Picture hashed_picture(const HashedWheel& wheel, const std::vector<Tick>& pending,
                       std::size_t slot_count) {
  Picture picture{.levels = design::ring_levels(pending, wheel, slot_count)};
  for (const Tick deadline : pending) {
    if (deadline > wheel.now()) {
      picture.rounds[deadline] =
          static_cast<std::int64_t>((deadline - wheel.now() - 1) / slot_count);
    }
  }
  return picture;
}

Boxes boxes_of(const std::string& name, const std::vector<Tick>& deadlines) {
  Boxes row{name, {}};
  for (const Tick deadline : deadlines) row.boxes.push_back({design::number(deadline)});
  return row;
}

template <class Base>
std::unique_ptr<Machine> make_sorted(Tick now, const std::string& name) {
  using Queue = design::Shown<Base>;
  return std::make_unique<QueueMachine<Queue>>(
      [now] { return std::optional<Queue>(std::in_place, now); },
      [name](const Queue& queue, const std::vector<Tick>&) {
        return Picture{.rows = {boxes_of(name, queue.in_memory_order())}};
      });
}

// The machine for a queue that can refuse its sizes, or null.
template <class Queue, class Make>
std::unique_ptr<Machine> if_made(const Make& make, typename QueueMachine<Queue>::View view) {
  auto machine = std::make_unique<QueueMachine<Queue>>(make, std::move(view));
  if (!machine->is_made()) return nullptr;
  return machine;
}

std::unique_ptr<Machine> make_levels(const HierarchicalWheel::Options& options,
                                     std::string& error) {
  const bool is_tickless = options.drive == HierarchicalWheel::Drive::tickless;
  return if_made<HierarchicalWheel>(
      [&] { return HierarchicalWheel::make(options, &error); },
      [is_tickless](const HierarchicalWheel& wheel, const std::vector<Tick>&) {
        Picture picture{.levels = design::wheel_levels(wheel)};
        if (is_tickless) {
          picture.rows.push_back({"delay-queue", design::delay_queue(wheel, 0).boxes});
        }
        return picture;
      });
}

std::unique_ptr<Machine> make_ring(const std::string& design, std::size_t slot_count, Tick now,
                                   std::string& error) {
  if (design == "simple") {
    return if_made<SimpleWheel>(
        [&] { return SimpleWheel::make({.slot_count = slot_count, .now = now}, &error); },
        [slot_count](const SimpleWheel& wheel, const std::vector<Tick>& pending) {
          return Picture{.levels = design::ring_levels(pending, wheel, slot_count)};
        });
  }
  return if_made<HashedWheel>(
      [&] { return HashedWheel::make({.slot_count = slot_count, .now = now}, &error); },
      [slot_count](const HashedWheel& wheel, const std::vector<Tick>& pending) {
        return hashed_picture(wheel, pending, slot_count);
      });
}

}  // namespace

std::unique_ptr<Machine> make_machine(const std::string& design, const std::vector<Tick>& sizes,
                                      Tick now, std::string& error) {
  const auto size = [&](std::size_t at) {
    return at < sizes.size() ? static_cast<std::size_t>(sizes[at]) : 0;
  };
  if (design == "simple" || design == "hashed") return make_ring(design, size(0), now, error);
  if (design == "hierarchical" || design == "ticking") {
    HierarchicalWheel::Options options{.level_sizes = {sizes.begin(), sizes.end()}, .now = now};
    if (design == "ticking") options.drive = HierarchicalWheel::Drive::tick_by_tick;
    return make_levels(options, error);
  }
  if (design == "demand") {
    const Tick width = sizes.size() > 1 ? sizes[1] : 1;
    return make_levels({.slot_width = width, .slots_per_level = size(0), .now = now}, error);
  }
  if (design == "timer") {
    return std::make_unique<QueueMachine<TimerWheel>>(
        [now] { return std::optional<TimerWheel>(std::in_place, now); },
        [](const TimerWheel& wheel, const std::vector<Tick>& pending) {
          return Picture{.levels = design::digit_levels(pending, wheel.now(), 8)};
        });
  }
  if (design == "fifo") {
    using Queue = design::ShownFifoWheel;
    return std::make_unique<QueueMachine<Queue>>(
        [now] { return std::optional<Queue>(std::in_place, now); },
        [](const Queue& wheel, const std::vector<Tick>&) {
          return Picture{.levels = wheel.levels(11)};
        });
  }
  if (design == "dense") return std::make_unique<DenseMachine>(now);
  if (design == "heap") return make_sorted<HeapQueue>(now, "heap");
  if (design == "tree") return make_sorted<TreeQueue>(now, "tree");
  if (design == "list") return make_sorted<ListQueue>(now, "list");
  return make_published(design, sizes, now, error);
}

}  // namespace playground
