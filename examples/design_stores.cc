// Draws the figures of wheels with a store, of queues without slots, and of Linux.
#include "design_stores.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "design_example.h"
#include "design_levels.h"
#include "detent/queues/heap_queue.h"
#include "detent/queues/list_queue.h"
#include "detent/queues/simple_wheel.h"
#include "detent/queues/tree_queue.h"

namespace design {

using detent::HeapQueue;
using detent::ListQueue;
using detent::SimpleWheel;
using detent::TreeQueue;

Figure persistent_wheel() {
  constexpr Tick kThreshold = 128;  // the span of the wheel, too
  constexpr Tick kScan = 64;
  auto wheel = SimpleWheel::make({.slot_count = kThreshold, .now = kNow});
  Example<SimpleWheel> example(*wheel);
  std::map<Tick, bool> store;  // the due times of the tasks: whether each is in the wheel
  const auto scan = [&](Tick now) {
    for (auto& [due, is_loaded] : store) {
      if (is_loaded || due > now + kThreshold) continue;
      example.schedule(due);
      is_loaded = true;
    }
  };
  for (const Tick due : {Tick{180}, Tick{300}, kOurs, Tick{900}}) store[due] = false;
  scan(64);  // the last scan before now

  Figure figure{"A wheel and a store",
                "The store has every task. The wheel has the tasks that are due soon.", kOurs};
  const auto add = [&](Tick now, bool is_loaded, const std::string& caption) {
    std::vector<Tick> fired;
    for (Tick next = kScan * (wheel->now() / kScan + 1);; next += kScan) {
      for (const Tick due : example.advance(std::min(next, now))) {
        fired.push_back(due);
        if (due != kOurs) store.erase(due);
      }
      if (next > now) break;
      scan(next);
    }
    Levels levels = ring_levels(example.pending(), *wheel, kThreshold);
    levels[0].name = "wheel (128 slots)";
    require(now == kOurs || is_in(levels, 0, 94, kOurs) == is_loaded, "350 at " + number(now));
    if (now == kOurs) show_fired(levels[0], {kOurs});
    Boxes row{"store: due times (dashed: not in the wheel)", {}};
    for (const auto& [due, in_wheel] : store) {
      row.boxes.push_back({number(due), due == kOurs, !in_wheel});
    }
    figure.moments.push_back({at_tick(now), {row, Strip{levels[0]}}, caption});
  };
  add(kNow, false,
      "The scan of tick 64 loaded the tasks up to 64 + 128 = 192. The task for 350 is only in the "
      "store.");
  add(192, false,
      "The scan loads the tasks up to 320. The task for 180 has fired; it was removed "
      "from the store after that.");
  add(256, true,
      "The scan loads the tasks up to 384. The task for 350 enters the wheel: slot 350 mod 128 = "
      "94. Its record stays in the store.");
  add(kOurs, true,
      "The timer fires. The record is still in the store. The server removes it after "
      "a worker has reported the task as complete, so the task survives a crash at this moment.");
  return figure;
}

namespace {

// The steps of src/external/far_tasks.h with one task, on three small tables. The real code has its
// own tests (src/external/far_tasks_model_test.cc).
class TwoPlaces {
 public:
  bool is_in_store = true;
  bool is_in_external = false;
  bool is_marked = false;

