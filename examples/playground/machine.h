// A timer queue of the playground: one interface for the queues of Detent and for the ports of
// published wheels, so that a panel of the page can show each of them.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../design_levels.h"
#include "../design_picture.h"

namespace playground {

using design::Levels;
using detent::Tick;

/// Timers have numbers. A deadline can belong to several timers.
using TimerNumber = std::uint32_t;

/// What a panel draws.
struct Picture {
  Levels levels{};
  std::vector<Boxes> rows{};
  std::map<Tick, std::int64_t> rounds{};  // deadline → rounds left, for rings with rounds
};

struct FiredTimer {
  TimerNumber timer = 0;
  Tick at = 0;
};

/// The bytes of the heap that are in use.
inline std::size_t heap_in_use() { return static_cast<std::size_t>(mallinfo().uordblks); }

/// A queue with its timers. Time only moves forward.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Returns false if the queue refuses the deadline.
  virtual bool schedule(TimerNumber timer, Tick deadline) = 0;
  virtual bool can_cancel() const { return true; }
  /// Returns whether the queue says that the timer is cancelled. Requires: can_cancel().
  virtual bool cancel(TimerNumber timer) = 0;
  /// Moves time to the next wake-up, or to `end` if this is earlier. Returns the number of
  /// wake-ups. Adds the timers that fire to `fired`.
  virtual std::uint64_t step(Tick end, std::vector<FiredTimer>& fired) = 0;
  virtual Tick now() const = 0;
  virtual std::optional<Tick> next_wakeup() const = 0;
  /// `pending` has the deadlines of all pending timers.
  virtual Picture picture(const std::vector<Tick>& pending) const = 0;
  /// Bytes of the queue itself, and of one timer in the caller's object. Without the heap.
  virtual std::size_t queue_bytes() const = 0;
  virtual std::size_t timer_bytes() const = 0;

  /// Bytes that the queue holds on the heap.
  std::size_t heap_bytes() const { return heap_; }

 protected:
  /// Calls `use`, and counts the bytes that it takes from the heap or gives back.
  template <class Use>
  auto counted(const Use& use) {
    const std::size_t before = heap_in_use();
    const auto result = use();
    heap_ += heap_in_use() - before;
    return result;
  }
  void add_heap_bytes(std::size_t bytes) { heap_ += bytes; }

 private:
  std::size_t heap_ = 0;
};

/// Makes the queue with this name. `sizes` are the numbers that the reader has typed. Returns null
/// and sets `error` if the queue refuses the sizes.
std::unique_ptr<Machine> make_machine(const std::string& design, const std::vector<Tick>& sizes,
                                      Tick now, std::string& error);

/// The same for the ports of published wheels, in published_machines.cc.
std::unique_ptr<Machine> make_published(const std::string& design, const std::vector<Tick>& sizes,
                                        Tick now, std::string& error);

}  // namespace playground
