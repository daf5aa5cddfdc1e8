// The runtimes of this build.
#include "bench/runtime/runtime_peer.h"

#include <algorithm>
#include <utility>

namespace detent::bench {

// bench/CMakeLists.txt defines DETENT_BENCH_<PEER> as 1 for each library that it found, otherwise
// as 0.

RuntimePeers runtime_peers() {
  RuntimePeers peers;
  const auto add = [&peers](std::unique_ptr<RuntimePeer> peer) {
    if (peer != nullptr) peers.push_back(std::move(peer));
  };
  add(detent_runtime());
  add(detent_runtime_that_spins());
  add(local_runtime());
  add(local_runtime_that_spins());
  add(dense_wheel_runtime());
#if DETENT_BENCH_ASIO
  add(asio_runtime());
  add(asio_runtime_from_outside());
#endif
#if DETENT_BENCH_LIBEVENT
  add(libevent_runtime());
#endif
#if DETENT_BENCH_LIBUV
  add(libuv_runtime());
#endif
  add(go_runtime());
  add(netty_runtime());
  add(timerfd_runtime());
  return peers;
}

std::string missing_runtime_peers(const RuntimePeers& peers) {
  std::string missing;
  for (const char* const name : {"Boost.Asio", "libevent", "libuv", "Go", "Netty"}) {
    const bool is_here =
        std::ranges::any_of(peers, [name](const auto& peer) { return peer->name() == name; });
    if (!is_here) missing += std::string(" ") + name;
  }
  return missing;
}

}  // namespace detent::bench