  // A task in the server's store is always valid. A copy in the external scheduler is valid if it
  // has no mark.
  std::size_t valid_copies() const {
    return (is_in_store ? 1u : 0u) + (is_in_external && !is_marked ? 1u : 0u);
  }
  std::vector<PictureRow> rows() const {
    require(valid_copies() == 1, "the task counts in exactly one place");
    Boxes external{"external scheduler (dashed: an invalid copy)", {}};
    Boxes store{"the server's store", {}};
    Boxes marks{"marks in the server's store", {}};
    if (is_in_external) external.boxes.push_back({number(kOurs), true, is_marked});
    if (is_in_store) store.boxes.push_back({number(kOurs), true, false});
    if (is_marked) marks.boxes.push_back({"mark on " + number(kOurs), true, false});
    return {external, store, marks};
  }
};

}  // namespace

Figure external_scheduler() {
  constexpr Tick kFar = 200;
  constexpr Tick kNear = 100;
  TwoPlaces task;
  Figure figure{
      "A wheel with an external scheduler",
      "A task moves to the external scheduler and back. At each moment exactly one copy is valid.",
      kOurs};
  const auto add = [&](const std::string& title, const std::string& caption) {
    figure.moments.push_back({title, task.rows(), caption});
  };
  add(at_tick(kNow),
      "The server accepts the task and stores it. The task is due in 233 ticks. A task that is due "
      "in more than 200 ticks is far.");
  require(kOurs - 128 > kFar, "far at tick 128");
  task.is_marked = true;
  task.is_in_external = true;
  add("Tick 128, copied",
      "A step of the server finds the far task. The step sets a mark, and then stores a copy in "
      "the external scheduler. The mark makes the copy invalid.");
  task.is_in_store = false;
  task.is_marked = false;
  add("Tick 128, handed over",
      "One durable write removes the task and the mark from the server's store. Because of this "
      "write, the copy in the external scheduler becomes valid.");
  require(kOurs - 192 > kNear && kOurs - 256 <= kNear, "near at tick 256, not before");
  task.is_in_store = true;
  task.is_marked = true;
  add("Tick 256, handed back",
      "94 ticks are left, so the task is near. One durable write stores the task in the server's "
      "store and sets the mark.");
  task.is_in_external = false;
  task.is_marked = false;
  add("Tick 256, cleaned up",
      "The step removes the copy from the external scheduler, and then the mark. The task waits in "
      "the store, and later in the wheel.");
  add(at_tick(kOurs),
      "The wheel fires the task. The task was in the server's store for the last 94 ticks. An "
      "outage of the external scheduler in this time has no effect.");
  return figure;
}

namespace {

Boxes boxes_of(const std::string& name, const std::vector<Tick>& deadlines) {
  Boxes row{name, {}};
  for (const Tick deadline : deadlines) {
    row.boxes.push_back({number(deadline), deadline == kOurs, false});
  }
  return row;
}

}  // namespace

Figure queues() {
  const std::array<Tick, 8> deadlines{900, kOurs, 400, 200, 1'000, 130, 500, 360};
  Shown<HeapQueue> heap(kNow);
  Shown<TreeQueue> tree(kNow);
  Shown<ListQueue> list(kNow);
  Example<Shown<HeapQueue>> in_heap(heap);
  Example<Shown<TreeQueue>> in_tree(tree);
  Example<Shown<ListQueue>> in_list(list);

  Figure figure{"The same timers in a heap, a tree and a list",
                "Eight timers, scheduled in the order 900, 350, 400, 200, 1000, 130, 500, 360.",
                kOurs};
  const auto add = [&](Tick now, std::size_t index, const std::string& caption) {
    in_heap.advance(now);
    in_tree.advance(now);
    in_list.advance(now);
    const std::vector<Tick> array = heap.in_memory_order();
    require(now == kOurs || array.at(index) == kOurs, "the place of 350 in the heap");
    figure.moments.push_back({at_tick(now),
                              {boxes_of("4-ary heap, as its array", array),
                               boxes_of("red-black tree, in order", tree.in_memory_order()),
                               boxes_of("sorted list", list.in_memory_order())},
                              caption});
  };
  for (const Tick deadline : deadlines) {
    in_heap.schedule(deadline);
    in_tree.schedule(deadline);
    in_list.schedule(deadline);
  }
  add(kNow, 3,
      "The heap keeps each element before its four children: the element at index 0 before those "
      "at 1 to 4, and index 1 before 5 to 7. Tree and list keep everything in order.");
  add(256, 0,
      "130 and 200 have fired. Each removal moved other elements of the heap. Tick 256 "
      "itself has no meaning for these queues.");
  add(349, 0, "350 is first in all three queues, so the thread sleeps until exactly tick 350.");
  add(kOurs, 0, "The first element fires and leaves. The next is 360.");
  return figure;
}

namespace {

// The bucket of a timer in Linux, from the rule in kernel/time/timer.c: levels of 64 buckets, each
// level 8 times as coarse as the level below, and the expiry rounded up to the next bucket.
struct LinuxBucket {
  std::size_t level;
  std::size_t index;
  Tick expiry;
};
LinuxBucket linux_bucket(Tick expires, Tick clk) {
  constexpr Tick kSize = 64;
  std::size_t level = 0;
  while (expires - clk >= (kSize - 1) << (3 * level)) ++level;
  const Tick place = (expires >> (3 * level)) + 1;
  return {level, static_cast<std::size_t>(place % kSize), place << (3 * level)};
}

}  // namespace

Figure linux_wheel() {
  Figure figure{"The timer wheel of Linux since version 4.8",
                "Levels of 64 buckets that do not cascade. A far timer fires a little late.",
                kOurs};
  const std::vector<Tick> deadlines{130, kOurs, 900};
  const auto add = [&](Tick now, const std::string& caption) {
    Levels levels;
    for (std::size_t i = 0; i < 3; ++i) {
      const Tick width = Tick{1} << (3 * i);
      levels.push_back({"level " + number(i) + " (" + number(width) + ')',
                        64,
                        static_cast<std::size_t>(now / width % 64),
                        {}});
    }
    for (const Tick deadline : deadlines) {
      const LinuxBucket bucket = linux_bucket(deadline, kNow);
      if (bucket.expiry < now) continue;
      SlotPicture& slot = slot_of(levels.at(bucket.level), bucket.index);
      (bucket.expiry == now ? slot.fired : slot.deadlines).push_back(deadline);
    }
    figure.moments.push_back({at_tick(now), as_strips(levels), caption});
  };
  const LinuxBucket ours = linux_bucket(kOurs, kNow);
  require(ours.level == 1 && ours.index == 44 && ours.expiry == 352, "level 1, bucket 44, 352");
  add(kNow,
      "350 is 233 jiffies ahead, so its level is 1, with buckets of 8 jiffies. The expiry is "
      "rounded up: 350 / 8 + 1 = 44, which is jiffy 352.");
  add(256, "No bucket moves. A timer stays in its bucket until it fires or is cancelled.");
  add(351, "The deadline has passed, and the timer waits for its bucket.");
  add(352, "The bucket expires, and the timer fires 2 jiffies late. It never moved.");
  return figure;
}

}  // namespace design
