#include "base/rng.h"

#include <sys/random.h>

#include <cerrno>

#include "detent/check.h"

namespace detent {

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

}  // namespace detent
