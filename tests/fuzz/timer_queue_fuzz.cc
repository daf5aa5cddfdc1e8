// The entry for libFuzzer to all timer queues. Bytes are operations (src/wheel/test_operations.h).
// A queue that differs from its model crashes the program.
//
//     tests/fuzz/detent_timer_queue_fuzz -max_len=2048 CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "wheel/test_queues.h"
#include "wheel/timer_queue_rig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<std::string> mismatch =
      detent::find_mismatch(detent::EverySize::Types{}, {data, size});
  if (mismatch) {
    std::fprintf(stderr, "%s\n", mismatch->c_str());
    std::abort();
  }
  return 0;
}
