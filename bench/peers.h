// The peers that this build has: timers of event loops, as Debian packages them.
#pragma once

#include <string>
#include <vector>

#include "bench/contender.h"

namespace detent::bench {

Contender asio_contender();
Contender libevent_contender();
Contender libev_contender();
Contender libuv_contender();

/// Those whose development package was there when this was configured.
std::vector<Contender> peer_contenders();

/// The names of the others; empty when none is missing.
std::string missing_peers();

}  // namespace detent::bench
