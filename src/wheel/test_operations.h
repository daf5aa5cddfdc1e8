// One format of input for every test that drives a queue at random: bytes become operations.
//
// Seeded tests feed it random bytes, libFuzzer bytes that reached new code, and ctest a kept corpus
// (tests/fuzz/). Every sequence of bytes means something, so nothing is wasted on bad input; when
// the bytes end, zeros follow. A change of the format makes the kept corpus mean something else.
//
//     input      how many timers (1), first tick (9), operation …
//     operation  verb, and whether for many timers (1, count 1), timer (2); then
//                of schedule and postpone: when (1 + offset), of advance: step (1 + offset), limit
//                (1)
//     callback   how many operations (1), operation …
//
// Ticks are relative to an anchor that both the queue and the model know. Read next:
// timer_queue_rig.h, which does the operations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"
#include "detent/advance.h"
#include "detent/tick.h"

namespace detent {

enum class Verb { schedule, postpone, cancel, destroy, advance };

/// What a tick is relative to.
enum class Anchor {
  zero,
  now,
  target,        ///< the latest tick that an `advance` was asked to go to
  own_deadline,  ///< what the timer was last given
  wakeup,        ///< what next_wakeup() says
  earliest,      ///< the earliest deadline that is pending
};

enum class Relation {
  after,
  before,
  filled,  ///< the anchor with the bits of the offset set: the last tick of a slot of that size
};

/// A tick, within the range of ticks.
struct When {
  Anchor anchor = Anchor::now;
  Relation relation = Relation::after;
  Tick offset = 0;
};

struct Operation {
  Verb verb = Verb::advance;
  std::size_t first_timer = 0;  ///< any number; taken modulo the timers there are
  std::size_t timer_count = 1;  ///< it is done to so many timers in a row
  When when;
  Tick longest_step = 0;         ///< of an advance: it goes no further than this after now
  std::size_t limit = kNoLimit;  ///< of an advance
};

/// What an input begins with.
struct EpisodeStart {
  std::size_t timer_count = 0;
  Tick tick = 0;
};

/// Reads operations off bytes, which must outlive it.
class OperationReader {
 public:
  explicit OperationReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool done() const { return bytes_.empty(); }

  EpisodeStart start() {
    constexpr std::array<std::size_t, 4> kTimerCounts{96, 8, 300, 1'000};
    const std::size_t timer_count = kTimerCounts[byte() % kTimerCounts.size()];
    return {.timer_count = timer_count, .tick = any_tick()};
  }

  Operation operation() {
    Operation operation;
    const unsigned first = byte();
    operation.verb = verb(first % 16);
    if (first / 16 == 15) operation.timer_count = many();
    operation.first_timer = static_cast<std::size_t>(number(2));
    if (operation.verb == Verb::advance) {
      operation.when = step();
      const unsigned choice = byte();
      operation.limit = choice < 128 ? kNoLimit : choice % 16;
      operation.longest_step = choice % 32 == 7 ? kLast : kSmallStep;
    } else if (operation.verb == Verb::schedule || operation.verb == Verb::postpone) {
      operation.when = deadline();
    }
    return operation;
  }

  /// Returns: how many operations a callback does.
  unsigned callback_operations() {
    const unsigned choice = byte();
    if (choice < 192) return 0;
    return choice < 224 ? 1 : 2;
  }

 private:
  static constexpr Tick kLast = std::numeric_limits<Tick>::max();
  // Else time would be at its end soon, because wake-ups lead from far timers to ever farther ones.
  static constexpr Tick kSmallStep = Tick{1} << 26;

  static Verb verb(unsigned choice) {
    if (choice < 4) return Verb::advance;
    if (choice < 10) return Verb::schedule;
    if (choice < 13) return Verb::postpone;
    return choice < 15 ? Verb::cancel : Verb::destroy;
  }

  std::size_t many() {
    const unsigned choice = byte();
    return choice < 192 ? 1 : choice - 190;
  }

  // Mostly soon after the tick the last pass goes to.
  When deadline() {
    constexpr std::array<Anchor, 8> kAnchors{
        Anchor::target, Anchor::target,       Anchor::target, Anchor::target,
        Anchor::now,    Anchor::own_deadline, Anchor::wakeup, Anchor::own_deadline};
    const unsigned choice = byte();
    const Anchor anchor = kAnchors[choice % kAnchors.size()];
    const unsigned size = choice / kAnchors.size();
    if (size < 4) return {anchor, Relation::after, number(1) % 3};
    if (size < 12) return {anchor, Relation::after, number(1) % 70};
    if (size < 18) return {anchor, Relation::after, number(2) % 5'000};
    if (size < 21) return {anchor, Relation::after, beside_a_power_of_two()};
    if (size < 24) return {anchor, Relation::after, 64};  // equal deadlines
    if (size < 27) return {anchor, Relation::after, number(3) % 300'000};
    if (size < 28) return {anchor, Relation::after, any_tick()};
    if (size < 29) return {anchor, Relation::filled, mask()};
    if (size < 31) return {anchor, Relation::before, number(2)};
    return rarely_the_last_tick();
  }

  // Mostly a little after now.
  When step() {
    const unsigned choice = byte();
    switch (choice % 16) {
      case 0:
        return {Anchor::now, Relation::before, number(2)};
      case 1:
      case 2:
        return {Anchor::wakeup, Relation::after, 0};
      case 3:
        return {Anchor::earliest, Relation::after, 0};
      case 4:
        return {Anchor::now, Relation::after, number(3)};
      case 5:
        return {Anchor::now, Relation::after, number(2) % 6'000};
      case 6:
        return {Anchor::now, Relation::after, 0};
      case 7:
        return {Anchor::now, Relation::filled, mask()};
      case 8:
        return choice == 8 ? rarely_the_last_tick() : When{};
      default:
        return {Anchor::now, Relation::after, number(1) % 40};
    }
  }

  When rarely_the_last_tick() {
    const unsigned choice = byte();
    if (choice < 16) return {Anchor::zero, Relation::after, kLast};
    if (choice < 32) return {Anchor::now, Relation::after, any_tick()};
    return {Anchor::zero, Relation::after, any_tick()};
  }

  Tick beside_a_power_of_two() {
    const unsigned choice = byte();
    return (Tick{1} << choice % 64) + choice / 64 - 1;
  }

  Tick mask() { return (Tick{1} << byte() % 16) - 1; }

  // Of any size, small ones as often as large.
  Tick any_tick() {
    const unsigned shift = byte() % 64;
    return number(8) >> shift;
  }

  unsigned byte() { return static_cast<unsigned>(number(1)); }

  // So many bytes, the lowest first.
  Tick number(unsigned size) {
    Tick value = 0;
    for (unsigned i = 0; i < size && !bytes_.empty(); ++i) {
      value |= Tick{bytes_.front()} << (8 * i);
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }

  std::span<const std::uint8_t> bytes_;
};

/// Returns: an input that means anything, of so many bytes.
inline std::vector<std::uint8_t> random_bytes(Rng& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return bytes;
}

}  // namespace detent
