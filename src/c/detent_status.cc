// The C interface (detent/detent.h): texts and versions.
#include "detent/detent.h"

const char* detent_status_text(detent_status status) noexcept {
  switch (status) {
    case DETENT_OK:
      return "done";
    case DETENT_NOT_PENDING:
      return "the timer is not pending";
    case DETENT_RUNNING:
      return "the job of the timer is running";
    case DETENT_MORE:
      return "the limit ended the call; call again to continue";
    case DETENT_ERROR_INVALID:
      return "an argument is not allowed";
    case DETENT_ERROR_NO_MEMORY:
      return "out of memory";
    case DETENT_ERROR_INSIDE_CALLBACK:
      return "a callback must not call this function";
    case DETENT_ERROR_STOPPED:
      return "the scheduler has stopped";
    case DETENT_ERROR_FULL:
      return "the scheduler has reached its capacity";
    case DETENT_ERROR_SYSTEM:
      return "the system could not start a thread";
    default:
      return "unknown status";
  }
}

const char* detent_version() noexcept { return DETENT_VERSION; }

int32_t detent_abi_version() noexcept { return DETENT_ABI_VERSION; }
