#include "bench/wheel/peers.h"

namespace detent::bench {

// bench/CMakeLists.txt defines DETENT_BENCH_<PEER> as 1 for each peer that it found, otherwise as
// 0.

std::vector<Contender> peer_contenders() {
  std::vector<Contender> peers;
#if DETENT_BENCH_ASIO
  peers.push_back(asio_contender());
#endif
#if DETENT_BENCH_LIBEVENT
  peers.push_back(libevent_contender());
#endif
#if DETENT_BENCH_LIBEV
  peers.push_back(libev_contender());
#endif
#if DETENT_BENCH_LIBUV
  peers.push_back(libuv_contender());
#endif
  return peers;
}

std::string missing_peers() {
  std::string missing;
  if (!DETENT_BENCH_ASIO) missing += " Boost.Asio";
  if (!DETENT_BENCH_LIBEVENT) missing += " libevent";
  if (!DETENT_BENCH_LIBEV) missing += " libev";
  if (!DETENT_BENCH_LIBUV) missing += " libuv";
  return missing;
}

}  // namespace detent::bench
