// Runs code with threads under schedules that a seed decides: probabilistic concurrency testing
// (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A Randomized Scheduler with Probabilistic
// Guarantees of Finding Bugs", ASPLOS 2010), as Shuttle and tokio's loom do for Rust.
//
// The threads are real, but one at a time has the turn. At every hook point (base/explore.h) the
// turn goes to the thread of the highest priority among those that can go on. Priorities are random
// and change at few points, which are random too: the thread that runs there falls behind all
// others. A fault that needs d changes in a run of n threads and k steps is found with a
// probability of at least 1 / (n k^d) a schedule, and most need one or two.
//
// When no thread can go on, that is a deadlock, or a wake-up that was lost. The same seed makes the
// same run, as long as the code asks nothing but the seed (no addresses, thread ids or real time).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/explore.h"

namespace detent::explore {

enum class Op : std::uint8_t { lock, unlock, wait, notify, start, join, end, point, idle };

/// What a thread came to do at a hook point, and with which mutex, condition or thread.
struct Step {
  std::uint16_t thread;  // in the order they are started; 0 runs the scenario
  Op op;
  std::uint32_t object;

  friend bool operator==(const Step&, const Step&) = default;
};

enum class Ending : std::uint8_t {
  completed,  // all threads have ended
  deadlock,   // none of those left can go on
  endless,    // they were still at it after a hundred thousand steps
};

struct Plan {
  std::uint64_t seed = 0;
  /// About how many steps the run takes: where to put changes of priority. 0: no changes.
  std::uint32_t length = 0;
};

struct Outcome {
  Ending ending = Ending::completed;
  std::vector<Step> trace;
};

/// How a run ended, where each thread was then, and the last steps, one a line; for people.
std::string to_text(const Outcome& outcome);

/// Has the threads on which schedules run; they are kept from one to the next, and with them what
/// is `thread_local`. Confined to the thread that made it, which it keeps on one processor, because
/// handing over the turn is several times faster there.
class Explorer {
 public:
  Explorer();
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  /// Runs `scenario` once, all Threads it starts included. Mutexes and the like may only be made,
  /// used and destroyed in there. When it does not complete, its threads stay where they are for
  /// ever, and `scenario` and what it refers to must outlive the process or be theirs.
  /// Returns: what happened; valid until the next run.
  const Outcome& run(const Plan& plan, std::function<void()> scenario);

 private:
  class Affinity;
  std::unique_ptr<Affinity> affinity_;
  std::shared_ptr<class Session> session_;
};

/// For scenarios: returns when every other thread waits for something, so that nothing will happen
/// before the caller does something.
void await_idle();

}  // namespace detent::explore
