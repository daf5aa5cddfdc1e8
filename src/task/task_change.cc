#include "task/task_change.h"

namespace detent {

std::string_view to_string(TaskEvent event) noexcept {
  switch (event) {
    case TaskEvent::scheduled:
      return "scheduled";
    case TaskEvent::ready:
      return "ready";
    case TaskEvent::leased:
      return "leased";
    case TaskEvent::extended:
      return "extended";
    case TaskEvent::released:
      return "released";
    case TaskEvent::completed:
      return "completed";
    case TaskEvent::failed:
      return "failed";
    case TaskEvent::expired:
      return "expired";
    case TaskEvent::dead:
      return "dead";
    case TaskEvent::moved:
      return "moved";
    case TaskEvent::edited:
      return "edited";
    case TaskEvent::redriven:
      return "redriven";
    case TaskEvent::cancelled:
      return "cancelled";
    case TaskEvent::away:
      return "away";
  }
  return "unknown";
}

}  // namespace detent
