#include "base/rng.h"

#if defined(__linux__)
#include <sys/random.h>

#include <cerrno>
#else
#include <random>
#endif

#include "detent/check.h"

namespace detent {

#if defined(__linux__)

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  ssize_t read = -1;
  do {
    read = ::getrandom(&seed, sizeof(seed), 0);
  } while (read < 0 && errno == EINTR);
  // With flags 0, getrandom waits until the kernel's pool is ready. From then on it returns
  // requests of up to 256 bytes completely.
  DETENT_CHECK(read == static_cast<ssize_t>(sizeof(seed)));
  return seed;
}

#else

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

#endif

}  // namespace detent
