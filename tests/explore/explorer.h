// Runs code with several threads, in an order of steps that a seed determines. The method is
// probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A Randomized
// Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010). Shuttle does the same for
// Rust.
//
// The threads are real, but only the thread that has the turn runs. At every hook point
// (base/explore.h), the turn goes to the thread with the highest priority of all threads that can
// continue. Priorities are random. At a few random points, the running thread gets a lower priority
// than all threads that have kept theirs. Suppose that a fault needs d such changes in a run of n
// threads and k steps. Then each schedule finds it with a probability of at least 1 / (n k^d). Most
// faults need one or two changes.
//
// If no thread can continue, there is a deadlock or a lost wake-up. The same seed gives the same
// run, if the code depends only on the seed, and not on addresses, thread ids or real time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/explore.h"

namespace detent::explore {

enum class Op : std::uint8_t { lock, unlock, wait, notify, start, join, end, point, idle };

/// The operation of a thread at a hook point, and the number of the mutex, condition or thread.
struct Step {
  std::uint16_t thread;  // in the order of their start; 0 runs the scenario
  Op op;
  std::uint32_t object;

  friend bool operator==(const Step&, const Step&) = default;
};

enum class Ending : std::uint8_t {
  completed,  // all threads have ended
  deadlock,   // no remaining thread can continue
  endless,    // still running after a hundred thousand steps
};

struct Plan {
  std::uint64_t seed = 0;
  /// The expected number of steps of the run. Changes of priority are placed within it. 0: no
  /// changes.
  std::uint32_t length = 0;
};

struct Outcome {
  Ending ending = Ending::completed;
  std::vector<Step> trace;
};

/// A text for people: how the run ended, where each thread was, and the last steps, one per line.
std::string to_text(const Outcome& outcome);

/// Owns the threads that run the schedules. The threads, and their `thread_local` variables, are
/// kept from one schedule to the next. Only the thread that made the explorer may use it. The
/// explorer keeps all threads on one processor, because passing the turn is several times faster
/// there.
class Explorer {
 public:
  Explorer();
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  /// Runs `scenario` once, with all Threads that it starts. Mutexes and conditions may only be
  /// made, used and destroyed inside it. If a run does not complete, its threads stay forever. Then
  /// `scenario` and the objects that it refers to must be owned by these threads, or must live
  /// until the process ends. Returns the outcome, which is valid until the next run.
  const Outcome& run(const Plan& plan, std::function<void()> scenario);

 private:
  class Affinity;
  std::unique_ptr<Affinity> affinity_;
  std::shared_ptr<class Session> session_;
};

/// For scenarios: returns when every other thread is waiting, so that the next step must come from
/// the caller.
void await_idle();

}  // namespace detent::explore
