// Explores many schedules of one scenario, each with its own seed, until one of them fails.
//
// A scenario is a function that runs as thread 0 of an exploration. It makes the objects that it
// tests, starts threads (base/thread.h), joins them, and checks conditions with Findings. It takes
// random values, for example delays, from the given Rng.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/rng.h"
#include "base/test_seed.h"
#include "tests/explore/explorer.h"

namespace detent::explore {

/// The failed checks of one run. Only the thread that has the turn uses it.
class Findings {
 public:
  /// Records `what_must_be_so` if `holds` is false. Only the first failure counts, because later
  /// failures may follow from it.
  void expect(bool holds, const char* what_must_be_so) {
    if (!holds && first_.empty()) first_ = what_must_be_so;
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

using Scenario = std::function<void(Rng&, Findings&)>;

struct Failure {
  std::uint64_t seed = 0;
  std::uint64_t schedule = 0;  // counted from 1
  Ending ending = Ending::completed;
  std::string what;  // with the trace, for people
};

/// The number of schedules that a test explores: DETENT_EXPLORE_SCHEDULES if it is set, else
/// `fallback`.
inline std::uint64_t schedule_count(std::uint64_t fallback) {
  const char* text = std::getenv("DETENT_EXPLORE_SCHEDULES");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : fallback;
}

/// Runs `count` schedules. The first has the seed `seed`, and the others have seeds drawn from it.
/// One run without changes of priority comes first, to measure the length of a run. Returns the
/// first failure; empty if there is none.
inline std::optional<Failure> explore(std::uint64_t seed, std::uint64_t count,
                                      const Scenario& scenario) {
  Explorer explorer;
  Rng seeds(seed);
  Plan plan;
  for (std::uint64_t schedule = 0; schedule <= count; ++schedule) {
    // Shared with the threads of a run that does not complete. They keep it.
    const auto findings = std::make_shared<Findings>();
    const Outcome& outcome = explorer.run(plan, [scenario, findings, seed = plan.seed] {
      Rng rng(~seed);  // other numbers than the explorer's
      scenario(rng, *findings);
    });
    if (outcome.ending != Ending::completed || !findings->first().empty()) {
      return Failure{plan.seed, schedule, outcome.ending,
                     "schedule " + std::to_string(schedule) + ": " + findings->first() +
                         "\nreplay with DETENT_EXPLORE_SCHEDULES=1 DETENT_SEED=" +
                         std::to_string(plan.seed) + '\n' + to_text(outcome)};
    }
    if (schedule == 0) plan.length = static_cast<std::uint32_t>(outcome.trace.size());
    plan.seed = schedule == 0 ? seed : seeds.next();
  }
  return std::nullopt;
}

}  // namespace detent::explore
