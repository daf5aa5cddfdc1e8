#include "task/lateness.h"

#include <algorithm>

namespace detent {

std::string_view to_string(LatenessCause cause) noexcept {
  switch (cause) {
    case LatenessCause::before_start:
      return "before_start";
    case LatenessCause::engine:
      return "engine";
    case LatenessCause::limit:
      return "limit";
    case LatenessCause::worker:
      return "worker";
  }
  return "";
}

LatenessCause main_cause(const ByCause<std::chrono::nanoseconds>& parts) noexcept {
  return static_cast<LatenessCause>(std::ranges::max_element(parts) - parts.begin());
}

}  // namespace detent
