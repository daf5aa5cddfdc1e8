// The queues of the family and the baselines, as timers_bench lists them: ours first.
#pragma once

#include <vector>

#include "bench/contender.h"

namespace detent::bench {

std::vector<Contender> own_contenders();
std::vector<Contender> baseline_contenders();

}  // namespace detent::bench
