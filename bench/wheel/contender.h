// A queue that takes part in timers_bench: a table row with the data for its runs.
#pragma once

#include <cstdint>
#include <string>

#include "bench/wheel/bench_queue.h"
#include "bench/wheel/firing_check.h"
#include "bench/wheel/timer_sweep.h"
#include "bench/wheel/timer_workloads.h"

namespace detent::bench {

struct Contender {
  std::string name;
  std::string note;  ///< how it is driven, if that differs from the others; may be empty
  QueueLimits limits;
  std::uint64_t (*count_wrong_firings)(Tick ticks);
  Outcome (*run)(const RunOptions&, const Record&);
  Outcome (*sweep)(const RunOptions&, const Record&);
};

template <BenchQueue Queue>
Contender contender(const std::string& name, const std::string& note = "") {
  using Called = Outlined<Queue>;
  return {.name = name,
          .note = note,
          .limits = Queue::kLimits,
          .count_wrong_firings = &count_wrong_firings<Called>,
          .run = [](const RunOptions& options,
                    const Record& record) { return Workloads<Called>(options, record).run(); },
          .sweep = [](const RunOptions& options,
                      const Record& record) { return Sweep<Called>(options, record).run(); }};
}

}  // namespace detent::bench
