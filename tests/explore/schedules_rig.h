// Many schedules of one scenario, one seed each, until one of them goes wrong.
//
// A scenario is a function that runs as thread 0 of an exploration: it makes what it tests, starts
// threads (base/thread.h), joins them, and says through Findings what must be true. What it leaves
// open, delays for instance, it takes from the Rng given.
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

/// What one run found wrong; only the thread that has the turn touches it.
class Findings {
 public:
  /// Notes `what must be so` when it is not. The first one counts, the others may follow from it.
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

/// How many schedules a test explores: `fallback`, or what DETENT_EXPLORE_SCHEDULES says.
inline std::uint64_t schedule_count(std::uint64_t fallback) {
  const char* text = std::getenv("DETENT_EXPLORE_SCHEDULES");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : fallback;
}

/// Runs `count` schedules, the first one with `seed` itself, the others with seeds drawn from it.
/// One run without changes of priority goes before, to see how long a run is.
/// Returns: the first failure; empty when there is none.
inline std::optional<Failure> explore(std::uint64_t seed, std::uint64_t count,
                                      const Scenario& scenario) {
  Explorer explorer;
  Rng seeds(seed);
  Plan plan;
  for (std::uint64_t schedule = 0; schedule <= count; ++schedule) {
    // Shared with a run that does not complete: its threads keep it.
    const auto findings = std::make_shared<Findings>();
    const Outcome& outcome = explorer.run(plan, [scenario, findings, seed = plan.seed] {
      Rng rng(~seed);  // other numbers than the explorer draws
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
