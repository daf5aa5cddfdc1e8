// A panel of the playground: a queue, its timers with what became of them, and counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "machine.h"

namespace playground {

/// Something that happened at a tick. The page makes a sentence of it: `log.KIND` in texts.json,
/// with the tick and the numbers.
struct Event {
  const char* kind;
  Tick at;
  std::vector<Tick> numbers;
};

enum class TimerState : std::uint8_t { pending, fired, cancelled, refused };

struct TimerEntry {
  Tick deadline = 0;
  TimerState state = TimerState::pending;
  Tick fired_at = 0;
  bool was_cancelled = false;  // the reader has cancelled the timer, whatever the queue says
};

/// The numbers of operations. A move takes a timer from one slot to another.
struct Counts {
  std::uint64_t schedules = 0;
  std::uint64_t cancels = 0;
  std::uint64_t wakeups = 0;
  std::uint64_t moves = 0;
  std::uint64_t fired = 0;
};

class Panel {
 public:
  explicit Panel(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}

  void schedule(TimerNumber timer, Tick deadline);
  void cancel(TimerNumber timer);
  /// Moves time to `end`, from wake-up to wake-up.
  void advance(Tick end);

  const Machine& machine() const { return *machine_; }
  const Counts& counts() const { return counts_; }
  const std::map<TimerNumber, TimerEntry>& timers() const { return timers_; }
  std::vector<Tick> pending() const;
  /// What happened since the last call.
  std::vector<Event> take_log() { return std::exchange(log_, {}); }

 private:
  using Places = std::map<Tick, std::pair<std::size_t, std::size_t>>;  // deadline → level, slot

  Places places() const;
  void log(Event event);
  void log_moves(const Places& before);
  void log_fired(const FiredTimer& fired);

  std::unique_ptr<Machine> machine_;
  std::map<TimerNumber, TimerEntry> timers_;
  Counts counts_;
  std::vector<Event> log_;
};

}  // namespace playground
