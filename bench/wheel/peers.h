// The peers of this build: timers of event loops, from Debian packages.
#pragma once

#include <string>
#include <vector>

#include "bench/wheel/contender.h"

namespace detent::bench {

Contender asio_contender();
Contender libevent_contender();
Contender libev_contender();
Contender libuv_contender();

/// The peers whose development packages were installed when this build was configured.
std::vector<Contender> peer_contenders();

/// The names of the missing peers.
std::string missing_peers();

}  // namespace detent::bench
