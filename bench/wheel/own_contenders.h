// The queues of this library and the baselines, in the order of timers_bench: our queues first.
#pragma once

#include <vector>

#include "bench/wheel/contender.h"

namespace detent::bench {

std::vector<Contender> own_contenders();
std::vector<Contender> baseline_contenders();

}  // namespace detent::bench
