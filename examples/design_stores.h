// Figures of docs/designs whose timers are not only in a wheel: wheels with a store or an external
// scheduler, the queues without slots, and the wheel of Linux.
#pragma once

#include "design_picture.h"

namespace design {

Figure persistent_wheel();
Figure external_scheduler();
Figure queues();
Figure linux_wheel();

}  // namespace design
