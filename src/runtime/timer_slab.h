// The memory of a scheduler's timers: chunks of 64 entries that stay where they are, found by
// index.
//
// An entry is named by index and generation. Generations are counted over the whole slab and never
// come again, so a stale name finds nothing, also after its chunk was freed and allocated anew.
// A chunk whose last entry is released gives its memory back; one empty chunk is kept, so that a
// single timer made and cancelled over and over allocates nothing here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "detent/clock.h"
#include "detent/scheduler.h"
#include "detent/timer_handle.h"
#include "detent/timer_wheel.h"
#include "detent/unique_function.h"

namespace detent::internal {

/// Where an entry stands. Moves: free → pending → queued → running → free, or back to pending for a
/// periodic timer; queued → pending when it is moved; pending and queued → free when cancelled.
enum class TimerState : std::uint8_t {
  free,
  pending,  // in the wheel
  queued,   // due and handed to the executor, not begun
  running,  // its job is being called; the job is not in the entry meanwhile
};

/// One timer of a scheduler. Guarded as the slab is.
struct TimerEntry final : Timer {
  TimerId id;
  Job job;
  MonotonicTime due_at;                       // exact; the tick in Timer is this rounded up
  std::optional<WallTime> due_at_wall;        // for a timer scheduled for a date
  std::unique_ptr<PeriodicOptions> periodic;  // null for one shot; `count` is the runs left
  TimerState state = TimerState::free;
  bool cancelled = false;  // while it runs: there is to be no other run
};

/// Invariants:
///  1. A chunk index is in open_, once, exactly when the chunk has a free entry or no memory.
///  2. At most one chunk that has memory is empty; spare_ names it.
/// Thread-compatible.
class TimerSlab {
 public:
  /// An entry with a new id, state free. O(1); allocates every 64th time at most.
  TimerEntry& allocate();
  /// The entry of that name, or null when it was released.
  TimerEntry* find(TimerId id) const noexcept;
  /// Ends the name. Requires: not pending on a wheel, its job taken out, `entry` is of this slab.
  void release(TimerEntry& entry) noexcept;

  /// Calls `visit(TimerEntry&)` with each entry in use; it may release that one.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const std::unique_ptr<Chunk>& chunk : chunks_) {
      for (std::size_t i = 0; i < kChunkSize; ++i) {
        if (chunk == nullptr) break;  // the visit before released its last
        TimerEntry& entry = chunk->entries[i];
        if (entry.id.generation != 0) visit(entry);
      }
    }
  }

  std::size_t size() const noexcept { return size_; }
  /// How many chunks have memory. For tests.
  std::size_t allocated_chunks() const noexcept;

  static constexpr std::size_t kChunkSize = 64;

 private:
  struct Chunk {
    std::array<TimerEntry, kChunkSize> entries;
    std::uint64_t free = ~std::uint64_t{0};  // one bit an entry
  };

  std::vector<std::unique_ptr<Chunk>> chunks_;  // null: given back
  std::vector<std::uint32_t> open_;
  std::optional<std::uint32_t> spare_;
  std::uint64_t next_generation_ = 1;
  std::size_t size_ = 0;
};

}  // namespace detent::internal
