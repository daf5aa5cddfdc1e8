// Uses the calendar in a shared library. Runs before main().
#include "detent/cron.h"

#include <cstdlib>

namespace {

const bool kIsRefused = [] {
  if (detent::Cron::parse("61 * * * *").has_value()) std::abort();
  return true;
}();

}  // namespace
