// Checks that an installed DurableScheduler links, and that it rejects a folder without a name.
// Runs before main().
#include "detent/durable_scheduler.h"

#include <cstdlib>

namespace {

const bool kIsRefused = [] {
  const auto opened = detent::DurableScheduler::open({});
  if (opened.error().code != detent::DurableError::Code::invalid_argument) std::abort();
  return true;
}();

}  // namespace
