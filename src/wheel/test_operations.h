// OperationReader: one input format for every test that drives a queue at random. It converts bytes
// to operations.
//
// Seeded tests pass random bytes, libFuzzer passes bytes that reached new code, and ctest passes a
// stored corpus (tests/fuzz/). Every sequence of bytes is valid, so each input tests something.
// After the last byte, the reader returns zeros. A change of the format changes the meaning of the
// stored corpus.
//
//     input      number of timers (1 byte), first tick (9), operations …
//     operation  verb, and whether it is for many timers (1, count 1), timer (2). Then schedule and
//                postpone have a deadline (1 + offset), and advance has a step (1 + offset) and a
//                limit (1)
//     callback   number of operations (1), operations …
//
// Ticks are relative to an anchor that both the queue and the model know. Read next:
// timer_queue_rig.h, which executes the operations.
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

/// An operation on a queue or a timer.
enum class Verb { schedule, postpone, cancel, destroy, advance };

/// The tick from which another tick is counted.
enum class Anchor {
  zero,
  now,
  target,        ///< the latest target of an `advance`
  own_deadline,  ///< the last deadline of the timer
  wakeup,        ///< the result of next_wakeup()
  earliest,      ///< the earliest deadline of all pending timers
};

/// The relation of a tick to its anchor.
enum class Relation {
  after,
  before,
  filled,  ///< the anchor with the bits of the offset set: the last tick of a slot with this size
};

/// A tick in relation to an anchor, limited to the range of ticks.
struct When {
  Anchor anchor = Anchor::now;
  Relation relation = Relation::after;
  Tick offset = 0;
};

/// One operation of an input.
struct Operation {
  Verb verb = Verb::advance;
  std::size_t first_timer = 0;  ///< any number; used modulo the number of timers
  std::size_t timer_count = 1;  ///< the operation is done to this many timers in a row
  When when;
  Tick longest_step = 0;         ///< for advance: the largest step after now
  std::size_t limit = kNoLimit;  ///< for advance
};

/// The first part of an input.
struct EpisodeStart {
  std::size_t timer_count = 0;
  Tick tick = 0;
};

/// Reads operations from bytes. The bytes must outlive the reader.
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

  /// Returns the number of operations of a callback.
  unsigned callback_operations() {
    const unsigned choice = byte();
    if (choice < 192) return 0;
    return choice < 224 ? 1 : 2;
  }

 private:
  static constexpr Tick kLast = std::numeric_limits<Tick>::max();
  // Without this limit, time would soon be at its end, because wake-ups lead from far timers to
  // ever farther timers.
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

  // Usually soon after the target tick of the last pass.
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

  // Usually a little after now.
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

  // A tick of any size; small ticks are as frequent as large ticks.
  Tick any_tick() {
    const unsigned shift = byte() % 64;
    return number(8) >> shift;
  }

  unsigned byte() { return static_cast<unsigned>(number(1)); }

  // Reads `size` bytes, the lowest byte first.
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

/// Returns a random input of `count` bytes.
inline std::vector<std::uint8_t> random_bytes(Rng& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return bytes;
}

}  // namespace detent
